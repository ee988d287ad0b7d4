"""Changes of the window in a log: pair-complete whatever they name, anchored at ids, and undone without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.llm.messages import AssistantMessage, Text, ToolCall, ToolMessage, UserMessage
from leadline.core.session.codec import Logged
from leadline.core.session.derive import Derived, derive, undone
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    StepEnd,
    Stub,
    ToolAnswered,
    ToolCalled,
    TurnResumed,
    UserEntered,
    WindowChanged,
)

NAMES = [f"{kind}{number}" for kind in "uats" for number in range(6)]
"""Few ids, so that random events meet each other."""


def user(name: str, text: str = "hello") -> UserEntered:
    return UserEntered(message=UserMessage(name, (Text(text),)))


def said(name: str, *calls: str, text: str = "well") -> AssistantSaid:
    return AssistantSaid(
        message=AssistantMessage(name, (Text(text), *(ToolCall(call, "read", "{}") for call in calls)), "m/m")
    )


def answered(call: str, text: str = "result", name: str = "") -> ToolAnswered:
    return ToolAnswered(message=ToolMessage(name or f"t-{call}", call, "read", text))


def stands(first: str, last: str, name: str = "s1", text: str = "in short") -> WindowChanged:
    return WindowChanged(
        cause="compact", first=first, last=last, summary=UserMessage(name, (Text(text),)), before=2, after=1
    )


def stubbed(*names: str) -> WindowChanged:
    return WindowChanged(
        cause="prune", stubs=tuple(Stub(name, f"[{name} is elsewhere]") for name in names), before=2, after=1
    )


def undo(seq: int) -> WindowChanged:
    return WindowChanged(cause="undo", undoes=seq)


def lines(*events: Event) -> list[Logged]:
    return [
        Logged(v=1, seq=seq, t=0.0, type=event.TYPE, prev="", held=msgspec.Raw(msgspec.json.encode(event)))
        for seq, event in enumerate(events)
    ]


def shown(log: list[Logged]) -> list[str]:
    words: list[str] = []
    for message in derive(log):
        match message:
            case UserMessage() | AssistantMessage():
                words.append(message.id)
            case ToolMessage():
                words.append(f"{message.call_id}={message.content}")
    return words


WORK = (
    user("u1"), said("a1", "c1", "c2"), answered("c1"), answered("c2"), said("a2"), user("u2"), said("a3", "c3"),
    answered("c3"), said("a4"),
)  # fmt: skip


def test_a_summary_stands_where_the_span_was() -> None:
    assert shown(lines(*WORK, stands("u1", "a2"), user("u3"))) == ["s1", "u2", "a3", "c3=result", "a4", "u3"]


def test_a_stub_replaces_the_content_of_a_result_and_nothing_else() -> None:
    log = lines(*WORK, stubbed("t-c1", "u1", "a2"))
    assert shown(log)[:4] == ["u1", "a1", "c1=[t-c1 is elsewhere]", "c2=result"]
    assert shown(log)[4:] == shown(lines(*WORK))[4:]


@pytest.mark.parametrize(
    ("first", "last", "left"),
    [
        ("t-c1", "a2", ["u1", "a1", "c1=result", "c2=result", "s1", "u2"]),
        ("a1", "t-c1", ["u1", "a1", "c1=result", "c2=result", "a2", "u2"]),
        ("u1", "a1", ["s1", "a1", "c1=result", "c2=result", "a2", "u2"]),
        ("u1", "t-c2", ["s1", "a2", "u2"]),
    ],
)
def test_a_span_is_narrowed_to_whole_answers_with_their_results(
    first: str, last: str, left: list[str]
) -> None:
    log = lines(*WORK, stands(first, last))
    assert shown(log)[: len(left)] == left
    assert derive(log).pairing_problem is None


@pytest.mark.parametrize(
    "change",
    [
        stands("u1", "nobody"),
        stands("nobody", "a2"),
        stands("a2", "u1"),
        stubbed("nobody"),
        stands("u1", "a2", text=" "),
        stands("u1", "a2", name="u2"),
        WindowChanged(cause="compact", first="u1", last="a2"),
        undo(99),
        undo(0),
        undo(9),
    ],
)
def test_what_names_nothing_that_is_seen_changes_nothing(change: WindowChanged) -> None:
    assert shown(lines(*WORK, change, user("u3"))) == [*shown(lines(*WORK)), "u3"]


def test_an_answer_whose_calls_are_open_is_never_replaced() -> None:
    log = lines(*WORK, said("a5", "c5", "c6"), answered("c5"), stands("u1", "a5"), answered("c6"))
    assert shown(log) == ["s1", "a5", "c5=result", "c6=result"]
    assert derive(log).pairing_problem is None


@pytest.mark.case("C16")
def test_a_cut_stays_where_it_was_made_when_earlier_messages_appear_or_vanish() -> None:
    """The same change over a log with one answer more, one less, and a result that came late."""
    late = lines(
        user("u0"), *WORK[:2], answered("c2"), answered("c1"), *WORK[4:], stands("u1", "a2"), user("u3")
    )
    assert shown(late) == ["u0", "s1", "u2", "a3", "c3=result", "a4", "u3"]
    hidden = lines(*WORK, stands("u1", "t-c2"), stands("u2", "t-c3", "s2"), user("u3"))
    assert shown(hidden) == ["s1", "a2", "s2", "a4", "u3"]
    void = TurnResumed(turn=1, step=1, void=("a2",))
    assert shown(lines(*WORK, stands("u2", "t-c3"), void)) == [
        "u1",
        "a1",
        "c1=result",
        "c2=result",
        "s1",
        "a4",
    ]


def test_an_undone_change_leaves_no_trace_and_what_came_after_stays() -> None:
    log = lines(*WORK, stands("u1", "a2"), user("u3"), said("a5"), undo(9), user("u4"))
    assert shown(log) == [*shown(lines(*WORK)), "u3", "a5", "u4"]


def test_what_rests_on_a_summary_that_is_undone_counts_no_more_either() -> None:
    log = lines(*WORK, stands("u1", "a2"), stands("s1", "a4", "s2"), user("u3"), undo(9))
    assert shown(log) == [*shown(lines(*WORK)), "u3"]


def test_an_undo_can_be_undone() -> None:
    log = lines(*WORK, stands("u1", "a2"), undo(9), undo(10), user("u3"))
    assert shown(log) == ["s1", "u2", "a3", "c3=result", "a4", "u3"]
    assert undone({10: 9, 11: 10}) == {10}
    assert undone({10: 9, 11: 10, 12: 11}) == {9, 11}


def test_the_messages_that_a_change_hides_cannot_enter_again() -> None:
    assert shown(lines(*WORK, stands("u1", "a4"), user("u1", "again"), answered("c3"))) == ["s1"]


# --- any log, any change -----------------------------------------------------------------------------------

name = st.sampled_from(NAMES)
call = st.sampled_from([f"c{number}" for number in range(4)])
events = st.lists(
    st.one_of(
        st.builds(user, name, st.sampled_from(["hello", " "])),
        st.builds(lambda it, calls: said(it, *calls), name, st.lists(call, max_size=3, unique=True)),
        st.builds(lambda it: ToolCalled(call_id=it, name="read", arguments="{}"), call),
        st.builds(answered, call, st.just("result"), name),
        st.builds(stands, name, name, name),
        st.builds(lambda names: stubbed(*names), st.lists(name, min_size=1, max_size=3)),
        st.builds(undo, st.integers(0, 40)),
        st.builds(
            lambda names: TurnResumed(turn=1, step=1, void=tuple(names)),
            st.lists(name, min_size=1, max_size=2),
        ),
    ),
    max_size=40,
)


@given(events)
@settings(max_examples=300, deadline=None)
def test_every_prefix_of_any_log_is_pair_complete_and_the_same_however_it_is_read(log: list[Event]) -> None:
    logged = lines(*log)
    following = Derived(logged)
    for seq in range(len(logged) + 1):
        seen = following.at(seq)
        assert seen.pairing_problem is None
        assert tuple(seen) == tuple(derive(logged[:seq]))


@given(events, st.lists(st.integers(0, 40), max_size=6))
@settings(max_examples=200, deadline=None)
def test_going_back_and_forth_in_a_log_gives_what_reading_it_anew_gives(
    log: list[Event], visits: list[int]
) -> None:
    logged = lines(*log)
    following = Derived(logged)
    for seq in visits:
        at = min(seq, len(logged))
        assert tuple(following.at(at)) == tuple(derive(logged[:at]))


@given(events, st.data())
@settings(max_examples=300, deadline=None)
def test_undoing_gives_the_log_in_which_the_change_was_never_written(
    log: list[Event], data: st.DataObject
) -> None:
    changes = [seq for seq, event in enumerate(log) if isinstance(event, WindowChanged)]
    if not changes:
        return
    seq = data.draw(st.sampled_from(changes))
    if seq in undone(
        {
            at: it.undoes
            for at, it in enumerate(log)
            if isinstance(it, WindowChanged) and it.undoes is not None
        }
    ):
        return
    without = list(log)
    without[seq] = StepEnd(turn=1, step=1)
    assert tuple(derive(lines(*log, undo(seq)))) == tuple(derive(lines(*without)))


class Read(Sequence[Logged]):
    """Counts what is read of a log."""

    def __init__(self, log: list[Logged]) -> None:
        self.log = log
        self.reads = 0

    @overload
    def __getitem__(self, index: int) -> Logged: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Logged]: ...
    def __getitem__(self, index: int | slice) -> Logged | Sequence[Logged]:
        self.reads += 1
        return self.log[index]

    def __len__(self) -> int:
        return len(self.log)


def test_a_step_behind_a_change_costs_what_is_new() -> None:
    many = [event for at in range(200) for event in (user(f"q{at}"), said(f"r{at}"))]
    log = Read(lines(*many, stands("q0", "r150"), user("next")))
    following = Derived(log)
    before = following.conversation
    log.reads = 0
    log.log += lines(*[user("x")] * len(log), user("last"))[-1:]
    after = following.conversation
    assert log.reads == 1
    assert after.extends(before) and len(after) == len(before) + 1
