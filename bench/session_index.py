"""What it costs to list and to search 10,000 sessions, and to read them all into the index.

Run it: `python -m bench session_index`. Four of five sessions are agents with a conversation, the fifth is a run
with a report and quotes; every tenth is in Chinese. The sessions are files as the default store writes them.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypedDict

import anyio

from bench.processes import PROGRAM, environment
from leadline.apps.sdk.app import Leadline
from leadline.capabilities.session_index.seam import ListQuery, SessionIndex
from leadline.core.llm.messages import AssistantMessage, Text, UserMessage
from leadline.core.llm.usage import Usage
from leadline.core.session.codec import Header, compose
from leadline.core.session.events import AssistantSaid, Event, RequestSent, TurnEnd, TurnStart, UserEntered
from leadline.core.session.store import first_lines
from leadline.research.events import (
    Drafted,
    Ended,
    Leaf,
    Paragraph,
    Quote,
    QuoteRecorded,
    Report,
    Request,
    RunUsage,
    Section,
    Started,
)

SESSIONS = 10_000
TURNS = 4
SENTENCES = 12
QUOTES = 8
ROUNDS = 15
START = 1_780_000_000.0
WORDS = [
    "harbour",
    "channel",
    "depth",
    "museum",
    "visitor",
    "telescope",
    "ledger",
    "pilot",
    "sounding",
    "current",
    "lantern",
    "keeper",
    "harbour",
    "report",
    "measured",
    "winter",
    "fathom",
    "archive",
    "signal",
    "crane",
    "wharf",
    "tonnage",
    "customs",
    "ferry",
    "season",
    "repair",
    "estuary",
]
CJK = ("港口", "深度", "博物馆", "测量", "灯塔", "参观", "报告", "航道", "冬季", "档案")

FIRST_CALL = """
import anyio, sys, time
from pathlib import Path
from leadline.apps.sdk.app import Leadline
from leadline.capabilities.session_index.seam import ListQuery, SessionIndex

async def main():
    async with Leadline(home=Path(sys.argv[1]), profile="base") as app:
        began = time.perf_counter()
        page = await app.ctx.get(SessionIndex).list(ListQuery(limit=50))
        print(len(page.items), (time.perf_counter() - began) * 1000)

anyio.run(main)
"""


class Row(TypedDict):
    """One measured number and the bar that it is held to."""

    bar: str
    value: float
    unit: str
    floor: float | None
    ratio: float | None


class _Writer:
    """Words that are the same in every run of the bench."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self.chinese = number % 10 == 0
        self.rare = f"zq{number:05d}"

    def sentence(self) -> str:
        if self.chinese:
            return "".join(self._random.choices(CJK, k=12)) + "。"
        return " ".join(self._random.choices(WORDS, k=14)).capitalize() + "."

    def text(self, sentences: int) -> str:
        return " ".join(self.sentence() for _ in range(sentences))


def _conversation(number: int, said: _Writer) -> list[Event]:
    events: list[Event] = []
    for turn in range(1, TURNS + 1):
        asked = UserMessage(f"u{turn}", (Text(f"{said.text(1)} {said.rare}"),))
        answer = AssistantMessage(f"a{turn}", (Text(said.text(5)),), "local/model")
        sent = RequestSent(purpose="agent/turn", model="local/model", digest="0" * 64, messages=turn)
        events += [TurnStart(turn=turn), UserEntered(message=asked, turn=turn, step=1), sent]
        events += [AssistantSaid(message=answer, usage=Usage(input=900, output=80))]
        events += [TurnEnd(turn=turn, reason="completed")]
    return events


def _run(number: int, said: _Writer) -> list[Event]:
    leaves = tuple(Leaf(text=said.sentence(), evidence=("u1.e1",)) for _ in range(SENTENCES))
    report = Report(
        title=said.sentence(), sections=(Section(heading="Found", blocks=(Paragraph(sentences=leaves),)),)
    )
    request = Request(question=f"{said.sentence()} {said.rare}?")
    quotes = [
        Quote(id=f"u1.e{n}", unit="u1", source="s1", snapshot="0" * 64, start=0, end=9, text=said.text(2), match="exact")
        for n in range(QUOTES)
    ]  # fmt: skip
    return [
        Started(run=f"s-{number:016x}", request=request, roots=("harbour-museum",), model="local/model"),
        *(QuoteRecorded(quote=quote) for quote in quotes),
        Drafted(report=report),
        Ended(status="completed", usage=RunUsage(calls=9, tokens=Usage(input=9000, output=900), cost=0.2)),
    ]


def fill(root: Path) -> int:
    """Write the sessions below `root`; their size in bytes."""
    root.mkdir(parents=True)
    size = 0
    for number in range(SESSIONS):
        said = _Writer(number)
        kind, events = (
            ("research", _run(number, said)) if number % 5 == 0 else ("agent", _conversation(number, said))
        )
        header = Header(id=f"s-{number:016x}", kind=kind, created=START + number)
        content, header, loaded = first_lines(header, None, header.created)
        lines, digest = [content], loaded.digest
        for seq, event in enumerate(events):
            line, _, digest = compose(event, seq, header.created + seq, digest)
            lines.append(line)
        size += (root / f"{header.id}.jsonl").write_bytes(b"".join(lines))
    return size


async def _timed(call: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds of one call: the median of several."""
    took: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await call()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


async def _inside(home: Path) -> dict[str, float]:
    """Building, then what a process pays that has asked before."""
    out: dict[str, float] = {}
    async with Leadline(home=home, profile="base") as app:
        index = app.ctx.get(SessionIndex)
        began = time.perf_counter()
        assert len((await index.list(ListQuery(limit=50))).items) == 50
        out["unread"] = (time.perf_counter() - began) * 1000
        began = time.perf_counter()
        await index.rebuild()
        out["build"] = time.perf_counter() - began
        out["warm"] = await _timed(lambda: index.list(ListQuery(limit=50)))
        out["filtered"] = await _timed(lambda: index.list(ListQuery(status=("completed",), corpus="harbour")))
        for name, words in (
            ("one rare word", "zq04321"),
            ("a word in most sessions", "telescope"),
            ("three such words", "telescope lantern winter"),
            ("a Chinese word", "博物馆"),
        ):
            page = await index.search(words)
            assert page.items, words
            out[name] = await _timed(lambda words=words: index.search(words))
    return out


def _floor(root: Path) -> float:
    """What a look at every file costs, and nothing else."""
    best = 1e9
    for _ in range(ROUNDS):
        began = time.perf_counter()
        with os.scandir(root) as found:
            for one in found:
                one.stat(follow_symlinks=False)
        best = min(best, (time.perf_counter() - began) * 1000)
    return best


def _cold(home: Path, env: dict[str, str]) -> float:
    """Milliseconds of the first list that a fresh process asks for: the median of several processes."""
    took: list[float] = []
    for _ in range(6):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_CALL, str(home)], env=env, capture_output=True, text=True, check=True
        )
        count, ms = done.stdout.split()
        assert count == "50"
        took.append(float(ms))
    return statistics.median(took[1:])


def _command(env: dict[str, str], *words: str) -> float:
    """Milliseconds of a whole command: the best of several, byte code compiled."""
    took: list[float] = []
    for _ in range(6):
        began = time.perf_counter()
        subprocess.run([PROGRAM, *words], env=env, capture_output=True, check=True)
        took.append((time.perf_counter() - began) * 1000)
    return min(took[1:])


def measure(root: Path | None = None) -> list[Row]:
    """The rows of this bar."""
    with tempfile.TemporaryDirectory(dir=root) as directory:
        env = environment(Path(directory))
        home = Path(env["LEADLINE_HOME"])
        size = fill(home / "sessions")
        floor = _floor(home / "sessions")
        inside = anyio.run(_inside, home)
        cold = _cold(home, env)
        listed, version = _command(env, "sessions", "list"), _command(env, "--version")
    many = f"{SESSIONS:,} sessions"
    return [
        _row(f"list {many}, first page, fresh process < 100 ms", cold, "ms", floor),
        _row(f"list {many}, first page, warm < 10 ms", inside["warm"], "ms", None),
        _row(f"list {many}, completed runs over one corpus, warm", inside["filtered"], "ms", None),
        *(
            _row(f"search {many}, {name} < 50 ms", inside[name], "ms", None)
            for name in ("one rare word", "a word in most sessions", "three such words", "a Chinese word")
        ),
        _row(f"list {many} when the index is missing, first page", inside["unread"], "ms", floor),
        _row(f"read {many} into the index ({size / 1e6:.0f} MB of logs)", inside["build"], "s", None),
        _row(f"leadline sessions list, {many}, whole process", listed, "ms", version),
    ]


def _row(bar: str, value: float, unit: str, floor: float | None) -> Row:
    return Row(
        bar=bar,
        value=round(value, 2),
        unit=unit,
        floor=round(floor, 2) if floor else None,
        ratio=round(value / floor, 2) if floor else None,
    )


if __name__ == "__main__":
    for row in measure():
        print(json.dumps(row))
