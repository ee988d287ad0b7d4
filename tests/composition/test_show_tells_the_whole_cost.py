"""`show` tells what a session used, and where it had others work for it what all of that cost: as `usage` does."""

from __future__ import annotations

from pathlib import Path

from leadline.testing.provider_server.behaviours import Behaviour
from tests.composition.cli import Command
from tests.composition.test_research_budget import PRICED, served, tokens


def test_show_has_the_sum_of_usage_beside_what_the_session_itself_used(
    command: Command, tmp_path: Path
) -> None:
    patch = tmp_path / "titles.yml"
    patch.write_text(PRICED + "- {id: titles, merge: {model: local/fake}, disabled: false}\n")
    with served(lambda request: Behaviour(text="Water in reservoirs")) as server:
        at = ["--model", "local/fake", "--base-url", server.base_url, "--patch", patch]
        session = command("agent", "tell me of the water in reservoirs", *at, "--json").json["session"]
        assert len(server.bill) == 2
        used = tokens(server)
    shown = command("show", session).out.decode()
    assert "used: 1 call(s)" in shown
    assert f"used with all that it started: 2 call(s), {used:,} tokens, cost $0.0" in shown
    assert command("usage", session, "--json").json["calls"] == 2
