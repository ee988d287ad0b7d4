"""What an append to a session log and the loading of one cost.

Run it: `python bench/session_append.py [DIRECTORY]`; prints one JSON object a line. The floor of an append is
encoding the same event and writing the same bytes with one `os.write`, nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import anyio
import msgspec

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.llm.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from leadline.core.llm.usage import Usage
from leadline.core.session.codec import Header
from leadline.core.session.derive import derive
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserEntered,
)
from leadline.core.session.load import load
from leadline.core.session.registry import EventTypes

EVENTS = 10_000
ROUNDS = 5
APPEND_BAR = 6.0
LOAD_BAR_MS = 150.0


class Row(TypedDict):
    """One measured number and the bar that it is held to."""

    bar: str
    value: float
    unit: str
    floor: float
    ratio: float


def turn(number: int) -> list[Event]:
    """The events of a usual turn: a question, a tool call, its result, an answer."""
    call = ToolCall(f"c{number}", "corpus_search", '{"query":"depth of the channel","limit":8}')
    words = "The channel was sounded at nine fathoms at low water, as the table on page 14 says. " * 4
    asked = UserMessage(f"u{number}", (Text(words),))
    said = AssistantMessage(f"a{number}", (Text(words), call), "local/model")
    answer = ToolMessage(f"t{number}", call.id, call.name, words * 2)
    events: list[Event] = [
        TurnStart(turn=number),
        StepStart(turn=number, step=1),
        UserEntered(turn=number, step=1, message=asked, claims=(asked.id,)),
        AssistantSaid(turn=number, step=1, message=said, usage=Usage(input=1200, output=90)),
        ToolCalled(turn=number, step=1, call_id=call.id, name=call.name, arguments=call.arguments),
        ToolAnswered(turn=number, step=1, message=answer),
        StepEnd(turn=number, step=1),
        TurnEnd(turn=number, reason="completed"),
    ]
    return events


def _events() -> list[Event]:
    return [event for number in range(1, EVENTS // 8 + 1) for event in turn(number)]


def _best(run: Callable[[], float]) -> float:
    return min(run() for _ in range(ROUNDS))


def _floor(root: Path, events: list[Event], lines: list[bytes]) -> float:
    encode = msgspec.json.Encoder().encode
    fd = os.open(root / "floor", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        began = time.perf_counter()
        for event, line in zip(events, lines, strict=True):
            encode(event)
            os.write(fd, line)
        return (time.perf_counter() - began) / len(events)
    finally:
        os.close(fd)


async def _append(root: Path, events: list[Event], name: str) -> float:
    store = JsonlSessions(root, clock=Clock(), types=EventTypes())
    session = await store.create(Header(id=name, kind="agent", created=0.0))
    began = time.perf_counter()
    for event in events:
        session.append(event)
    took = (time.perf_counter() - began) / len(events)
    await session.close()
    return took


def _load(path: Path) -> float:
    began = time.perf_counter()
    with path.open("rb") as file:
        loaded = load(file)
    conversation = derive(loaded.logged)
    took = time.perf_counter() - began
    assert len(loaded.logged) == EVENTS and len(conversation) == 3 * EVENTS // 8
    return took


def measure(root: Path | None = None) -> list[Row]:
    """One row for an append, one for loading; below `root`, else in a temporary directory."""
    with tempfile.TemporaryDirectory(dir=root) as directory:
        place = Path(directory)
        events = _events()
        appended = min(anyio.run(_append, place, events, f"s-{number}") for number in range(ROUNDS))
        lines = (place / "s-0.jsonl").read_bytes().splitlines(keepends=True)[1:]
        floor = _best(lambda: _floor(place, events, lines))
        loaded = _best(lambda: _load(place / "s-0.jsonl"))
    return [
        Row(bar=f"append <= {APPEND_BAR:g} x floor", value=round(appended * 1e6, 2), unit="us an event",
            floor=round(floor * 1e6, 2), ratio=round(appended / floor, 2)),
        Row(bar=f"load and derive {EVENTS} events < {LOAD_BAR_MS:g} ms", value=round(loaded * 1e3, 1), unit="ms",
            floor=LOAD_BAR_MS, ratio=round(loaded * 1e3 / LOAD_BAR_MS, 2)),
    ]  # fmt: skip


if __name__ == "__main__":
    for row in measure(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(json.dumps(row))
