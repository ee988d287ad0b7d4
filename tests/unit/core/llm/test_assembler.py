"""Fragments become calls in one place, by one rule."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import Reasoning, Text, ToolCall
from leadline.core.llm.stream import (
    Finish,
    FinishState,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from leadline.core.llm.usage import NOT_REPORTED, Usage

D = ToolCallDelta


def completed(*events: StreamEvent, state: FinishState = "done", **options: object) -> Completion:
    assembler = Assembler(**options)  # pyright: ignore[reportArgumentType]
    for event in (*events, Finish(state)):
        assembler.add(event)
    return assembler.completion()


def calls(*events: StreamEvent) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in completed(*events).tool_calls]


@pytest.mark.case("M03")
def test_fragments_interleaved_by_index_go_to_their_own_calls() -> None:
    assert calls(
        D(0, None, "a", "f", '{"x":'),
        D(1, None, "b", "g", '{"y":'),
        D(0, arguments="1}"),
        D(1, arguments="2}"),
    ) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


@pytest.mark.case("M04")
def test_several_calls_in_one_delta_without_index_are_told_apart_by_position() -> None:
    assert calls(D(None, 0, "a", "f", "{}"), D(None, 1, "b", "g", "{}")) == [
        ("a", "f", "{}"),
        ("b", "g", "{}"),
    ]
    assert calls(D(None, 0, None, "f", "{}"), D(None, 1, None, "f", "{}")) == [
        ("call-0", "f", "{}"),
        ("call-1", "f", "{}"),
    ]


@pytest.mark.case("M05")
def test_empty_names_and_ids_never_overwrite() -> None:
    events = D(0, None, "a", "web_search", ""), D(0, None, "", "", '{"query":"x"}')
    assert calls(*events) == [("a", "web_search", '{"query":"x"}')]


@pytest.mark.case("M48")
def test_a_name_that_comes_late_names_the_call_that_is_waiting_for_it() -> None:
    assert calls(D(0, None, "a", "", ""), D(0, None, None, "bash", "{}")) == [("a", "bash", "{}")]


@pytest.mark.case("M49")
def test_a_continuation_without_index_and_id_belongs_to_the_open_call() -> None:
    assert calls(D(0, None, "a", "f", '{"x":'), D(arguments="1}")) == [("a", "f", '{"x":1}')]


@pytest.mark.case("M10")
@pytest.mark.parametrize("arguments", ["", "  ", "null", " null\n"])
def test_no_arguments_in_any_spelling_are_an_empty_object(arguments: str) -> None:
    assert calls(D(0, None, "a", "now", arguments)) == [("a", "now", "{}")]


@pytest.mark.case("M44")
def test_invalid_escapes_in_arguments_are_kept_as_received() -> None:
    raw = '{"text":"see \\upcite{b} and \\alpha"}'
    assert calls(D(0, None, "a", "f", raw[:12]), D(0, arguments=raw[12:])) == [("a", "f", raw)]


def test_an_index_that_is_always_zero_does_not_join_calls_of_different_ids() -> None:
    events = (
        D(0, None, "a", "f", '{"x":'),
        D(0, arguments="1}"),
        D(0, None, "b", "g", '{"y":'),
        D(0, arguments="2}"),
    )
    assert calls(*events) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_an_id_that_is_the_same_for_every_call_does_not_join_calls_of_different_indexes() -> None:
    events = D(0, None, "x", "f", '{"a":1}'), D(1, None, "x", "g", ""), D(1, None, "x", None, '{"b":2}')
    assert calls(*events) == [("x", "f", '{"a":1}'), ("call-1", "g", '{"b":2}')]


def test_an_id_that_is_the_same_for_every_call_does_not_join_complete_calls() -> None:
    events = D(None, None, "x", "f", '{"a":1}'), D(None, None, "x", "f", '{"a":2}')
    assert calls(*events) == [("x", "f", '{"a":1}'), ("call-1", "f", '{"a":2}')]


def test_an_id_repeated_on_every_fragment_is_one_call() -> None:
    assert calls(D(0, None, "a", "f", '{"x"'), D(0, None, "a", "f", ":1}")) == [("a", "f", '{"x":1}')]


def test_an_id_that_comes_late_belongs_to_the_open_call() -> None:
    assert calls(D(None, None, None, "f", ""), D(None, None, "a", None, "{}")) == [("a", "f", "{}")]


def test_calls_without_index_one_after_the_other_are_told_apart_by_id() -> None:
    events = D(None, None, "a", "f", "{"), D(arguments="}"), D(None, None, "b", "g", "{"), D(arguments="}")
    assert calls(*events) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_ids_that_are_missing_are_made_from_the_prefix_and_the_place() -> None:
    done = completed(D(0, name="f"), D(1, name="g"), call_prefix="m-1.call")
    assert [call.id for call in done.tool_calls] == ["m-1.call-0", "m-1.call-1"]


def test_an_id_that_the_conversation_has_used_is_replaced() -> None:
    done = completed(D(0, None, "x", "f"), call_prefix="m-2.call", taken_ids={"x"})
    assert [call.id for call in done.tool_calls] == ["m-2.call-0"]


def test_an_empty_fragment_opens_no_call() -> None:
    assert completed(D(0), TextDelta("hi")).content == (Text("hi"),)


def test_a_call_that_never_gets_a_name_is_a_malformed_response() -> None:
    done = completed(D(0, None, "a", None, '{"x":1}'))
    assert done.tool_calls == ()
    assert done.finish.state == "error"
    assert isinstance(done.finish.failure, Wait)


def test_content_keeps_the_order_of_arrival_and_joins_neighbours() -> None:
    done = completed(
        ReasoningDelta(""), ReasoningDelta("th"), ReasoningDelta("ink"), TextDelta("a"), TextDelta("b"),
        D(0, None, "c1", "f", "{}"), producer="p/m",
    )  # fmt: skip
    assert done.content == (Reasoning("think", None, "p/m"), Text("ab"), ToolCall("c1", "f", "{}"))


@pytest.mark.case("M36")
def test_reasoning_and_its_opaque_state_are_kept_byte_for_byte() -> None:
    done = completed(
        ReasoningDelta("  a\u00e9"), ReasoningDelta("\n ", opaque="c2ln="), ReasoningDelta("next")
    )
    assert done.content == (Reasoning("  a\u00e9\n ", "c2ln="), Reasoning("next"))


@pytest.mark.parametrize("state", ["length", "refused", "error", "incomplete"])
def test_calls_of_a_stream_that_did_not_end_properly_are_kept_apart(state: FinishState) -> None:
    done = completed(TextDelta("a"), D(0, None, "c", "write", '{"text":"ha'), TextDelta("b"), state=state)
    assert done.content == (Text("ab"),)
    assert [call.arguments for call in done.dropped_calls] == ['{"text":"ha']


def test_a_stream_that_was_left_is_incomplete_and_keeps_its_text() -> None:
    assembler = Assembler()
    assembler.add(TextDelta("half"))
    done = assembler.completion()
    assert (done.finish.state, done.text) == ("incomplete", "half")


def test_nothing_counts_after_the_finish() -> None:
    assembler = Assembler()
    for event in (TextDelta("a"), Finish("error", Stop("AUTH", "no")), TextDelta("b"), Finish("done")):
        assembler.add(event)
    done = assembler.completion()
    assert (done.text, done.finish.state) == ("a", "error")


@pytest.mark.case("M43")
def test_a_truncated_response_keeps_its_usage_and_says_length() -> None:
    done = completed(TextDelta("a"), UsageReport(Usage(input=10, output=20)), state="length")
    assert (done.finish.state, done.usage) == ("length", Usage(input=10, output=20))


@pytest.mark.case("K17")
def test_usage_that_was_not_reported_is_unknown_and_not_zero() -> None:
    done = completed(TextDelta("a"))
    assert done.usage == NOT_REPORTED
    assert done.usage.total is None


CALLS = st.lists(
    st.tuples(st.sampled_from(["search", "read", "write"]), st.dictionaries(st.text(max_size=3), st.integers(), max_size=3)),
    min_size=1,
    max_size=4,
)  # fmt: skip


@given(CALLS, st.sampled_from(["index", "id", "index+id", "index+id+name"]), st.booleans(), st.data())
def test_any_fragmentation_of_the_same_calls_gives_the_same_calls(
    wanted: list[tuple[str, dict[str, int]]], style: str, interleave: bool, data: st.DataObject
) -> None:
    queues: list[list[ToolCallDelta]] = []
    for place, (name, arguments) in enumerate(wanted):
        raw = json.dumps(arguments)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=4)))
        pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
        index = place if "index" in style else None
        own = f"id{place}"
        queue = [D(index, None, own, name, "")]
        for piece in pieces:
            repeated = own if "id" in style else None
            queue.append(D(index, None, repeated, name if "name" in style else None, piece))
        queues.append(queue)
    events: list[StreamEvent] = [queue.pop(0) for queue in queues] if interleave else []
    while any(queues):
        live = [queue for queue in queues if queue]
        chosen = live[data.draw(st.integers(0, len(live) - 1))] if interleave else live[0]
        events.append(chosen.pop(0))
    assert calls(*events) == [(f"id{n}", name, json.dumps(args)) for n, (name, args) in enumerate(wanted)]
