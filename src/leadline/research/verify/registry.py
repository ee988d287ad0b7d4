"""The service that holds the checks of a program: the built-in ones and those that plugins add."""

from __future__ import annotations

from leadline.kernel.context import Context
from leadline.kernel.errors import DuplicateName
from leadline.kernel.services import Service
from leadline.research.verify.check import Check
from leadline.research.verify.judge import CHECKS


class Checks(Service, key="checks"):
    """Every check that a sentence must pass to count as supported, built-in ones first."""

    def __init__(self) -> None:
        self._added: dict[str, Check] = {}

    def register(self, ctx: Context, check: Check) -> None:
        """Add a check for as long as the caller's plugin is mounted. It can only make verdicts stricter.

        Raises:
            DuplicateName: a check of that name is there already.
        """
        if any(one.name == check.name for one in self.all):
            raise DuplicateName(f"check {check.name!r} is already registered; give the new one another name")
        self._added[check.name] = check
        ctx.defer(f"check {check.name}", lambda: self._remove(check.name))

    def _remove(self, name: str) -> None:
        self._added.pop(name, None)

    @property
    def all(self) -> tuple[Check, ...]:
        """The checks in the order in which they run."""
        return (*CHECKS, *self._added.values())
