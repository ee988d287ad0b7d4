"""Invariants: who owns them, when they are asked, and that each of those of logs can be broken and is then told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from leadline.core.agent.invariants import INBOX
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from leadline.core.llm.request import CallConfig, ModelRef, ToolSchema
from leadline.core.loop.invariants import ATTEMPTS, HEADERS
from leadline.core.session.codec import Header
from leadline.core.session.errors import AppendVetoed
from leadline.core.session.events import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalOutcome,
    AssistantChunk,
    AssistantSaid,
    Event,
    InboxSpliced,
    LlmRetry,
    RequestEnded,
    RequestHeader,
    RequestSent,
    SeedEnded,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnResumed,
    TurnStart,
    UserEntered,
)
from leadline.core.session.invariants import (
    AnyInvariant,
    InvariantBroken,
    Invariants,
    InvariantsConfig,
    LiveInvariant,
    LogInvariant,
    broken_in,
)
from leadline.core.session.log import BeforeAppend, Session
from leadline.core.session.rules import INSIDE_STEP, TURNS
from leadline.core.tools.invariants import CALLS
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import ConfigError, DuplicateName
from leadline.kernel.plugin import Plugin
from leadline.orchestration.subagent.invariants import ONE_RESULT
from leadline.testing.sessions import MemorySessions, memory_session

pytestmark = pytest.mark.anyio

OPEN = (TurnStart(turn=1), StepStart(turn=1, step=1))


def user(id_: str = "m-1", *claims: str, turn: int | None = 1, step: int | None = 1) -> UserEntered:
    return UserEntered(message=UserMessage(id_, (Text("hello"),)), turn=turn, step=step, claims=claims)


def queued(*ids: str, removed: tuple[str, ...] = (), position: int | None = None) -> InboxSpliced:
    return InboxSpliced(
        target="next-turn",
        inserted=tuple(UserMessage(one, (Text("hello"),)) for one in ids),
        removed=removed,
        position=position,
        outcome="dropped" if removed else None,
    )


def sent(attempt: int = 1, digest: str = "a" * 64, turn: int = 1, step: int = 1) -> RequestSent:
    return RequestSent(
        turn=turn, step=step, attempt=attempt, purpose="agent/turn", model="m/m", digest=digest, messages=1
    )


def ended(attempt: int = 1, digest: str = "a" * 64, *, passes: bool = True) -> RequestEnded:
    failure = Wait("OVERLOADED", "busy") if passes else Stop("AUTH", "no key")
    return RequestEnded(turn=1, step=1, attempt=attempt, digest=digest, state="error", failure=failure)


def retry(attempt: int = 1, delay_s: float = 1.0) -> LlmRetry:
    return LlmRetry(turn=1, step=1, attempt=attempt, delay_s=delay_s, failure=Wait("OVERLOADED", "busy"))


def said(*calls: str, attempt: int = 1, digest: str = "a" * 64, step: int = 1) -> AssistantSaid:
    content = (Text("well"), *(ToolCall(one, "look", "{}") for one in calls))
    return AssistantSaid(
        turn=1,
        step=step,
        attempt=attempt,
        digest=digest,
        message=AssistantMessage(f"a-{step}-{attempt}", content, "m/m"),
    )


def called(
    id_: str, name: str = "look", arguments: str = "{}", root: str | None = None, turn: int = 1
) -> ToolCalled:
    return ToolCalled(turn=turn, step=1, call_id=id_, name=name, arguments=arguments, root_call_id=root)


def answered(
    id_: str, name: str = "look", *, error: bool = False, code: str | None = None, synthesised: bool = False
) -> ToolAnswered:
    return ToolAnswered(
        turn=1,
        step=1,
        message=ToolMessage(f"r-{id_}", id_, name, "fine", is_error=error),
        error_code=code,
        synthesised=synthesised,
    )


def asked(call_id: str) -> ApprovalAsked:
    return ApprovalAsked(turn=1, step=1, call_id=call_id, reason="sure?", digest="d" * 64)


def decided(call_id: str, outcome: ApprovalOutcome = "allowed-once") -> ApprovalDecided:
    return ApprovalDecided(turn=1, step=1, call_id=call_id, outcome=outcome)


def header(reason: str = "initial", *tools: str, system: str = "") -> RequestHeader:
    return RequestHeader(
        config=CallConfig(ModelRef("m", "m")),
        system=system,
        tools=tuple(ToolSchema(one, "", {}) for one in tools),
        reason=reason,  # pyright: ignore[reportArgumentType]
    )


BROKEN: list[tuple[LogInvariant[object], Sequence[Event], str]] = [
    (TURNS, [TurnStart(turn=2)], "turn 2 starts behind turn 0"),
    (TURNS, [*OPEN, StepEnd(turn=1, step=1), StepStart(turn=1, step=3)], "step 3 starts behind step 1"),
    (TURNS, [OPEN[0], StepStart(turn=1, step=2)], "step 2 starts behind step 0"),
    (INSIDE_STEP, [OPEN[0], user()], "user/message names step 1 of turn 1"),
    (INSIDE_STEP, [*OPEN, user(step=2)], "names step 2 of turn 1"),
    (INSIDE_STEP, [*OPEN, StepEnd(turn=1, step=1), sent()], "request/sent names step 1"),
    (
        INSIDE_STEP,
        [*OPEN, AssistantChunk(turn=2, step=1, text="x")],
        "assistant/chunk names step 1 of turn 2",
    ),
    (INSIDE_STEP, [*OPEN, called("c", turn=2)], "tool/call names step 1 of turn 2"),
    (ATTEMPTS, [*OPEN, sent(2)], "attempt 2 follows attempt 0"),
    (ATTEMPTS, [*OPEN, sent(), sent(2)], "is sent while attempt 1 is in flight"),
    (ATTEMPTS, [*OPEN, sent(), said(), sent(2)], "in a step that has its answer"),
    (ATTEMPTS, [*OPEN, said()], "assistant/message ends attempt 1, the latest is 0"),
    (ATTEMPTS, [*OPEN, sent(), said(digest="b" * 64)], "is of request bbbbbbbbbbbb"),
    (ATTEMPTS, [*OPEN, sent(), ended(2)], "request/ended ends attempt 2"),
    (ATTEMPTS, [*OPEN, sent(), retry()], "the latest is 1 and in flight"),
    (ATTEMPTS, [*OPEN, sent(), ended(passes=False), retry()], "did not fail in a way that may pass"),
    (ATTEMPTS, [*OPEN, sent(), ended(), retry(), retry()], "did not fail in a way that may pass"),
    (ATTEMPTS, [*OPEN, sent(), ended(), retry(delay_s=-1)], "waits -1 s"),
    (ATTEMPTS, [*OPEN, sent(), AssistantChunk(turn=1, step=1, attempt=2, text="x")], "text of attempt 2"),
    (HEADERS, [header("change")], "is the first"),
    (HEADERS, [header(), header("change")], "says what the latest header says"),
    (HEADERS, [header(), header("initial", system="x")], "is not the first"),
    (HEADERS, [header("initial", "b", "a")], "not in order"),
    (HEADERS, [header("initial", "a", "a")], "not unique"),
    (CALLS, [*OPEN, said("c"), called("d")], "was not asked for"),
    (CALLS, [*OPEN, said("c"), called("c", arguments='{"a":1}')], "is not what the model asked for"),
    (CALLS, [*OPEN, said("c", "d"), called("d"), called("c")], "behind a later call"),
    (CALLS, [*OPEN, said("c"), called("n", root="c")], "for call c, which does not run"),
    (CALLS, [*OPEN, said("c"), answered("c")], "which was not made in this step"),
    (CALLS, [*OPEN, said("c"), called("c"), answered("c", "write")], "is of write, the call was of look"),
    (CALLS, [*OPEN, said("c"), called("c"), answered("c", error=True)], "an error without a code"),
    (
        CALLS,
        [*OPEN, said("c", "d"), called("c"), called("d"), answered("d"), answered("c")],
        "behind that of a later call",
    ),
    (CALLS, [*OPEN, said("c"), asked("c")], "asked about call c, which does not run"),
    (CALLS, [*OPEN, said("c"), called("c"), decided("c")], "and nobody was asked"),
    (CALLS, [*OPEN, said("c"), called("c"), asked("c"), answered("c")], "ran, and nobody had allowed it"),
    (
        CALLS,
        [*OPEN, said("c"), called("c"), asked("c"), decided("c", "denied"), answered("c")],
        "ran, and nobody had allowed it",
    ),
    (INBOX, [user("m-1", "m-1")], "claims m-1, not queued"),
    (INBOX, [queued("m-1"), queued("m-1")], "m-1 enter the queue a second time"),
    (INBOX, [queued(removed=("m-1",))], "leave the queue without being in it"),
    (INBOX, [queued("m-1", position=1)], "position 1 is not one of a queue of 0"),
    (INBOX, [queued("m-1"), SeedEnded(), user("m-1", "m-1")], "claims m-1, not queued"),
    (
        ONE_RESULT,
        [answered("c", "structured_output"), answered("d", "structured_output")],
        "hands in a second result",
    ),
]  # pyright: ignore[reportAssignmentType]


def failing(rule: LogInvariant[object], events: Sequence[Event]) -> str | None:
    """What the rule says of the last event; the others must hold."""
    session = memory_session()
    known = rule.init(session.header)
    for seq, event in enumerate(events):
        reason = rule.check(known, BeforeAppend(session, event, seq))
        if reason is not None:
            assert seq == len(events) - 1, f"event {seq}: {reason}"
            return reason
        known = rule.apply(known, event)
    return None


@pytest.mark.parametrize(("rule", "events", "told"), BROKEN, ids=lambda it: getattr(it, "name", None))
def test_a_rule_tells_what_breaks_it(rule: LogInvariant[object], events: Sequence[Event], told: str) -> None:
    assert told in str(failing(rule, events))


ALL: tuple[LogInvariant[object], ...] = (TURNS, INSIDE_STEP, ATTEMPTS, HEADERS, CALLS, INBOX, ONE_RESULT)  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_a_turn_that_was_cut_off_and_taken_up_breaks_no_rule(rule: LogInvariant[object]) -> None:
    events: list[Event] = [
        queued("m-1"),
        *OPEN,
        user("m-1", "m-1"),
        header(),
        sent(),
        TurnResumed(turn=1, step=1),
        sent(2),
        said("c", "d", attempt=2),
        called("c"),
        called("n", root="c"),
        answered("c"),
        TurnResumed(turn=1, step=1),
        called("d"),
        answered("d"),
        StepEnd(turn=1, step=1),
        TurnEnd(turn=1, reason="interrupted"),
        TurnResumed(turn=1, step=1),
        StepStart(turn=1, step=2),
        sent(step=2),
        said(step=2),
        StepEnd(turn=1, step=2),
        TurnEnd(turn=1, reason="completed"),
        SeedEnded(),
        TurnStart(turn=2),
    ]
    assert failing(rule, events) is None


def test_a_stored_log_is_held_to_the_rules_that_need_nothing_else() -> None:
    session = memory_session(events=[TurnStart(turn=3), TurnEnd(turn=3, reason="completed")])
    ((seq, rule, reason),) = broken_in(session, [TURNS, INSIDE_STEP])  # pyright: ignore[reportArgumentType]
    assert (seq, rule.name, reason) == (0, "session/turns", "turn 3 starts behind turn 0")


# the registry


def no_turns(name: str = "test/no-turns") -> LogInvariant[int]:
    """No turn has an odd number: counts the events that it was shown."""
    return LogInvariant(
        name=name,
        holds="Turns are even.",
        init=lambda header: 0,
        check=lambda count, before: (
            f"{count} turns before" if isinstance(before.event, TurnStart) and before.event.turn % 2 else None
        ),
        apply=lambda count, event: count + 1,
        types=frozenset((TurnStart.TYPE,)),
    )


async def held(
    ctx: Context, config: InvariantsConfig, *invariants: AnyInvariant
) -> tuple[Invariants, Session]:
    store = MemorySessions()
    registry = Invariants(ctx, config)
    for one in invariants:
        registry.register(ctx, one)
    store.veto(ctx, registry.veto)
    return registry, await store.create(Header(id="s-1", kind="agent", created=0.0))


ON = InvariantsConfig(enabled=True)


async def test_an_event_that_breaks_one_is_not_written_and_the_session_goes_on(
    broken_invariants: list[InvariantBroken],
) -> None:
    async with Kernel() as kernel:
        _, session = await held(kernel.root, ON, no_turns())  # pyright: ignore[reportArgumentType]
        with pytest.raises(AppendVetoed, match=r"test/no-turns is broken in session s-1, event 0: 0 turns"):
            session.append(TurnStart(turn=1))
        assert len(session) == 0
        session.append(TurnStart(turn=2))
        assert [one.name for one in broken_invariants] == ["test/no-turns"]
        broken_invariants.clear()


async def test_what_was_refused_or_not_written_is_not_counted(
    broken_invariants: list[InvariantBroken],
) -> None:
    async with Kernel() as kernel:
        _, session = await held(kernel.root, ON, no_turns())  # pyright: ignore[reportArgumentType]
        end = TurnEnd(turn=2, reason="completed")
        session.append_all([TurnStart(turn=2), end])
        with pytest.raises(AppendVetoed, match=r"event 4: 2 turns before"):
            session.append_all([TurnStart(turn=4), structs.replace(end, turn=4), TurnStart(turn=5)])
        assert len(session) == 2
        with pytest.raises(AppendVetoed, match=r"event 2: 1 turns before"):
            session.append(TurnStart(turn=5))
        broken_invariants.clear()


async def test_what_is_in_a_log_already_is_known_and_not_held_against_it(
    broken_invariants: list[InvariantBroken],
) -> None:
    async with Kernel() as kernel:
        registry, session = await held(kernel.root, InvariantsConfig())
        session.append_all([TurnStart(turn=1), TurnEnd(turn=1, reason="completed")])
        registry = Invariants(kernel.root, ON)
        registry.register(kernel.root, no_turns())
        with pytest.raises(InvariantBroken, match="1 turns before"):
            registry.veto(BeforeAppend(session, TurnStart(turn=3), 2))
        broken_invariants.clear()


async def test_without_refuse_it_is_reported_and_written(broken_invariants: list[InvariantBroken]) -> None:
    async with Kernel() as kernel:
        _, session = await held(kernel.root, InvariantsConfig(enabled=True, refuse=False), no_turns())  # pyright: ignore[reportArgumentType]
        session.append(TurnStart(turn=1))
        assert len(session) == 1
        assert isinstance(kernel.reports[-1].error, InvariantBroken)
        broken_invariants.clear()


@pytest.mark.parametrize(
    ("config", "on"),
    [
        (InvariantsConfig(), False),
        (ON, True),
        (InvariantsConfig(enabled=True, allow=("session/*",)), False),
        (InvariantsConfig(enabled=True, allow=("test/*",)), True),
        (InvariantsConfig(enabled=True, block=("test/*",)), False),
        (InvariantsConfig(enabled=True, allow=("test/*",), block=("*/no-turns",)), False),
    ],
)
async def test_block_is_stronger_than_allow_and_off_is_off(
    config: InvariantsConfig, on: bool, broken_invariants: list[InvariantBroken]
) -> None:
    watched: list[Context] = []
    live = LiveInvariant("test/live", "Nothing.", lambda ctx, tell: watched.append(ctx))
    async with Kernel() as kernel:
        registry, session = await held(kernel.root, config, no_turns(), live)  # pyright: ignore[reportArgumentType]
        assert registry.on("test/no-turns") is on
        assert bool(watched) is registry.on("test/live")
        if on:
            with pytest.raises(AppendVetoed):
                session.append(TurnStart(turn=1))
        else:
            session.append(TurnStart(turn=1))
    broken_invariants.clear()


async def test_a_rule_leaves_with_its_owner() -> None:
    async with Kernel() as kernel:
        registry, session = await held(kernel.root, ON)

        async def apply(ctx: Context, config: None) -> None:
            registry.register(ctx, no_turns())

        fiber = await kernel.root.mount(Plugin("owner", apply))
        assert [one.name for one in registry] == ["test/no-turns"]
        with pytest.raises(DuplicateName, match="test/no-turns"):
            registry.register(kernel.root, no_turns())
        await fiber.dispose()
        assert not [*registry]
        session.append(TurnStart(turn=1))


async def test_a_name_says_who_owns_the_rule() -> None:
    async with Kernel() as kernel:
        with pytest.raises(ConfigError, match="<owner>/<what>"):
            Invariants(kernel.root).register(kernel.root, no_turns("turns"))


async def test_where_they_are_off_nobody_is_asked_before_an_append(tmp_path: Path) -> None:
    from leadline.core.session.store import SessionStore
    from leadline.testing.agents import agent_stack
    from leadline.testing.scripted import ScriptedModel

    async with agent_stack(tmp_path, ScriptedModel(["one"]), invariants=False) as stack:
        assert not stack.ctx.get(SessionStore).hooks.vetoes
        assert len([*stack.ctx.get(Invariants)]) > 8
