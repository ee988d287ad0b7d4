"""Keeps conversations within the windows of their models: leaves out, summarises, cuts off, and takes it back."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakKeyDictionary

import anyio
import msgspec

from leadline.core.agent.signals import GiveUp, Retry
from leadline.core.ids import Ids
from leadline.core.llm.adapter import Models, ModelsError
from leadline.core.llm.failure import Stop
from leadline.core.llm.messages import UserMessage
from leadline.core.loop.sizing import answer_room
from leadline.core.loop.thread import SNAPSHOT
from leadline.core.session.codec import compose
from leadline.core.session.derive import derive, undone
from leadline.core.session.events import RequestHeader, UserEntered, WindowChanged
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service
from leadline.window.carry import Carry
from leadline.window.compact import Bounds, Span, beginning, replacement, span_to_replace, words_said
from leadline.window.events import SummaryFailed, WindowFull
from leadline.window.gauge import Gauge, reported_ratio, table
from leadline.window.prune import prunable, pruned_size
from leadline.window.spill import RECALL, window_of
from leadline.window.summary import KIND, NoSummary, Summary, instruction, summarise
from leadline.window.trim import spans_to_trim

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.agent.signals import RequestFailed, RequestPending
    from leadline.core.llm.messages import Conversation
    from leadline.core.llm.request import ModelRef
    from leadline.core.session.events import Event
    from leadline.core.session.log import Session
    from leadline.kernel.context import Context
    from leadline.window.config import WindowConfig

OVERFLOW = "CONTEXT_WINDOW_EXCEEDED"

_SHRINKS = 0.8
"""Part of what it stands for that a replacement may have at most."""


class WindowError(LeadlineError):
    """The window of a session cannot be changed in that way."""


@dataclass(frozen=True)
class Room:
    """How much a request may have, in tokens."""

    window: int
    """What the model takes, prompt and answer together."""
    prompt: int
    """What a prompt may have at most."""
    limit: int
    """Where room is made."""
    goal: int
    """What may be left when it was."""


@dataclass
class _Course:
    """What is known of one agent while it lives."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Whoever changes the window of the agent holds it."""
    room: Room | None = None
    """As of the latest request."""
    failed_at: int = 0
    """Size of the request for which the latest summary failed."""
    overflows: tuple[int, int, int] = (0, 0, 0)
    """Turn, step, and how often its request was too large."""
    wanted: list[_Wanted] = field(default_factory=list["_Wanted"])


@dataclass
class _Wanted:
    """A summary that somebody asked for while the agent is at work."""

    done: anyio.Event = field(default_factory=anyio.Event)
    outcome: Outcome = "nothing"


Outcome: TypeAlias = "WindowChanged | NoSummary | Literal['nothing']"
"""`nothing`: there is nothing that could be summarised."""


class Window(Service, key="window"):
    """Makes room in the windows of agents: by itself before a request, and when asked to."""

    def __init__(self, ctx: Context, config: WindowConfig) -> None:
        self._ctx = ctx
        self._config = config
        self._courses: WeakKeyDictionary[Agent, _Course] = WeakKeyDictionary()
        self._unknown: set[str] = set()
        """Models whose window nobody knows, as far as that was told."""

    # when asked to

    async def compact(self, agent: Agent) -> Outcome:
        """Summarise the older part of an agent's conversation now; what came of it.

        An agent that is at work does it before its next request, one that rests stays at rest. One summary is
        made at a time.
        """
        course = self._course(agent)
        while True:
            if agent.status == "idle":
                async with course.lock:
                    if agent.status == "idle":
                        return await self._compacted(agent, self._gauge(agent), self._room(agent))
            wanted = _Wanted()
            course.wanted.append(wanted)
            try:
                async with anyio.create_task_group() as waiting:
                    for over in (wanted.done.wait, agent.when_idle):
                        waiting.start_soon(_then_cancel, over, waiting.cancel_scope)
            finally:
                if wanted in course.wanted:
                    course.wanted.remove(wanted)
            if wanted.done.is_set():
                return wanted.outcome

    def undo(self, session: Session, seq: int | None = None) -> WindowChanged:
        """Let the model see again what change number `seq` hid; None: what the latest one did.

        Later changes that rest on its summary count no more either. An undo has a number too, and can be undone by it.

        Raises:
            WindowError: there is no such change, or it counts no more.
        """
        counting = counting_changes(session)
        if seq is None:
            seq = max((one for one, changed in counting.items() if changed.undoes is None), default=None)
        if seq is None:
            raise WindowError(f"session {session.id} has no change of its window that could be undone")
        if seq not in counting:
            known = ", ".join(map(str, sorted(counting))) or "none"
            raise WindowError(
                f"event {seq} of session {session.id} is no change of its window that still counts; those that do: {known}"
            )
        if session.place.turn_open:
            raise WindowError(
                f"session {session.id} is in the middle of a turn; end it first, or wait for its end"
            )
        header = session.last(RequestHeader)
        undone = WindowChanged(
            cause="undo", undoes=seq, before=Gauge(session.derived().conversation, header).total
        )
        undone = msgspec.structs.replace(undone, after=Gauge(derived_with(session, undone), header).total)
        session.append(undone)
        return undone

    def tokens_of(self, model: ModelRef) -> int | None:
        """Tokens that a model takes, as configured here, else as its provider says; None where nobody knows."""
        own = self._config.of(str(model))
        return (
            own.window
            if own is not None and own.window is not None
            else window_of(self._ctx.get(Models), model)
        )

    # before a request

    async def pending(self, signal: RequestPending) -> None:
        """A request is about to be made."""
        agent = signal.agent
        if agent.spec.kind == KIND:
            return
        course = self._course(agent)
        room = course.room = self._room(agent, signal.window, signal.output)
        if room is None:
            self._tell_unknown(str(agent.model))
        tokens, waited = signal.tokens, course.lock.locked()
        if not waited and not course.wanted and (room is None or tokens <= room.limit):
            return
        async with course.lock:
            if waited:
                tokens = self._gauge(agent).total
            wanted, course.wanted[:] = tuple(course.wanted), ()
            if wanted:
                outcome = await self._compacted(agent, self._gauge(agent, tokens), room)
                for one in wanted:
                    one.outcome = outcome
                    one.done.set()
                if isinstance(outcome, WindowChanged):
                    return
            if room is not None and tokens > room.limit:
                await self._make_room(agent, course, room, tokens)

    async def failed(self, signal: RequestFailed) -> Retry | GiveUp | None:
        """A request failed; `Retry` where it was too large and is smaller now, else what fills the window."""
        agent, failure = signal.agent, signal.failure
        if failure.code != OVERFLOW or agent.spec.kind == KIND:
            return None
        course = self._course(agent)
        async with course.lock:
            turn, step, count = course.overflows
            count = count + 1 if (turn, step) == (signal.turn, signal.step) else 1
            course.overflows = (signal.turn, signal.step, count)
            gauge = self._gauge(agent)
            told = getattr(failure, "window_tokens", None)
            known = course.room.window if course.room is not None else None
            window = min(told, known) if told and known else told or known
            if count <= self._config.overflow_attempts:
                # It was refused, so that it has more than it may, whatever the estimate says.
                largest = max(gauge.total, window or 0)
                gauge = self._gauge(agent, largest)
                room = self._smaller(agent, window or largest, count)
                if await self._make_room(agent, course, room, largest, hard=True) < gauge.total:
                    return Retry()
            return self._give_up(agent, gauge, window)

    # the defences

    async def _make_room(
        self, agent: Agent, course: _Course, room: Room, tokens: int, *, hard: bool = False
    ) -> int:
        """Make the request smaller, the least loss first; its size then.

        `hard`: it does not fit as it is.
        """
        gauge = self._gauge(agent, tokens)
        hard = hard or tokens > room.prompt
        recall = self._recall(agent)
        prune = self._config.prune
        keep = min(int(room.prompt * prune.keep), room.goal // 2)
        stubs = prunable(gauge, keep, prune.least_tokens, recall=recall) if prune.enabled else ()
        pruned = pruned_size(gauge, stubs)
        if stubs and (pruned <= room.goal or hard):
            agent.session.append(WindowChanged(cause="prune", stubs=stubs, before=gauge.total, after=pruned))
            stubs, gauge = (), self._gauge(agent, ratio=gauge.ratio)
            if gauge.total <= room.goal:
                return gauge.total
        if self._config.compact.enabled and (hard or tokens > course.failed_at * 1.1):
            outcome = await self._compacted(agent, gauge, room)
            course.failed_at = tokens if isinstance(outcome, NoSummary) else 0
            if isinstance(outcome, WindowChanged):
                stubs, gauge = (), self._gauge(agent, ratio=gauge.ratio)
        if stubs and pruned < gauge.total * 0.9:
            agent.session.append(WindowChanged(cause="prune", stubs=stubs, before=gauge.total, after=pruned))
            gauge = self._gauge(agent, ratio=gauge.ratio)
        if gauge.total > (room.goal if hard else room.prompt):
            await self._trim(agent, gauge, room)
            gauge = self._gauge(agent, ratio=gauge.ratio)
        return gauge.total

    async def _compacted(self, agent: Agent, gauge: Gauge, room: Room | None) -> Outcome:
        """Put a summary in the place of the older part; the change, or why there is none."""
        room = room or _room_of(gauge.total * 2, 0, self._config.ratio, self._config.settle)
        header = agent.session.last(RequestHeader)
        keep = min(int(room.prompt * self._config.compact.keep), max(0, room.goal - gauge.header) // 2)
        span = span_to_replace(gauge, keep)
        if header is None or span is None:
            return "nothing"
        words = min(max(room.prompt // 16, 120), 2000)
        shown = len(gauge.messages)
        most = room.prompt - gauge.text(instruction(words))
        if gauge.total > most:
            span = beginning(gauge, span, most)
            if span is None:
                return "nothing"
            shown = span.end
        outcome: Summary | NoSummary = NoSummary("not-asked")
        for attempt in range(1, self._config.compact.attempts + 1):
            outcome = await summarise(
                self._ctx, agent, header, gauge.messages[:shown], words, self._config.compact.timeout_s
            )
            if isinstance(outcome, Summary):
                made = await self._replaced(agent, gauge, span, Bounds.of(room.prompt), outcome)
                if isinstance(made, WindowChanged):
                    return made
                outcome = made
            agent.session.append(
                SummaryFailed(
                    fault=outcome.fault, detail=outcome.detail, attempt=attempt, child=outcome.child
                )
            )
            if outcome.fault == "timeout":
                break
        return outcome

    async def _replaced(
        self, agent: Agent, gauge: Gauge, span: Span, bounds: Bounds, summary: Summary
    ) -> WindowChanged | NoSummary:
        message = await self._replacement(agent, gauge, span, bounds, summary.text)
        size = gauge.message(message)
        if size > span.tokens * _SHRINKS:
            detail = f"{size:,} tokens would stand for {span.tokens:,}"
            return NoSummary("too-long", detail, summary.child)
        return self._replace(agent, gauge, span, message, "compact", summary.child)

    async def _trim(self, agent: Agent, gauge: Gauge, room: Room) -> None:
        """Leave out the oldest part, as little of it as is enough."""
        bounds = Bounds.of(room.prompt)
        best: tuple[Span, UserMessage, int] | None = None
        for span in spans_to_trim(gauge, room.goal):
            message = await self._replacement(agent, gauge, span, bounds, "")
            facts = sum(map(gauge.message, self._facts(gauge, span)))
            left = gauge.total - span.tokens + gauge.message(message) + facts
            if left < (gauge.total if best is None else best[2]):
                best = (span, message, left)
            if left <= room.goal:
                break
        if best is not None:
            self._replace(agent, gauge, best[0], best[1], "trim", "")

    async def _replacement(
        self, agent: Agent, gauge: Gauge, span: Span, bounds: Bounds, summary: str
    ) -> UserMessage:
        return replacement(
            self._ctx.get(Ids).new("m"),
            gauge,
            span,
            summary=summary,
            words=words_said(agent.session, (*gauge.messages[: span.start], *gauge.messages[span.end :])),
            carried=await self._carried(agent),
            bounds=bounds,
            recall=self._recall(agent),
        )

    def _replace(
        self,
        agent: Agent,
        gauge: Gauge,
        span: Span,
        message: UserMessage,
        cause: Literal["compact", "trim"],
        child: str,
    ) -> WindowChanged:
        first, last = span.ids(gauge.messages)
        facts = self._facts(gauge, span)
        after = gauge.total - span.tokens + gauge.message(message) + sum(map(gauge.message, facts))
        changed = WindowChanged(
            cause=cause,
            first=first,
            last=last,
            summary=message,
            before=gauge.total,
            after=after,
            child=child,
        )
        agent.session.append_all([changed, *(UserEntered(message=fact) for fact in facts)])
        return changed

    def _facts(self, gauge: Gauge, span: Span) -> list[UserMessage]:
        """The latest statement of current facts, to be told again where the model would not see it any more."""
        told = [
            at
            for at, message in enumerate(gauge.messages)
            if isinstance(message, UserMessage) and message.source == SNAPSHOT
        ]
        if not told or not span.start <= told[-1] < span.end:
            return []
        latest = gauge.messages[told[-1]]
        assert isinstance(latest, UserMessage)
        return [msgspec.structs.replace(latest, id=self._ctx.get(Ids).new("m"))]

    async def _carried(self, agent: Agent) -> list[str]:
        try:
            told = await agent.ctx.gather(Carry(agent))
        except ExceptionGroup as error:
            self._ctx.report(error, f"what is carried over for {agent.id}")
            return []
        return [text for text in told if text]

    def _give_up(self, agent: Agent, gauge: Gauge, window: int | None) -> GiveUp:
        parts = gauge.parts()
        agent.session.append(WindowFull(window=window, tokens=gauge.total, parts=parts))
        takes = f"{agent.model} takes {window:,}" if window else f"{agent.model} refuses it"
        return GiveUp(
            Stop(
                OVERFLOW,
                f"the request has about {gauge.total:,} tokens, {takes}, and nothing more can be left out. "
                f"It has:\n{table(parts)}",
                next_step="shorten the input, offer fewer tools, or use a model with a larger window",
                window_tokens=window,
            )
        )

    # what is known

    def _tell_unknown(self, model: str) -> None:
        """Say once that no room is made for a model before one of its requests is refused."""
        if model not in self._unknown:
            self._unknown.add(model)
            logging.getLogger("leadline").info(
                "the window of %s is not known, so that room is made only when a request was refused; "
                "to say it: leadline models add %s --context-window TOKENS",
                model,
                model,
            )

    def _course(self, agent: Agent) -> _Course:
        return self._courses.setdefault(agent, _Course())

    def _gauge(self, agent: Agent, tokens: int | None = None, *, ratio: float | None = None) -> Gauge:
        """The conversation as it is now. `tokens`: what the request has by the one who sends it."""
        messages, header = agent.session.derived().conversation, agent.session.last(RequestHeader)
        if ratio is None:
            raw = Gauge(messages, header).total
            ratio = tokens / raw if tokens is not None else reported_ratio(agent.session, str(agent.model))
        return Gauge(messages, header, ratio)

    def _room(self, agent: Agent, window: int | None = None, output: int | None = None) -> Room | None:
        own = self._config.of(str(agent.model))
        if own is not None and own.window is not None:
            window = own.window
        if window is None or output is None:
            try:
                adapter, ref = self._ctx.get(Models).resolve(agent.model)
                info = adapter.info(ref.model)
            except ModelsError:
                return None
            window = window or info.context_window
            output = answer_room(window, agent.spec.options.max_tokens, info.max_output)
        if window is None:
            return None
        ratio = own.ratio if own is not None and own.ratio is not None else self._config.ratio
        return _room_of(window, output, ratio, self._config.settle)

    def _smaller(self, agent: Agent, window: int, count: int) -> Room:
        """The room behind `count` refusals: with each, a quarter less."""
        room = self._room(agent, window) or _room_of(window, 0, self._config.ratio, self._config.settle)
        part = 0.75 ** (count - 1)
        return replace(room, limit=int(room.limit * part), goal=int(room.goal * part))

    def _recall(self, agent: Agent) -> bool:
        """Whether the model of the agent can look up what it does not see."""
        return self._ctx.get(ToolRegistry).get(RECALL, agent.ctx.scope) is not None


def _room_of(window: int, output: int, ratio: float, settle: float) -> Room:
    prompt = max(1, window - min(output, window // 2))
    limit = int(prompt * ratio)
    return Room(window, prompt, limit, int(limit * settle))


def counting_changes(session: Session) -> dict[int, WindowChanged]:
    """The changes of a window that count, by their numbers; those that undo one among them."""
    changes = {line.seq: changed for line, changed in session.logged_of(WindowChanged)}
    gone = undone({seq: changed.undoes for seq, changed in changes.items() if changed.undoes is not None})
    return {seq: changed for seq, changed in changes.items() if seq not in gone}


def standing_changes(session: Session) -> dict[int, WindowChanged]:
    """Those of them that make the window smaller."""
    return {seq: changed for seq, changed in counting_changes(session).items() if changed.undoes is None}


def derived_with(session: Session, event: Event) -> Conversation:
    """What a model would see if `event` stood at the end of the log."""
    _, line, _ = compose(event, len(session), 0.0, session.digest)
    return derive([*session.logged, line])


async def _then_cancel(wait: Callable[[], Awaitable[object]], scope: anyio.CancelScope) -> None:
    await wait()
    scope.cancel()
