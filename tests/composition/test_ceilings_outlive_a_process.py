"""What a turn was given holds for all of it: also for what a later process does of it."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import msgspec
import pytest

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received
from tests.composition.cli import Command, started
from tests.composition.test_research_budget import PRICED, billed, endless, served, tokens


@pytest.mark.case("K07")
@pytest.mark.parametrize(
    ("option", "most"),
    [
        (("--max-calls", "6"), "calls"),
        (("--max-tokens", "9000"), "tokens"),
        (("--max-cost", "0.009"), "cost"),
        (("--max-time", "3s"), "seconds"),
    ],
)
def test_a_turn_that_was_killed_goes_on_with_what_is_left_of_its_ceilings(
    command: Command, tmp_path: Path, option: tuple[str, str], most: str
) -> None:
    patch = tmp_path / "priced.yml"
    patch.write_text(PRICED)
    base = endless()

    def answer(request: Received) -> Behaviour:
        return msgspec.structs.replace(base(request), delay_s=0.2)

    with served(answer) as server:
        at = ["--model", "local/fake", "--base-url", server.base_url, "--patch", str(patch)]
        process = started("agent", "go on for ever", *at, *option)
        while len(server.requests) < 3:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        (listed,) = command("sessions", "list", "--json").json
        resumed = command("resume", listed["id"], *at)
        limit = float(re.sub("[^0-9.]", "", option[1]))
        largest = max(one.prompt_tokens + one.completion_tokens for one in server.bill)
        dearest = max(one.cost or 0 for one in server.bill)
        assert resumed.code == 1
        assert 3 < len(server.requests) < 60
        if most == "calls":
            assert len(server.requests) == 6
        elif most == "tokens":
            assert tokens(server) <= limit + largest
        elif most == "cost":
            assert billed(server) <= limit * 1e12 + dearest
        else:
            assert "max_seconds" in resumed.complaint
