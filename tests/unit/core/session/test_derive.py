"""From a log to messages: pair-complete whatever the log holds, and at the cost of what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast, overload

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.session.codec import Logged
from leadline.core.session.derive import NOT_STARTED_TEXT, OUTCOME_UNKNOWN_TEXT, Derived, derive
from leadline.core.session.events import (
    AnswerState,
    AssistantChunk,
    AssistantSaid,
    Event,
    SeedEnded,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    UserEntered,
)
from leadline.core.session.repair import repairs
from leadline.testing.conformance.session_store import asked, whole_turn
from leadline.testing.sessions import memory_session


def user(name: str, text: str = "hello") -> UserEntered:
    return UserEntered(message=UserMessage(name, (Text(text),)))


def said(name: str, *calls: str, text: str = "", state: AnswerState = "done") -> AssistantSaid:
    parts = (*((Text(text),) if text else ()), *(ToolCall(call, "read", "{}") for call in calls))
    return AssistantSaid(message=AssistantMessage(name, parts, "m/m"), state=state)


def called(call: str) -> ToolCalled:
    return ToolCalled(call_id=call, name="read", arguments="{}")


def answered(call: str, text: str = "result", name: str = "") -> ToolAnswered:
    return ToolAnswered(message=ToolMessage(name or f"t-{call}", call, "read", text))


def lines(*events: Event) -> list[Logged]:
    """The events as a log would have them, without what appending refuses."""
    return [
        Logged(v=1, seq=seq, t=0.0, type=event.TYPE, prev="", held=msgspec.Raw(msgspec.json.encode(event)))
        for seq, event in enumerate(events)
    ]


def shown(conversation: Sequence[Message]) -> list[str]:
    """Each message as a short word: `user u1`, `said a1 c1 c2`, `c1=result`."""
    words: list[str] = []
    for message in conversation:
        match message:
            case UserMessage():
                words.append(f"user {message.id}")
            case AssistantMessage():
                words.append(" ".join(["said", message.id, *(call.id for call in message.tool_calls)]))
            case ToolMessage():
                texts = {NOT_STARTED_TEXT: "not started", OUTCOME_UNKNOWN_TEXT: "unknown"}
                words.append(f"{message.call_id}={texts.get(message.content, message.content)}")
    return words


@pytest.mark.case("S20")
def test_a_call_without_a_result_gets_one_right_behind_its_siblings() -> None:
    log = lines(
        user("u1"), said("a1", "c1", "c2", "c3"), called("c1"), answered("c1"), called("c2"), user("u2", "hi")
    )
    assert shown(derive(log)) == [
        "user u1",
        "said a1 c1 c2 c3",
        "c1=result",
        "c2=unknown",
        "c3=not started",
        "user u2",
    ]
    assert derive(log).pairing_problem is None


@pytest.mark.case("M34")
def test_what_comes_between_a_call_and_its_result_goes_behind_the_results() -> None:
    log = lines(said("a1", "c1", "c2"), user("u1"), answered("c2"), user("u2"), answered("c1"), user("u3"))
    expected = ["said a1 c1 c2", "c1=result", "c2=result", "user u1", "user u2", "user u3"]
    assert shown(derive(log)) == expected


def test_results_come_in_the_order_of_the_calls() -> None:
    log = lines(said("a1", "c1", "c2", "c3"), answered("c3", "3"), answered("c1", "1"), answered("c2", "2"))
    assert shown(derive(log)) == ["said a1 c1 c2 c3", "c1=1", "c2=2", "c3=3"]


def test_second_results_and_results_of_no_call_are_left_out() -> None:
    log = lines(
        answered("c0"), said("a1", "c1", "c2"), answered("c1", "first"), answered("c1", "second"), answered("c9"),
        answered("c2"), answered("c2", "late"), user("u1"),
    )  # fmt: skip
    assert shown(derive(log)) == ["said a1 c1 c2", "c1=first", "c2=result", "user u1"]


def test_one_call_id_may_be_used_again_by_a_later_answer() -> None:
    log = lines(said("a1", "c"), answered("c", "one"), said("a2", "c"), answered("c", "two"), said("a3", "c"))
    assert shown(derive(log)) == ["said a1 c", "c=one", "said a2 c", "c=two", "said a3 c", "c=not started"]


def test_one_call_id_twice_in_one_answer_counts_once() -> None:
    log = lines(said("a1", "c", "c"), answered("c"))
    assert shown(derive(log)) == ["said a1 c", "c=result"]


@pytest.mark.case("S21")
@pytest.mark.parametrize(
    "empty",
    [
        AssistantMessage("a", (), "m/m"),
        AssistantMessage("a", (Text(""),), "m/m"),
        AssistantMessage("a", (Text(" \n"),), "m/m"),
        AssistantMessage("a", (Reasoning("thought, but said nothing"),), "m/m"),
    ],
)
def test_an_empty_answer_derives_nothing_and_stays_in_the_log(empty: AssistantMessage) -> None:
    session = memory_session(events=[user("u1"), AssistantSaid(message=empty), user("u2")])
    assert shown(session.derived().conversation) == ["user u1", "user u2"]
    assert len(list(session.of(AssistantSaid))) == 1


def test_empty_prompts_and_empty_parts_are_left_out() -> None:
    parts = (Text(""), Text("see"), ImageRef("0" * 64, "image/png"))
    log = lines(
        user("u1", "  "),
        UserEntered(message=UserMessage("u2", ())),
        UserEntered(message=UserMessage("u3", parts)),
    )
    (message,) = derive(log)
    assert isinstance(message, UserMessage) and message.content == parts[1:]


@pytest.mark.parametrize("state", ["length", "refused", "interrupted"])
def test_an_answer_that_did_not_end_properly_keeps_its_text_and_loses_its_calls(state: str) -> None:
    log = lines(
        said("a1", "c1", text="I was say", state=cast("AnswerState", state)), called("c1"), answered("c1")
    )
    conversation = derive(log)
    assert shown(conversation) == ["said a1"]
    assert cast("AssistantMessage", conversation[0]).text == "I was say"
    assert shown(derive(lines(said("a1", "c1", state=cast("AnswerState", state))))) == []


def test_a_message_that_entered_twice_is_shown_once() -> None:
    log = lines(user("u1"), user("u1"), said("a1", text="x"), said("a1", text="x"), user("u1"))
    assert shown(derive(log)) == ["user u1", "said a1"]


def test_results_of_nested_calls_are_not_shown() -> None:
    nested = ToolAnswered(message=ToolMessage("t", "c1:1", "read", "inner"), root_call_id="c1")
    log = lines(said("a1", "c1"), called("c1"), nested, answered("c1", "outer"))
    assert shown(derive(log)) == ["said a1 c1", "c1=outer"]


def test_chunks_and_foreign_events_derive_nothing() -> None:
    other = Logged(v=1, seq=9, t=0.0, type="plugin/thing", prev="", held=msgspec.Raw(b'{"x":1}'))
    broken = Logged(
        v=1, seq=9, t=0.0, type="user/message", prev="", derives=True, held=msgspec.Raw(b'{"x":1}')
    )
    newer = Logged(v=9, seq=9, t=0.0, type="user/message", prev="", derives=True, held=msgspec.Raw(b"{}"))
    log = [*lines(user("u1"), AssistantChunk(text="Hel"), SeedEnded()), other, broken, newer]
    assert shown(derive(log)) == ["user u1"]


def test_the_view_at_a_number_is_what_the_model_saw_then() -> None:
    log = lines(user("u1"), said("a1", "c1"), called("c1"), answered("c1"), user("u2"))
    derived = Derived(log)
    forwards = [shown(derived.at(seq)) for seq in range(6)]
    assert forwards == [
        [],
        ["user u1"],
        ["user u1", "said a1 c1", "c1=not started"],
        ["user u1", "said a1 c1", "c1=unknown"],
        ["user u1", "said a1 c1", "c1=result"],
        ["user u1", "said a1 c1", "c1=result", "user u2"],
    ]
    assert [shown(derived.at(seq)) for seq in reversed(range(6))] == forwards[::-1]


class Counting(Sequence[Logged]):
    """A log that counts how often it is read."""

    def __init__(self, items: list[Logged]) -> None:
        self.items, self.reads = items, 0

    @overload
    def __getitem__(self, index: int) -> Logged: ...
    @overload
    def __getitem__(self, index: slice) -> list[Logged]: ...
    def __getitem__(self, index: int | slice) -> Logged | list[Logged]:
        self.reads += 1
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Logged]:
        raise AssertionError("the whole log was read")


def test_a_step_costs_what_is_new_and_not_what_is_old() -> None:
    log = Counting(lines(*(user(f"u{number}") for number in range(500))))
    derived = Derived(log)
    before = derived.conversation
    assert log.reads == 500
    log.items.extend(lines(said("a1", text="x"), user("v1")))
    after = derived.conversation
    assert log.reads == 502 and len(after) == 502
    assert after._store is before._store, "the settled messages were copied"


def test_what_is_settled_never_changes() -> None:
    log = lines(
        user("u1"), said("a1", "c1", "c2"), answered("c2"), user("u2"), answered("c1"), said("a2", text="x")
    )
    derived, previous = Derived(log), Conversation()
    for seq in range(len(log) + 1):
        now = derived.at(seq)
        assert [*now][: previous.settled] == [*previous][: previous.settled]
        previous = now


CALLS = ("c1", "c2", "c3")
EVENTS = st.one_of(
    st.builds(user, st.sampled_from(["u1", "u2", "u3"]), st.sampled_from(["", "hello"])),
    st.builds(
        lambda name, calls, text, state: said(name, *calls, text=text, state=state),
        st.sampled_from(["a1", "a2", "a3", "a4"]),
        st.lists(st.sampled_from((*CALLS, "")), max_size=4),
        st.sampled_from(["", " ", "text"]),
        st.sampled_from(["done", "length", "interrupted"]),
    ),
    st.sampled_from(CALLS).map(called),
    st.builds(answered, st.sampled_from(CALLS), st.sampled_from(["", "x"])),
    st.just(TurnEnd(turn=1, reason="aborted")),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_any_order_of_events_is_pair_complete_at_every_point(events: list[Event]) -> None:
    log = lines(*events)
    derived = Derived(log)
    for seq in range(len(log) + 1):
        conversation = derived.at(seq)
        assert conversation.pairing_problem is None
        assert shown(conversation) == shown(derive(log[:seq]))
        users = [message.id for message in conversation if isinstance(message, UserMessage)]
        assert len(users) == len(set(users))
        for message in conversation:
            if isinstance(message, AssistantMessage):
                assert message.tool_calls or message.text.strip()


# --- repair ------------------------------------------------------------------------------------------------


@pytest.mark.case("S20")
def test_the_repair_of_a_log_derives_what_was_derived_without_it() -> None:
    session = memory_session(events=asked())
    before = session.derived().conversation
    fixed = repairs(session)
    assert [event.TYPE for event in fixed] == ["tool/result", "tool/result", "step/end", "turn/end"]
    session.append_all(fixed)
    assert [*session.derived().conversation] == [*before]
    assert repairs(session) == []
    codes = [(event.error_code, event.started) for event in session.of(ToolAnswered) if event.synthesised]
    assert codes == [("TOOL_OUTCOME_UNKNOWN", True), ("TOOL_NOT_STARTED", False)]


def test_a_log_that_ended_properly_needs_no_repair() -> None:
    assert repairs(memory_session(events=whole_turn())) == []
    assert repairs(memory_session()) == []
