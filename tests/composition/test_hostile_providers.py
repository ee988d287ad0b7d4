"""Agents over real HTTP, with providers that bend the protocol: the whole way from bytes to the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from leadline.apps.sdk.app import AgentReply, Leadline
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.usage import Usage
from leadline.core.session.events import AssistantSaid, RequestEnded, ToolAnswered
from leadline.core.session.log import Session
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer

pytestmark = pytest.mark.anyio

DONE = "data: [DONE]\n\n"


def sse(*chunks: object) -> str:
    return "".join(f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n" for chunk in chunks)


def chunk(delta: object = None, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def raw(*chunks: object, done: bool = True) -> Behaviour:
    return Behaviour("raw", message=sse(*chunks) + (DONE if done else ""))


def fragment(arguments: str, name: str | None = None, **more: object) -> dict[str, object]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return chunk({"tool_calls": [{**more, "function": function}]})


class Ran:
    """What the tools of a turn were called with, and what came of the turn."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.reply: AgentReply
        self.session: Session
        self.sent: list[str] = []

    @property
    def failure(self) -> Wait | Stop | None:
        return self.reply.end.failure

    def f(self, x: int = 0) -> str:
        """Do one thing.

        Args:
            x: a number.
        """
        self.calls.append(("f", x))
        return f"f {x}"

    def g(self, y: int = 0) -> str:
        """Do another thing.

        Args:
            y: a number.
        """
        self.calls.append(("g", y))
        return f"g {y}"


async def turn(
    home: Path,
    *replies: Behaviour | str,
    attempts: int = 1,
    tools: Sequence[Callable[..., object]] = (),
    settings: str = "{}",
    profile: str = "local",
) -> Ran:
    ran, patch = Ran(), home.with_name("patch.yml")
    patch.write_text(
        f"- {{id: loop, merge: {{retry: {{attempts: {attempts}, first_s: 0.01}}}}}}\n"
        f"- {{id: models, merge: {{providers: {{local: {{profile: {profile}, settings: {settings}}}}}}}}}\n"
    )
    async with ProviderServer(replies) as server:
        app = Leadline(
            profile="headless", model="local/m", base_url=server.base_url, home=home, patches=[patch]
        )
        for tool in (ran.f, ran.g, *tools):
            app.tool(tool)
        async with app:
            ran.reply = await app.agent("go")
            ran.session = await app.session(ran.reply.session)
        ran.sent = [str(message.get("content")) for one in server.requests for message in one.messages]
    assert ran.session.problems == []
    return ran


@pytest.mark.case("M03")
@pytest.mark.parametrize(
    ("first", "second"), [(0, 1), ("0", "1"), (0.0, 1.0), (10, 3)], ids=["int", "text", "float", "gaps"]
)
async def test_interleaved_fragments_go_to_their_calls_whatever_an_index_looks_like(
    home: Path, first: object, second: object
) -> None:
    reply = raw(
        fragment('{"x":', "f", index=first, id="a"),
        fragment('{"y":', "g", index=second, id="b"),
        fragment("1}", index=first),
        fragment("2}", index=second),
        chunk(finish="tool_calls"),
    )
    ran = await turn(home, reply, "done")
    assert (ran.calls, ran.reply.text) == ([("f", 1), ("g", 2)], "done")


async def test_a_call_in_the_old_form_of_the_protocol_runs(home: Path) -> None:
    reply = raw(
        chunk({"function_call": {"name": "f", "arguments": '{"x":'}}),
        chunk({"function_call": {"arguments": "4}"}}),
        chunk(finish="function_call"),
    )
    assert (await turn(home, reply, "done")).calls == [("f", 4)]


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([r'{"choices":[{"delta":{"content":"a\ud83d"}}]}', r'{"choices":[{"delta":{"content":"\ude00b"}}]}'], "a😀b"),
        ([r'{"choices":[{"delta":{"content":"a\ud800b\\u00e9"}}]}'], "a\N{REPLACEMENT CHARACTER}b\\u00e9"),
        ([r'{"choices":[{"delta":{"content":"\udc00a"}}]}'], "\N{REPLACEMENT CHARACTER}a"),
        ([chunk({"content": {"type": "text", "text": "ab"}})], "ab"),
        ([chunk({"content": ["a", {"type": "text", "text": "b"}]})], "ab"),
        (['{"choices":[{"delta":{"content":"ab"},"logprobs":{"x":NaN,"y":-Infinity}}]}'], "ab"),
    ],
)  # fmt: skip
async def test_texts_in_odd_shapes_arrive_whole(home: Path, chunks: list[object], text: str) -> None:
    ran = await turn(home, raw(*chunks, chunk(finish="stop")))
    assert (ran.reply.text, ran.reply.completed) == (text, True)


@pytest.mark.case("M18")
@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ('{"prompt_tokens":5,"completion_tokens":1}', Usage(input=5, output=1)),
        ('{"prompt_tokens":"5","completion_tokens":1}', Usage(input=5, output=1)),
        ('{"prompt_tokens":NaN,"completion_tokens":1}', Usage(output=1)),
        ('{"prompt_tokens":1e999,"completion_tokens":1}', Usage(output=1)),
        ("[1,2]", None),
    ],
)
async def test_usage_is_read_or_unknown_and_never_costs_the_answer(
    home: Path, usage: str, read: Usage | None
) -> None:
    ran = await turn(
        home, raw(chunk({"content": "hi"}), chunk(finish="stop"), '{"choices":[],"usage":' + usage + "}")
    )
    (said,) = [one.as_(AssistantSaid) for one in ran.session.logged if one.type == AssistantSaid.TYPE]
    assert (ran.reply.text, said.usage) == ("hi", read)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('{"error":{"message":"no such model","code":404}}', "no such model"),
        (sse({"object": "error", "message": "no such model", "code": 404}), "no such model"),
        (sse(chunk({"content": "par"})) + 'event: error\ndata: {"message":"bad key","code":401}\n\n', "bad key"),
        (sse(chunk({"content": "par"}), {"error": {"message": "bad key", "code": "401"}}), "bad key"),
    ],
)  # fmt: skip
async def test_an_error_inside_a_success_is_told_and_nothing_of_the_answer_is_kept(
    home: Path, message: str, expected: str
) -> None:
    ran = await turn(home, Behaviour("raw", message=message), attempts=3)
    assert isinstance(ran.failure, Stop)
    assert (ran.failure.message, ran.reply.text) == (expected, "")


@pytest.mark.case("M51")
@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("<html><title>504 Gateway Time-out", "504 Gateway Time-out"),
        ("<html><body><h1>504 upstream</h1> took too long", "504 upstream took too long"),
    ],
)
async def test_a_page_that_is_cut_off_or_untitled_still_says_what_it_says(
    home: Path, page: str, told: str
) -> None:
    ran = await turn(home, Behaviour("html_error", message=page))
    assert isinstance(ran.failure, Stop)
    assert ran.failure.message == f"{told}. Gave up after 1 attempts (SERVER)."


@pytest.mark.case("M26")
@pytest.mark.parametrize(
    ("retry_after", "message", "told"),
    [
        ("11180", "", "3 h 6 min"),
        (None, "Please try again in 3h6m20s.", "3 h 6 min"),
        (None, "Limit reached, resets in 2 days and 1 hour", "49 h"),
        ("1e300", "", "more than a year"),
    ],
)
async def test_a_wait_of_hours_is_told_at_once_wherever_it_is_said(
    home: Path, retry_after: str | None, message: str, told: str
) -> None:
    ran = await turn(home, Behaviour("rate_limit", retry_after=retry_after, message=message), attempts=5)
    assert isinstance(ran.failure, Stop)
    assert (ran.failure.code, ran.failure.next_step) == (
        "QUOTA",
        f"try again in {told}, or use another model",
    )


@pytest.mark.parametrize("words", ["9" * 400 + " s", "1.5 fortnights", "0x10 s"])
async def test_a_wait_that_is_no_time_is_no_wait(home: Path, words: str) -> None:
    ran = await turn(home, Behaviour("rate_limit", message=f"try again in {words}"), "ok", attempts=2)
    assert ran.reply.text == "ok"


@pytest.mark.parametrize("nested", ["[" * 100_000, '{"choices":' + "[" * 100_000])
@pytest.mark.parametrize("kind", ["raw", "invalid_request"])
async def test_json_that_is_nested_without_end_is_a_typed_failure(home: Path, nested: str, kind: str) -> None:
    reply = raw(nested) if kind == "raw" else Behaviour("html_error", status=400, message=nested)
    assert isinstance((await turn(home, reply)).failure, Stop)


@pytest.mark.case("M39")
@pytest.mark.parametrize(
    "leak",
    [
        '<tool_call>{"name":"f","arguments":{}}</tool_call>',
        '<function=f>{"x": 1}</function>',
        '<function_calls><invoke name="f"></invoke></function_calls>',
        '<|python_tag|>{"name": "f", "parameters": {"x": 1}}',
        '{"name": "f", "arguments": {"x": 1}}',
    ],
)
async def test_a_call_that_leaks_as_text_is_no_final_answer(home: Path, leak: str) -> None:
    ran = await turn(home, leak, "done")
    assert (ran.reply.text, ran.calls) == ("done", [])
    assert "a tool call written as text" in ran.sent[-1]


@pytest.mark.parametrize("opening", ["{", "<tool_call>{"])
async def test_text_that_is_nested_without_end_is_text(home: Path, opening: str) -> None:
    text = opening + '"name":' + "[" * 100_000
    assert (await turn(home, text)).reply.text == text


@pytest.mark.case("M13")
async def test_a_cut_write_is_told_the_limit_even_where_only_the_provider_knows_it(home: Path) -> None:
    cut = Behaviour(
        finish_reason="length",
        calls=(CallSpec("f", '{"x": "' + "x" * 60_000, "a"),),
        usage={"prompt_tokens": 10, "completion_tokens": 20_000},
    )
    ran = await turn(home, cut, cut, cut)
    assert ran.reply.end.reason == "max-tokens"
    assert "at the output limit of 20000 tokens 3 times in a row" in ran.reply.end.error
    assert "must stay below the output limit of 20000 tokens" in ran.sent[-1]
    assert ran.calls == []


@pytest.mark.parametrize(
    "reply",
    [
        Behaviour(text="x" * 9_000_000),
        Behaviour(reasoning="x" * 9_000_000),
        Behaviour(calls=(CallSpec("f", '{"x": 1' + " " * 9_000_000 + "}"),)),
        Behaviour(text="\x01" * 2_000_000),
    ],
    ids=["text", "reasoning", "arguments", "escapes"],
)
async def test_an_answer_that_no_log_could_hold_is_a_typed_failure(home: Path, reply: Behaviour) -> None:
    ran = await turn(home, reply, attempts=5)
    assert isinstance(ran.failure, Stop)
    assert (ran.failure.code, ran.reply.text, ran.calls) == ("UNSUPPORTED", "", [])
    assert [one.as_(RequestEnded).state for one in ran.session.logged if one.type == RequestEnded.TYPE] == [
        "error"
    ]


async def test_a_stream_that_never_ends_a_line_holds_up_nobody(home: Path) -> None:
    ran = await turn(home, Behaviour("raw", message="data: " + "x" * 70_000_000))
    assert isinstance(ran.failure, Stop)
    assert "an event that does not end" in ran.failure.message


async def test_a_stream_that_only_keeps_the_line_open_ends_at_the_total_limit(home: Path) -> None:
    slow = Behaviour("slow_success", text="x" * 500, chunk_chars=1, delay_s=0.02)
    ran = await turn(home, slow, settings="{total_timeout_s: 0.4}")
    assert isinstance(ran.failure, Stop)
    assert "was not complete after 0.4 s" in ran.failure.message


async def test_an_answer_of_megabytes_arrives(home: Path) -> None:
    ran = await turn(home, Behaviour(text="é" * 2_500_000))
    assert ran.reply.text == "é" * 2_500_000


@pytest.mark.parametrize("size", [9_000_000, 50_000_000])
async def test_a_tool_that_returns_megabytes_costs_neither_the_turn_nor_the_log(
    home: Path, size: int
) -> None:
    def dump() -> dict[str, str]:
        """Give much."""
        return {"text": "x" * size}

    ran = await turn(home, Behaviour(calls=(CallSpec("dump"),)), "done", tools=[dump])
    (answered,) = [one.as_(ToolAnswered) for one in ran.session.logged if one.type == ToolAnswered.TYPE]
    assert ran.reply.text == "done"
    assert not answered.message.is_error
    assert f"of {size + 11} characters left out here: " in ran.sent[-1]
    assert "Read them with recall: " in ran.sent[-1]
    assert sum(path.stat().st_size for path in (home / "sessions").iterdir()) < 100_000


async def test_a_tool_that_would_end_the_program_ends_its_call(home: Path) -> None:
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    ran = await turn(home, Behaviour(calls=(CallSpec("leave"),)), "done", tools=[leave])
    assert ran.reply.text == "done"
    assert "SystemExit: 3" in ran.sent[-1]


@pytest.mark.parametrize("call_id", ["call_1", "", None])
async def test_ids_that_repeat_over_turns_or_are_missing_are_told_apart(
    home: Path, call_id: str | None
) -> None:
    def asks(x: int) -> Behaviour:
        return raw(fragment(json.dumps({"x": x}), "f", index=0, id=call_id), chunk(finish="tool_calls"))

    ran = await turn(home, asks(1), asks(2), asks(3), "done")
    answers = [one.as_(ToolAnswered).message for one in ran.session.logged if one.type == ToolAnswered.TYPE]
    assert [answer.content for answer in answers] == ["f 1", "f 2", "f 3"]
    assert len({answer.call_id for answer in answers}) == 3


async def test_a_call_that_is_told_again_whole_at_the_end_of_its_stream_runs_once(home: Path) -> None:
    reply = raw(
        fragment('{"x":', "f", index=0, id="a"),
        fragment("1}", index=0),
        fragment('{"x":1}', "f", index=0, id="a"),
        chunk(finish="tool_calls"),
    )
    assert (await turn(home, reply, "done")).calls == [("f", 1)]


async def test_of_several_answers_the_first_is_taken_and_none_are_mixed(home: Path) -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": None}]}
    both = {"choices": [{"index": 1, "delta": {"content": "!"}}, {"index": 0, "delta": {"content": "lo"}}]}
    reply = raw(chunk({"content": "hel"}), other, both, chunk(finish="stop"))
    assert (await turn(home, reply)).reply.text == "hello"


@pytest.mark.case("M39")
@pytest.mark.parametrize(
    "text",
    [
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
        '{"x":1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x":1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        '{"x":1}<|tool_call_end|><|tool_calls_section_end|>',
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"x":1}<|call|>',
        'I look.<|start|>assistant<|channel|>commentary to=functions.f <|message|>{"x":1}',
    ],
    ids=["deepseek 3", "deepseek 3.1", "kimi", "harmony", "harmony without its end"],
)
async def test_a_call_in_the_markup_of_one_maker_is_no_answer_at_any_server(home: Path, text: str) -> None:
    ran = await turn(home, Behaviour(text=text, chunk_chars=5), "done")
    assert (ran.reply.text, ran.calls) == ("done", [])
    assert "tool call written as text" in ran.sent[-1]


async def test_a_call_of_gemini_that_is_sent_again_with_its_id_runs_once(home: Path) -> None:
    part = {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}}
    told = {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}
    end = {"candidates": [{"index": 0, "content": {"parts": []}, "finishReason": "STOP"}]}
    ran = await turn(
        home,
        Behaviour("raw", message=sse(told, told, end)),
        "done",
        profile="gemini",
        settings="{key_required: false}",
    )
    assert (ran.calls, ran.reply.text) == ([("f", 1)], "done")
