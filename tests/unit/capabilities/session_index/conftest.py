"""A home with sessions as files, and an index over it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.capabilities.persistence.providers.sqlite import SqliteSessions
from leadline.capabilities.session_index.providers.local import LocalIndex
from leadline.capabilities.session_index.seam import IndexSource
from leadline.core.llm.messages import AssistantMessage, MessageSource, Text, UserMessage
from leadline.core.llm.usage import Usage
from leadline.core.session.codec import Header
from leadline.core.session.events import AssistantSaid, Event, RequestSent, TurnEnd, TurnStart, UserEntered
from leadline.core.session.log import Session
from leadline.core.session.projection import Projections
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context, Kernel
from leadline.kernel.plugin import Plugin
from leadline.research.events import (
    RESEARCH_EVENTS,
    Drafted,
    Ended,
    Leaf,
    Paragraph,
    Quote,
    QuoteRecorded,
    Report,
    Request,
    RunStatus,
    RunUsage,
    Section,
    Started,
)
from leadline.research.projections import RUNS
from leadline.testing.clock import START, ManualClock


class Watched(SessionStore):
    """A store that counts what is read of it."""

    tails: list[tuple[str, int]]
    looks = 0

    async def tail(self, session_id: str, start: int) -> AsyncGenerator[bytes]:
        self.tails.append((session_id, start))
        async for chunk in super().tail(session_id, start):
            yield chunk

    async def stamps(self) -> dict[str, str]:
        self.looks += 1
        return await super().stamps()  # pyright: ignore[reportAbstractUsage]


class WatchedFiles(Watched, JsonlSessions):
    """The default store."""


class WatchedDatabase(Watched, SqliteSessions):
    """The store in a database."""


@dataclass
class Library:
    """Sessions, and what is needed to ask for them."""

    root: Path
    kind: str = "files"
    clock: ManualClock = field(default_factory=ManualClock)
    reports: list[str] = field(default_factory=list[str])
    made: int = 0

    def __post_init__(self) -> None:
        types = EventTypes(RESEARCH_EVENTS)
        self.store: WatchedFiles | WatchedDatabase = (
            WatchedFiles(self.place, clock=self.clock, types=types)
            if self.kind == "files"
            else WatchedDatabase(self.place, clock=self.clock, types=types)
        )
        self.store.tails = []

    @property
    def place(self) -> Path:
        """Where the store keeps the sessions."""
        return self.root / ("sessions" if self.kind == "files" else "sessions.sqlite")

    @property
    def file(self) -> Path:
        return self.root / "index.sqlite"

    def log(self, session_id: str) -> Path:
        """The file of a log, to be damaged; a test that asks is about files alone."""
        if self.kind != "files":
            pytest.skip("the log is no file")
        return self.root / "sessions" / f"{session_id}.jsonl"

    def settle(self) -> None:
        """As if nothing had happened for long."""
        if self.kind == "files":
            for path in (self.root / "sessions", self.root / "sessions" / ".writing"):
                os.utime(path, (START, START + 0.5))

    @asynccontextmanager
    async def index(
        self,
        *sources: IndexSource[msgspec.Struct],
        runs: bool = True,
        store: SessionStore | None = None,
        file: Path | None = None,
    ) -> AsyncGenerator[LocalIndex]:
        """An index as a new process has it."""
        made = LocalIndex(
            store or self.store,
            file or self.file,
            Projections(),
            self.clock,
            lambda error, where: self.reports.append(where),
        )

        async def mount(ctx: Context, config: None) -> None:
            if runs:
                made.register(ctx, RUNS)
            for source in sources:
                made.register(ctx, source)

        async with Kernel() as kernel:
            await kernel.root.mount(Plugin("sources", mount))
            yield made
        made.close()

    async def open(self, session_id: str, events: Sequence[Event] = (), **header: object) -> Session:
        """A new session that stays open."""
        self.made += 1
        values = {"id": session_id, "kind": "agent", "created": START + self.made, **header}
        session = await self.store.create(msgspec.convert(values, Header))
        session.append_all([*events])
        return session

    async def add(self, session_id: str, events: Sequence[Event] = (), **header: object) -> None:
        """A new session that is closed."""
        await (await self.open(session_id, events, **header)).close()

    async def append(self, session_id: str, *events: Event) -> None:
        session = await self.store.open(session_id, repair=False)
        session.append_all([*events])
        await session.close()


def turn(number: int, asked: str, answer: str = "", *, end: bool = True, kind: str = "user") -> list[Event]:
    message = UserMessage(f"u{number}", (Text(asked),), MessageSource(kind))
    said = AssistantMessage(f"a{number}", (Text(answer),), "local/model")
    events: list[Event] = [TurnStart(turn=number), UserEntered(message=message)]
    if answer:
        events += [
            RequestSent(purpose="agent/turn", model="local/model", digest="0" * 64, messages=number),
            AssistantSaid(message=said, usage=Usage(input=100, output=10)),
        ]
    return [*events, TurnEnd(turn=number, reason="completed")] if end else events


def draft(*sentences: str, title: str = "A report") -> Drafted:
    leaves = tuple(Leaf(text=one) for one in sentences)
    return Drafted(
        report=Report(
            title=title, sections=(Section(heading="Found", blocks=(Paragraph(sentences=leaves),)),)
        )
    )


def quote(text: str, number: int = 1) -> QuoteRecorded:
    return QuoteRecorded(
        quote=Quote(
            id=f"u1.e{number}", unit="u1", source="s1", snapshot="0" * 64, start=0, end=len(text), text=text, match="exact"
        )
    )  # fmt: skip


def run(
    question: str,
    *between: Event,
    status: RunStatus | None = "completed",
    cost: float | None = None,
    corpus: str = "share",
) -> list[Event]:
    started = Started(run="r", request=Request(question=question), roots=(corpus,), model="local/model")
    ended = (
        [Ended(status=status, usage=RunUsage(calls=7, tokens=Usage(input=500), cost=cost, currency="EUR"))]
        if status
        else []
    )
    return [started, *between, *ended]


@pytest.fixture(params=["files", "database"])
async def library(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Library]:
    made = Library(tmp_path, request.param)
    store = made.store
    yield made
    await store.close()
