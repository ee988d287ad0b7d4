"""`leadline audit`: side effects and requests in flight are listed, and a change is told at its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from leadline import Leadline
from leadline.core.session.invariants import Invariants
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer
from tests.composition.cli import Command
from tests.laws.conftest import events, forge, logs


def agent_that_writes(home: Path) -> Path:
    """The log of an agent that used a tool of the program's with a side effect."""

    async def go() -> str:
        answers = [Behaviour("tool_call_success", calls=(CallSpec("note", {"text": "x"}),)), "Noted."]
        async with ProviderServer(answers) as server:
            app = Leadline(model="local/fake", base_url=server.base_url)

            @app.tool(side_effects={"writes"})
            async def note(text: str) -> str:  # pyright: ignore[reportUnusedFunction]
                """Write something down.

                Args:
                    text: what to write.
                """
                return f"noted {text}"

            async with app:
                return (await app.agent("write x down")).session

    session = anyio.run(go)
    return logs(home)[session]


def test_a_side_effect_is_told_with_its_intent_and_its_result(home: Path, command: Command) -> None:
    log = agent_that_writes(home)
    seqs = {event["type"]: event["seq"] for event in events(log) if event["type"].startswith("tool/")}
    ended = command("audit", log.stem)
    assert ended.code == 0, ended
    line = f"  side effect: event {seqs['tool/call']}: note (writes): done, result in event {seqs['tool/result']}"
    assert line in ended.out.decode().splitlines()
    (told,) = command("audit", log.stem, "--json").json["sessions"][0]["side_effects"]
    assert (told["tool"], told["became"], told["result_seq"]) == ("note", "done", seqs["tool/result"])


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("tool/call", "side effect: event {seq}: note (writes): no result: the log ends before it"),
        ("request/sent", "in flight: event {seq}: local/fake, attempt 1, key "),
    ],
)
def test_what_a_kill_left_open_is_told(home: Path, command: Command, last: str, told: str) -> None:
    log = agent_that_writes(home)
    seq = max(event["seq"] for event in events(log) if event["type"] == last)
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[: seq + 2]))
    ended = command("audit", log.stem)
    assert ended.code == 0, ended
    assert told.format(seq=seq) in ended.out.decode()


def test_the_part_that_was_changed_is_named_in_json(home: Path, command: Command) -> None:
    log = agent_that_writes(home)
    header = next(event["seq"] for event in events(log) if event["type"] == "request/header")
    forge(log, header, lambda data: data["config"].update(effort="high"))
    ended = command("audit", log.stem, "--json")
    assert ended.code == 1
    assert [one["parts"] for one in ended.json["sessions"][0]["problems"]] == [["effort"], ["effort"]]


def test_a_call_that_was_taken_out_of_a_log_is_missed_though_the_chain_fits(
    home: Path, command: Command, without: Callable[[Path, str], None]
) -> None:
    log = agent_that_writes(home)
    without(log, "tool/call")
    ended = command("audit", log.stem)
    assert ended.code == 1
    assert "run without an intent in the log" in ended.out.decode()
    assert "it breaks tools/calls: a result answers call" in ended.out.decode()


@pytest.fixture
def without() -> Callable[[Path, str], None]:
    """Takes the events of one type out of a log, numbers and chains it anew."""
    import hashlib
    import json

    def take_out(path: Path, type_: str) -> None:
        header, *lines = path.read_bytes().splitlines()
        made, prev = [header], hashlib.sha256(header).hexdigest()[:32]
        for event in (json.loads(line) for line in lines):
            if event["type"] == type_:
                continue
            event |= {"seq": len(made) - 1, "prev": prev}
            made.append(json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode())
            prev = hashlib.sha256(made[-1]).hexdigest()[:32]
        path.write_bytes(b"\n".join(made) + b"\n")

    return take_out


def test_every_shipped_rule_is_on_where_it_is_switched_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def rules() -> set[str]:
        async with Leadline() as app:
            registry = app.ctx.get(Invariants)
            return {one.name for one in registry if registry.on(one.name)}

    assert anyio.run(rules) == {
        "agent/family",
        "agent/inbox",
        "agent/queues",
        "agent/status",
        "llm/streams",
        "loop/attempts",
        "loop/derived-requests",
        "prompt/assembled",
        "prompt/headers",
        "research/course",
        "research/evidence",
        "research/quoted-text",
        "session/inside-step",
        "session/turns",
        "subagent/allowed-tools",
        "subagent/one-result",
        "tools/announced",
        "tools/calls",
        "window/changes",
    }
    monkeypatch.delenv("LEADLINE_INVARIANTS")
    assert anyio.run(rules) == set()
