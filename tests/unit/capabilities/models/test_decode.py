"""A reply is one state machine: deltas, usage, one end."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.capabilities.models.providers.decode import ChatDecoder, read_usage
from leadline.capabilities.models.providers.profiles import (
    Profile,
    UsagePlaces,
    build_profile,
    shipped_profiles,
)
from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.messages import Text
from leadline.core.llm.sse import SseDecoder
from leadline.core.llm.stream import Finish, StreamEvent
from leadline.core.llm.usage import NOT_REPORTED, Usage
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec, Reply, Write, reply_steps
from leadline.testing.provider_server.counting import Reported
from leadline.testing.provider_server.speech import ChatSpeech


def profile(name: str = "local", **settings: object) -> Profile:
    return build_profile(name, shipped_profiles(), settings)


def chunk(delta: Mapping[str, object] | None = None, finish: str | None = None, **more: object) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **more})


def completed(*data: str, by: Profile | None = None, close: bool = True) -> Completion:
    decoder, assembler = ChatDecoder(by or profile()), Assembler()
    events: list[StreamEvent] = [event for part in data for event in decoder.feed(part)]
    for event in events + (decoder.close() if close else []):
        assembler.add(event)
    return assembler.completion()


@pytest.mark.case("M18")
def test_a_usage_chunk_with_empty_choices_is_usage_and_nothing_else() -> None:
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}})
    done = completed(chunk({"content": "hi"}, "stop"), usage, "[DONE]")
    assert (done.text, done.usage, done.finish.state) == ("hi", Usage(input=5, output=1), "done")


@pytest.mark.case("K01")
@pytest.mark.parametrize(
    "reported",
    [
        {"prompt_tokens": 12929, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 10880}},
        {"prompt_tokens": 12929, "completion_tokens": 40, "prompt_cache_hit_tokens": 10880},
    ],
)
def test_cached_tokens_are_not_counted_twice(reported: Mapping[str, object]) -> None:
    usage = read_usage({"usage": reported}, profile("deepseek").usage)
    assert usage == Usage(input=2049, cached_input=10880, output=40)
    assert usage is not None
    assert usage.total == 12969


def test_reasoning_is_taken_out_of_the_output_where_it_is_inside() -> None:
    reported = {
        "prompt_tokens": 1,
        "completion_tokens": 100,
        "completion_tokens_details": {"reasoning_tokens": 60},
    }
    inside = read_usage({"usage": reported}, profile().usage)
    beside = read_usage(
        {"usage": reported}, UsagePlaces(reasoning=profile().usage.reasoning, reasoning_in_output=False)
    )
    assert (inside, beside) == (
        Usage(input=1, output=40, reasoning=60),
        Usage(input=1, output=100, reasoning=60),
    )


@pytest.mark.case("K08")
@pytest.mark.case("K13")
def test_reported_usage_replaces_earlier_samples_and_no_own_count_is_added() -> None:
    samples = [
        chunk({"content": "x"}, usage={"prompt_tokens": 9, "completion_tokens": n}) for n in (5, 10, 15)
    ]
    last = json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 15}})
    assert completed(*samples, chunk(finish="stop"), last, "[DONE]").usage == Usage(input=9, output=15)


@pytest.mark.case("K17")
@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": True}, "many"])
def test_usage_that_is_missing_or_nonsense_is_not_reported(usage: object) -> None:
    assert completed(chunk({"content": "x"}, "stop", usage=usage), "[DONE]").usage == NOT_REPORTED


def test_usage_in_another_place_is_found_by_the_profile() -> None:
    moved = profile(usage={"paths": ["usage", "choices.0.usage"]})
    data = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3}}]})
    assert completed(data, by=moved).usage == Usage(input=3)


def test_an_error_is_seen_before_all_else_in_its_chunk() -> None:
    data = chunk({"content": "x"}, "stop", error={"message": "Rate limit reached", "code": 429})
    done = completed(chunk({"content": "a"}), data, chunk({"content": "b"}), "[DONE]")
    assert done.finish.state == "error"
    assert done.finish.failure == Wait("RATE_LIMIT", "Rate limit reached", status=429)
    assert done.text == "a"


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"message": "bad key", "code": 401}, "AUTH"),
        ({"message": "context_length_exceeded", "code": "x"}, "CONTEXT_WINDOW_EXCEEDED"),
        ({"message": "no more", "type": "insufficient_quota"}, "QUOTA"),
        ({"message": "too fast", "type": "rate_limit_error"}, "RATE_LIMIT"),
        ("overloaded, sorry", "SERVER"),
        ({"code": "weird"}, "SERVER"),
    ],
)
def test_an_error_inside_a_stream_is_classified(error: object, failure: str) -> None:
    done = completed(json.dumps({"error": error}))
    assert done.finish.failure is not None
    assert done.finish.failure.code == failure


def test_an_error_of_the_choice_counts_too() -> None:
    data = json.dumps(
        {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "m", "code": 502}}]}
    )
    assert completed(data).finish.failure == Wait("SERVER", "m", status=502)


@pytest.mark.parametrize(
    ("word", "state"),
    [("stop", "done"), ("tool_calls", "done"), ("length", "length"), ("content_filter", "refused")],
)
def test_finish_words_are_states(word: str, state: str) -> None:
    done = completed(chunk({"content": "x"}, word), "[DONE]")
    assert (done.finish.state, done.finish.detail) == (state, word)


def test_a_provider_that_breaks_off_is_waited_for() -> None:
    failure = completed(chunk({"content": "x"}, "insufficient_system_resource"), "[DONE]").finish.failure
    assert isinstance(failure, Wait)


def test_an_unknown_finish_word_names_the_setting_to_add_it_to() -> None:
    failure = completed(chunk({"content": "x"}, "tired"), "[DONE]").finish.failure
    assert isinstance(failure, Stop)
    assert "settings.finish" in str(failure.next_step)


def test_a_refusal_is_text_and_a_refused_end() -> None:
    done = completed(chunk({"refusal": "I can't."}), chunk(finish="stop"))
    assert (done.text, done.finish.state) == ("I can't.", "refused")


def test_deltas_behind_the_finish_reason_are_dropped() -> None:
    done = completed(
        chunk({"content": "a"}, "stop"), chunk({"content": "b"}), chunk(finish="length"), "[DONE]"
    )
    assert (done.text, done.finish.state) == ("a", "done")


def test_what_counts_as_an_end_is_the_profiles_to_say() -> None:
    strict, loose = profile("deepseek"), profile(stream_end={"finish_required": False})
    ended, open_ = chunk({"content": "a"}, "stop"), chunk({"content": "a"})
    assert completed(ended, by=strict).finish.state == "incomplete"
    assert completed(ended, "[DONE]", by=strict).finish.state == "done"
    assert completed(ended).finish.state == "done"
    assert completed(open_).finish.state == "incomplete"
    assert completed(open_, "[DONE]").finish.state == "incomplete"
    assert completed(open_, by=loose).finish.state == "done"


def test_silence_behind_the_finish_reason_ends_the_stream_unless_an_end_mark_is_due() -> None:
    silent = Wait("TIMEOUT", "silent")
    for name, state in (("local", "done"), ("deepseek", "incomplete")):
        decoder = ChatDecoder(profile(name))
        decoder.feed(chunk({"content": "a"}, "stop"))
        assert decoder.finish_seen
        assert [event.state for event in decoder.cut(silent) if isinstance(event, Finish)] == [state]


def test_a_stream_without_anything_is_an_empty_response() -> None:
    for data in ([], ["[DONE]"]):
        assert completed(*data).finish.failure == Wait(
            "EMPTY_RESPONSE", "the provider ended the stream without saying anything"
        )


@pytest.mark.parametrize("data", ["{", "[1]", "null", '"x"', "{}"])
def test_events_that_are_not_objects_are_malformed(data: str) -> None:
    failure = completed(chunk({"content": "a"}), data).finish.failure
    assert isinstance(failure, Wait)
    assert failure.code == "MALFORMED_RESPONSE"


def test_odd_shapes_of_content_and_calls_are_read() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "x"},
    ]
    calls = [
        {"function": {"name": "f", "arguments": {"a": 1}}},
        {"function": {"name": "g", "arguments": None}},
    ]
    done = completed(chunk({"content": parts}), chunk({"tool_calls": calls}), chunk(finish="tool_calls"))
    assert done.text == "x"
    assert [(call.name, call.arguments) for call in done.tool_calls] == [("f", '{"a":1}'), ("g", "{}")]


@given(st.binary(max_size=60))
def test_no_bytes_make_it_crash(noise: bytes) -> None:
    decoder, sse = ChatDecoder(profile()), SseDecoder()
    for event in sse.feed(b"data: " + noise + b"\n\n"):
        decoder.feed(event.data)
    decoder.close()


REPLY = Behaviour(
    text="grüße 漢🙂", reasoning="hm", chunk_chars=3,
    calls=(CallSpec("f", {"x": "ü"}), CallSpec("g", {"y": [1, 2]})),
)  # fmt: skip


def stream_bytes() -> bytes:
    """The body that the server writes for `REPLY`, out of its chunks."""
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    reply = Reply(REPLY, Reported(instead=usage), 0)
    (step,) = reply_steps(ChatSpeech(), reply, stream=True)
    assert isinstance(step, Write)
    _, _, rest = step.data.partition(b"\r\n\r\n")
    size, _, rest = rest.partition(b"\r\n")
    return rest[: int(size, 16)]


def read(parts: list[bytes]) -> Completion:
    decoder, sse, assembler = ChatDecoder(profile("deepseek")), SseDecoder(), Assembler()
    events = [event for part in parts for data in sse.feed(part) for event in decoder.feed(data.data)]
    for event in [*events, *decoder.close()]:
        assembler.add(event)
    return assembler.completion()


@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans())
def test_any_fragmentation_of_the_bytes_gives_the_same_message(
    data: st.DataObject, end: bytes, noisy: bool
) -> None:
    raw = stream_bytes().replace(b"\n", end)
    if noisy:
        raw = b"\xef\xbb\xbf: keep-alive" + end + end + raw.replace(end + end, end + end + b": x" + end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=10)))
    whole = read([stream_bytes()])
    assert whole.finish.state == "done"
    assert read([raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]) == whole


def test_a_stream_cut_anywhere_is_never_taken_for_a_proper_end() -> None:
    raw = stream_bytes()
    whole = read([raw])
    for at in range(len(raw)):
        cut = read([raw[:at]])
        assert cut.finish.state in ("incomplete", "error"), at
        assert cut.tool_calls == ()
        assert whole.text.startswith(cut.text)
    assert whole.content[1] == Text("grüße 漢🙂")
