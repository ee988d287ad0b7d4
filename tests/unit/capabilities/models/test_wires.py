"""One suite over every wire format: the same things said give the same message, however the bytes come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.capabilities.models.providers.anthropic_decode import MessagesDecoder
from leadline.capabilities.models.providers.decode import ChatDecoder
from leadline.capabilities.models.providers.ending import Decoder
from leadline.capabilities.models.providers.gemini_decode import GeminiDecoder
from leadline.capabilities.models.providers.openai_responses_decode import ResponsesDecoder
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import Reasoning, Text, ToolCall
from leadline.core.llm.sse import SseDecoder
from leadline.core.llm.usage import NOT_REPORTED
from leadline.testing.wires import WIRES, Event, Said, WireSpeech, wire_bytes

_MADE = {
    "openai-chat": (ChatDecoder, "local"),
    "anthropic-messages": (MessagesDecoder, "anthropic"),
    "gemini": (GeminiDecoder, "gemini"),
    "openai-responses": (ResponsesDecoder, "openai-responses"),
}
CALLS = (
    ("c1", "search", '{"q":"Tidal \\u00e9 東京 🚢"}'),
    ("c2", "read", '{"n":[1,{"a":null}],"s":"x\\\\y"}'),
)
REPLIES = {
    "text": Said(text="Nine fathoms — 九 🚢."),
    "reasoning": Said(reasoning="  é\n hm ", state="c2ln+/=", text="Nine."),
    "one call": Said(calls=CALLS[:1]),
    "parallel calls": Said(calls=CALLS),
    "everything": Said(reasoning="hm", state="c2ln", text="Looking.", calls=CALLS),
}
every_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.api)
every_reply = pytest.mark.parametrize("said", REPLIES.values(), ids=list(REPLIES))


_PROFILES = {api: build_profile(profile, shipped_profiles()) for api, (_, profile) in _MADE.items()}


def decoder_for(wire: WireSpeech) -> Decoder:
    return _MADE[wire.api][0](_PROFILES[wire.api])


def completed(wire: WireSpeech, parts: Sequence[bytes], lost: Wait | None = None) -> Completion:
    """What came of a stream in these parts, which ends properly or is ``lost``."""
    sse, decoder, assembler = SseDecoder(), decoder_for(wire), Assembler(producer="p/m", call_prefix="m")
    for part in parts:
        for event in sse.feed(part):
            for one in decoder.feed(event.data, event.event):
                assembler.add(one)
    for one in decoder.close() if lost is None else decoder.cut(lost):
        assembler.add(one)
    assert decoder.ended
    assert decoder.close() == []
    return assembler.completion()


def whole(wire: WireSpeech, said: Said) -> Completion:
    assembler = Assembler(producer="p/m", call_prefix="m")
    for one in decoder_for(wire).whole(wire.whole(said)):
        assembler.add(one)
    return assembler.completion()


def meaning(done: Completion) -> tuple[object, ...]:
    """What no fragmentation may change; arguments by value, as some wires carry them as objects."""
    calls = [(call.id, call.name, json.loads(call.arguments)) for call in done.tool_calls]
    thoughts = [part for part in done.content if isinstance(part, Reasoning)]
    return done.text, calls, thoughts, done.usage, done.finish


def expected_calls(said: Said) -> list[tuple[str, str, object]]:
    return [(id_, name, json.loads(arguments)) for id_, name, arguments in said.calls]


@every_wire
@every_reply
def test_what_is_said_arrives(wire: WireSpeech, said: Said) -> None:
    done = completed(wire, [wire_bytes(wire.events(said))])
    assert done.text == said.text
    assert [(one.id, one.name, json.loads(one.arguments)) for one in done.tool_calls] == expected_calls(said)
    assert "".join(part.text for part in done.content if isinstance(part, Reasoning)) == said.reasoning
    assert {part.producer for part in done.content if isinstance(part, Reasoning)} <= {"p/m"}
    assert (done.finish.state, done.finish.failure) == ("done", None)
    assert done.usage == wire.usage


@every_wire
@every_reply
def test_a_stream_cut_in_two_at_any_byte_is_the_same_message(wire: WireSpeech, said: Said) -> None:
    data = wire_bytes(wire.events(said))
    wanted = completed(wire, [data])
    for at in range(len(data)):
        assert completed(wire, [data[:at], data[at:]]) == wanted, f"cut at byte {at}"


@every_wire
@every_reply
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_line_ends_comments_and_single_bytes_change_nothing(
    wire: WireSpeech, said: Said, line_end: str
) -> None:
    events = wire.events(said)
    data = wire_bytes(events, line_end=line_end, comments=True)
    wanted = completed(wire, [wire_bytes(events)])
    assert completed(wire, [data]) == wanted
    assert completed(wire, [data[at : at + 1] for at in range(len(data))]) == wanted
    assert completed(wire, [b"\xef\xbb\xbf" + data]) == wanted


@every_wire
@every_reply
def test_a_reply_in_one_piece_is_the_same_message(wire: WireSpeech, said: Said) -> None:
    assert meaning(whole(wire, said)) == meaning(completed(wire, [wire_bytes(wire.events(said))]))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@every_wire
def test_every_fragmentation_gives_the_same_message(wire: WireSpeech, data: st.DataObject) -> None:
    words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
    arguments = st.dictionaries(words, st.one_of(words, st.integers(-99, 99), st.lists(words, max_size=2)))
    drawn = data.draw(st.lists(arguments, max_size=3))
    said = Said(
        reasoning=data.draw(words),
        state=data.draw(st.sampled_from(["", "c2ln+/="])),
        text=data.draw(words),
        calls=tuple((f"c{at}", f"tool{at}", json.dumps(one)) for at, one in enumerate(drawn)),
        usage=data.draw(st.sampled_from(["late", "early", "missing"])),
    )
    wanted = completed(wire, [wire_bytes(wire.events(said))])
    finer = replace(
        said,
        piece=data.draw(st.integers(1, 5)),
        grouped=data.draw(st.integers(1, 4)),
        mixed=data.draw(st.booleans()),
    )
    stream = wire_bytes(wire.events(finer), line_end=data.draw(st.sampled_from(["\n", "\r\n", "\r"])))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert completed(wire, parts) == wanted


@every_wire
@every_reply
@pytest.mark.parametrize("silent", [True, False], ids=["silence", "closed"])
def test_a_stream_that_breaks_off_runs_nothing(wire: WireSpeech, said: Said, silent: bool) -> None:
    events = wire.events(replace(said, piece=3))
    lost = Wait("TIMEOUT", "the provider was silent for 300 s") if silent else None
    for count in range(len(events) - wire.settled - 1):
        done = completed(wire, [wire_bytes(events[:count])], lost)
        assert done.finish.state in ("error", "incomplete"), f"after {count} events"
        assert isinstance(done.finish.failure, Wait)
        assert done.tool_calls == ()
    for count in range(len(events) - wire.settled, len(events) + 1):
        assert completed(wire, [wire_bytes(events[:count])], lost).finish.state == "done"


@every_wire
@pytest.mark.parametrize("usage", ["late", "early", "missing"])
def test_usage_early_late_or_missing(wire: WireSpeech, usage: Literal["late", "early", "missing"]) -> None:
    said = replace(REPLIES["everything"], usage=usage)
    wanted = NOT_REPORTED if usage == "missing" else wire.usage
    for done in (completed(wire, [wire_bytes(wire.events(said))]), whole(wire, said)):
        assert (done.usage, done.finish.state) == (wanted, "done")


@every_wire
@pytest.mark.case("M43")
def test_a_reply_that_hit_the_ceiling_runs_no_calls_and_keeps_its_usage(wire: WireSpeech) -> None:
    said = Said(text="Look", calls=CALLS, end="length")
    for done in (completed(wire, [wire_bytes(wire.events(said))]), whole(wire, said)):
        assert (done.finish.state, done.text, done.tool_calls) == ("length", "Look", ())
        assert [call.id for call in done.dropped_calls] == ["c1", "c2"]
        assert done.usage == wire.usage


@every_wire
def test_a_refusal_is_told_as_one(wire: WireSpeech) -> None:
    said = Said(text="I cannot help.", end="refused")
    for done in (completed(wire, [wire_bytes(wire.events(said))]), whole(wire, said)):
        assert (done.finish.state, done.text) == ("refused", "I cannot help.")


@every_wire
def test_an_empty_answer_is_a_proper_end_and_no_answer_at_all_is_a_failure(wire: WireSpeech) -> None:
    done = completed(wire, [wire_bytes(wire.events(Said()))])
    assert (done.empty, done.content, done.finish.state) == (True, (), "done")
    nothing = completed(wire, [b": keep-alive\n\n"])
    assert isinstance(nothing.finish.failure, Wait)
    assert (nothing.finish.state, nothing.finish.failure.code) == ("error", "EMPTY_RESPONSE")


@every_wire
@pytest.mark.parametrize(
    ("kind", "family", "codes"),
    [
        ("overloaded", Wait, ("OVERLOADED", "SERVER")),
        ("rate_limit", Wait, ("RATE_LIMIT",)),
        ("overflow", Stop, ("CONTEXT_WINDOW_EXCEEDED",)),
    ],
)
def test_an_error_inside_a_200_ends_the_attempt(
    wire: WireSpeech, kind: str, family: type, codes: tuple[str, ...]
) -> None:
    events = wire.events(REPLIES["everything"])
    for before in (0, len(events) - wire.settled - 1):
        stream = [*events[:before], wire.error(kind), *events[before:]]
        done = completed(wire, [wire_bytes(stream)])
        failure = done.finish.failure
        assert failure is not None
        assert isinstance(failure, family), failure
        assert failure.code in codes
        assert (done.finish.state, done.tool_calls) == ("error", ())
        if kind == "rate_limit":
            assert isinstance(failure, Wait)
            assert failure.retry_after_s == 7


@every_wire
@pytest.mark.parametrize("data", ["{", "[]", "{}", '"text"', "nonsense"])
def test_what_is_no_event_is_told_as_malformed(wire: WireSpeech, data: str) -> None:
    done = completed(wire, [wire_bytes([Event(data)])])
    assert isinstance(done.finish.failure, Wait)
    assert done.finish.failure.code == "MALFORMED_RESPONSE"


@every_wire
def test_kinds_of_events_that_nobody_knows_are_passed_over(wire: WireSpeech) -> None:
    events = wire.events(REPLIES["everything"])
    strange = Event(json.dumps({"type": "novelty", "index": 0, "choices": [], "novel": [1]}))
    stream = [one for event in events for one in (strange, event)]
    assert completed(wire, [wire_bytes(stream)]) == completed(wire, [wire_bytes(events)])


@every_wire
def test_calls_without_arguments_have_an_empty_object(wire: WireSpeech) -> None:
    done = completed(wire, [wire_bytes(wire.events(Said(calls=(("c1", "now", "{}"),))))])
    assert done.content == (ToolCall("c1", "now", "{}"),)


def test_text_and_calls_keep_their_order() -> None:
    for wire in WIRES:
        done = completed(wire, [wire_bytes(wire.events(Said(text="a", calls=CALLS)))])
        assert [type(part) for part in done.content] == [Text, ToolCall, ToolCall]


@pytest.mark.parametrize(
    "lost",
    [
        ("response.output_text.delta", "response.function_call_arguments.delta"),
        ("response.output_item.done",),
        ("response.output_item.added",),
        ("response.output_item.added", "response.output_item.done", "response.output_text.delta"),
    ],
)
def test_what_a_gateway_leaves_out_of_responses_is_taken_once_from_what_it_repeats(
    lost: tuple[str, ...],
) -> None:
    wire = next(wire for wire in WIRES if wire.api == "openai-responses")
    said = Said(text="Looking.", calls=CALLS, piece=3)
    kept = [event for event in wire.events(said) if event.name not in lost]
    done = completed(wire, [wire_bytes(kept)])
    assert (done.text, expected_calls(said)) == (
        "Looking.",
        [(call.id, call.name, json.loads(call.arguments)) for call in done.tool_calls],
    )


def test_items_of_responses_without_a_place_are_not_taken_twice() -> None:
    wire = next(wire for wire in WIRES if wire.api == "openai-responses")
    bare = [
        Event(
            json.dumps({key: value for key, value in json.loads(event.data).items() if key != "output_index"})
        )
        for event in wire.events(Said(text="Looking.", calls=CALLS[:1]))
    ]
    done = completed(wire, [wire_bytes(bare)])
    assert (done.text, [call.id for call in done.tool_calls]) == ("Looking.", ["c1"])


def test_a_call_that_responses_list_twice_is_one_call() -> None:
    wire = next(wire for wire in WIRES if wire.api == "openai-responses")
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"q":1}'}
    listed = {"type": "response.completed", "response": {"status": "completed", "output": [item, item]}}
    again = [
        *(
            {"type": "response.output_item.added", "output_index": at, "item": {**item, "arguments": ""}}
            for at in (0, 1)
        ),
        *(
            {"type": "response.function_call_arguments.delta", "output_index": at, "delta": piece}
            for at in (0, 1)
            for piece in ('{"q"', ":1}")
        ),
        *({"type": "response.output_item.done", "output_index": at, "item": item} for at in (0, 1)),
    ]
    for events in ([listed], [*again, listed], again[1:2] + again[4:6] + [listed]):
        done = completed(wire, [wire_bytes([Event(json.dumps(event)) for event in events])])
        assert [(call.id, call.arguments) for call in done.tool_calls] == [("c1", '{"q":1}')]
