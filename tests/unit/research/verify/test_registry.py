"""Added checks are effects: they come with their plugin and leave with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import DuplicateName
from leadline.kernel.plugin import Plugin
from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.check import CheckResult, Cited, Sentence
from leadline.research.verify.judge import CHECKS
from leadline.research.verify.registry import Checks, UnknownCheck


class Pedant:
    name, version, establishes = "pedant", 1, "A pass establishes nothing."

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        return CheckResult("pass")


@pytest.mark.anyio
async def test_a_check_is_there_as_long_as_its_plugin_is() -> None:
    checks = Checks()

    async def apply(ctx: Context, config: Any) -> None:
        checks.register(ctx, Pedant())

    async with Kernel() as kernel:
        fiber = await kernel.root.mount(Plugin("pedant", apply))
        assert [check.name for check in checks.all][-1] == "pedant"
        await fiber.dispose()
        assert checks.all == CHECKS


@pytest.mark.anyio
async def test_two_checks_of_one_name_are_refused() -> None:
    checks = Checks()
    async with Kernel() as kernel:
        checks.register(kernel.root, Pedant())
        with pytest.raises(DuplicateName, match="pedant"):
            checks.register(kernel.root, Pedant())


@pytest.mark.anyio
async def test_a_restriction_holds_as_long_as_its_plugin_and_names_checks_that_are_there() -> None:
    checks = Checks()

    async def apply(ctx: Context, config: Any) -> None:
        checks.restrict(ctx, ["wording", "figures"])

    async with Kernel() as kernel:
        fiber = await kernel.root.mount(Plugin("few", apply))
        assert [check.name for check in checks.all] == ["figures", "wording"]
        with pytest.raises(DuplicateName, match="provenance"):
            checks.register(kernel.root, CHECKS[0])
        await fiber.dispose()
        assert checks.all == CHECKS
        with pytest.raises(UnknownCheck, match="did you mean 'wording'"):
            checks.restrict(kernel.root, ["wordings"])
