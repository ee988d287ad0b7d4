"""The road of one call, stage by stage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from anyio import CancelScope, Event, create_task_group, move_on_after, sleep_forever
from anyio.lowlevel import checkpoint
from pydantic import BaseModel, ConfigDict

from leadline.core.llm.messages import ToolCall
from leadline.core.session.blobs import Blobs, sha256_hex
from leadline.core.tools.approval import ApprovalDecision, ApprovalRequest, Approvals, visible
from leadline.core.tools.flight import CallLog
from leadline.core.tools.function import tool_from_function
from leadline.core.tools.invocation import Caller, ToolInvocation
from leadline.core.tools.outcome import Code, ToolOutcome
from leadline.core.tools.policy import (
    Allow,
    AroundExecute,
    Ask,
    Decision,
    Deny,
    PostExecute,
    PreExecute,
    ToolFinished,
)
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.kernel.scope import Scope
from leadline.testing.sessions import MemoryBlobs
from leadline.testing.tool_bench import ToolBench, tool_bench

pytestmark = pytest.mark.anyio

Next = Callable[[AroundExecute], Awaitable[ToolOutput]]
Review = Callable[[PostExecute], Awaitable[ToolOutput]]


class Word(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = "quiet"
    times: int = 1


class Needed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str


class Spy:
    """A body that remembers what it was called with."""

    def __init__(self, answer: object = "done") -> None:
        self.answer = answer
        self.calls: list[ToolInvocation] = []
        self.args: list[object] = []

    async def __call__(self, args: object, call: ToolInvocation) -> object:
        self.calls.append(call)
        self.args.append(args)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def tool(name: str, execute: object, **fields: object) -> Tool:
    return Tool(**{"name": name, "description": "T.", "parameters": Word, "execute": execute, **fields})  # type: ignore[arg-type]


@pytest.fixture
async def bench() -> AsyncIterator[ToolBench]:
    async with tool_bench(max_result_chars=1000) as made:
        yield made


# arguments


@pytest.mark.case("M10")
@pytest.mark.parametrize("raw", ["", "null", "  "])
async def test_a_tool_without_required_parameters_runs_on_no_arguments(bench: ToolBench, raw: str) -> None:
    spy = Spy("now")
    bench.add(tool("now", spy))
    assert (await bench.call("now", raw)).content == "now"
    assert spy.args == [Word()]


@pytest.mark.case("M10")
async def test_a_tool_with_required_parameters_says_what_is_missing(bench: ToolBench) -> None:
    spy = Spy()
    bench.add(tool("open", spy, parameters=Needed))
    outcome = await bench.call("open", "")
    assert outcome.error_code == Code.INVALID_ARGS
    assert "$.path" in outcome.content
    assert not spy.calls


@pytest.mark.case("M44")
async def test_invalid_json_goes_back_to_the_model_and_nothing_runs(bench: ToolBench) -> None:
    spy = Spy()
    bench.add(tool("say", spy))
    outcome = await bench.call("say", r'{"text":"see \upcite{b} and \alpha"}')
    assert (outcome.is_error, outcome.error_code, outcome.started) == (True, Code.INVALID_ARGS, False)
    assert "escape" in outcome.content
    assert not spy.calls


async def test_an_unknown_tool_names_the_nearest(bench: ToolBench) -> None:
    bench.add(tool("web_search", Spy()), tool("read", Spy()))
    outcome = await bench.call("websearch")
    assert outcome.error_code == Code.UNKNOWN_TOOL
    assert "Did you mean web_search?" in outcome.content
    assert "read" in outcome.content


async def test_a_tool_that_was_hidden_from_the_scope_is_unknown(bench: ToolBench) -> None:
    bench.add(tool("write", Spy()), tool("read", Spy()))
    bench.ctx = bench.ctx.scoped(Scope(label="agent"))
    bench.registry.restrict(bench.ctx, deny=["write"])
    outcome = await bench.call("write")
    assert outcome.error_code == Code.UNKNOWN_TOOL
    assert "Available: read." in outcome.content


async def test_a_raw_schema_lists_every_violation_and_gives_a_plain_dict(bench: ToolBench) -> None:
    spy = Spy()
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    }
    bench.add(tool("raw", spy, parameters=schema))
    outcome = await bench.call("raw", {"a": "x", "c": 1})
    assert outcome.error_code == Code.INVALID_ARGS
    assert outcome.content.count("\n- ") == 3
    assert (await bench.call("raw", {"a": 1, "b": "y"})).content == "done"
    assert spy.args == [{"a": 1, "b": "y"}]


async def test_a_validator_that_breaks_is_a_failure_of_the_tool(bench: ToolBench) -> None:
    from pydantic import field_validator

    class Broken(BaseModel):
        model_config = ConfigDict(extra="forbid")

        text: str = ""

        @field_validator("text", mode="before")
        @classmethod
        def explode(cls, value: object) -> object:
            raise RuntimeError("no such luck")

    bench.add(tool("say", Spy(), parameters=Broken))
    outcome = await bench.call("say", {"text": "x"})
    assert outcome.error_code == Code.TOOL_FAILED
    assert "no such luck" in outcome.content
    assert bench.reports


# policy


def answering(answer: object) -> Callable[[PreExecute], Awaitable[Decision | None]]:
    async def policy(signal: PreExecute) -> Decision | None:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    return policy


async def test_the_strictest_answer_holds_whatever_the_order_of_policies(bench: ToolBench) -> None:
    spy = Spy()
    bench.add(tool("write", spy))
    for answer in (Allow(), Deny("not here"), Ask("sure?"), None, Deny("never")):
        bench.ctx.on(PreExecute, answering(answer))
    outcome = await bench.call("write")
    assert outcome.error_code == Code.DENIED
    assert "not here; never" in outcome.content
    assert not spy.calls


async def test_no_opinion_and_allowing_let_a_call_run(bench: ToolBench) -> None:
    bench.add(tool("write", Spy()))
    bench.ctx.on(PreExecute, answering(None))
    bench.ctx.on(PreExecute, answering(Allow()))
    assert (await bench.call("write")).content == "done"


@pytest.mark.case("P37")
@pytest.mark.parametrize("answer", [TypeError("decide() takes 1 argument"), True, "allow"])
async def test_a_policy_that_fails_or_answers_nonsense_denies_and_is_told(
    bench: ToolBench, answer: object
) -> None:
    spy = Spy()
    bench.add(tool("write", spy))
    bench.ctx.on(PreExecute, answering(answer))
    outcome = await bench.call("write")
    assert outcome.error_code == Code.DENIED
    assert not spy.calls
    if isinstance(answer, Exception):
        assert "takes 1 argument" in outcome.content
        assert "listener of PreExecute by root" in outcome.content
        assert "policy" in bench.reports[0].where


class Approver(Approvals):
    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[ApprovalRequest] = []

    async def decide(self, request: ApprovalRequest) -> ApprovalDecision:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


async def test_a_question_without_an_approver_is_denied(bench: ToolBench) -> None:
    spy = Spy()
    bench.add(tool("write", spy))
    bench.ctx.on(PreExecute, answering(Ask("writes to disk")))
    outcome = await bench.call("write")
    assert outcome.error_code == Code.DENIED
    assert "nobody here can give it (writes to disk)" in outcome.content
    assert not spy.calls


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ApprovalDecision("denied", "too risky"), "too risky"),
        (ApprovalDecision("denied"), "refused"),
        pytest.param(ApprovalDecision("expired"), "nobody answered", marks=pytest.mark.case("P25")),
        (ApprovalDecision("cancelled"), "cancelled"),
        (ApprovalDecision("no-approver"), "nobody here"),
        (RuntimeError("channel closed"), "channel closed"),
        (True, "no decision"),
        (None, "no decision"),
    ],
)
async def test_only_a_plain_yes_lets_a_questioned_call_run(
    bench: ToolBench, answer: object, told: str
) -> None:
    spy = Spy()
    bench.add(tool("write", spy))
    bench.ctx.on(PreExecute, answering(Ask("sure?")))
    bench.ctx.provide(Approvals, Approver(answer))
    outcome = await bench.call("write")
    assert outcome.error_code == Code.DENIED
    assert told in outcome.content
    assert not spy.calls


async def test_what_is_approved_is_exactly_what_is_executed(bench: ToolBench) -> None:
    spy, approver = Spy(), Approver(ApprovalDecision("allowed-once"))
    bench.add(tool("write", spy, side_effects=frozenset({"writes"})))
    bench.ctx.on(PreExecute, answering(Ask("sure?")))
    bench.ctx.provide(Approvals, approver)
    outcome = await bench.call("write", '{ "times": 2,  "text": "a", "text": "b" }')
    assert outcome.content == "done"
    request = approver.asked[0]
    assert request.arguments == '{"text":"b","times":2}'
    assert spy.args == [Word(text="b", times=2)]
    assert request.digest == sha256_hex(b'write\0{"text":"b","times":2}')
    assert (request.agent_id, request.side_effects) == ("agent-1", frozenset({"writes"}))


@pytest.mark.case("P21")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm -rf ~/\u202e/gpj.", r"rm -rf ~/\u{202e}/gpj."),
        ("ls\r\x1b[2K echo hi", r"ls\u{d}\u{1b}[2K echo hi"),
        ("e\u200bcho", r"e\u{200b}cho"),
        ("ls" + " " * 500 + "; touch x", "ls" + " " * 500 + "; touch x"),
        ("中文 é", "中文 é"),
    ],
)
def test_what_is_shown_for_approval_hides_nothing(text: str, shown: str) -> None:
    assert visible(text) == shown


async def test_guards_stand_behind_the_approval_and_can_only_deny(bench: ToolBench) -> None:
    spy, order = Spy(), list[str]()
    parent = Scope(label="parent")
    child = Scope(parent, "child")
    bench.add(tool("write", spy))
    bench.ctx.on(PreExecute, answering(Ask("sure?")))
    bench.ctx.provide(Approvals, Approver(ApprovalDecision("allowed-once")))

    async def near(call: ToolInvocation) -> str | None:
        order.append("child")
        return "enough"

    bench.registry.guard(bench.ctx.scoped(child), "near", near)
    bench.registry.guard(bench.ctx.scoped(parent), "far", lambda call: order.append("parent"))
    bench.registry.guard(bench.ctx, "global", lambda call: order.append("global"))
    bench.ctx = bench.ctx.scoped(child)
    outcome = await bench.call("write")
    assert order == ["global", "parent", "child"]
    assert "enough" in outcome.content
    assert not spy.calls


async def test_a_guard_that_fails_denies(bench: ToolBench) -> None:
    def broken(call: ToolInvocation) -> str | None:
        raise KeyError("state")

    bench.add(tool("write", Spy()))
    bench.registry.guard(bench.ctx, "budget", broken)
    outcome = await bench.call("write")
    assert outcome.error_code == Code.DENIED
    assert "guard budget of root failed" in outcome.content
    assert bench.reports


async def test_a_tool_replaced_while_approval_was_awaited_does_not_run(bench: ToolBench) -> None:
    old, new = Spy("old"), Spy("new")
    effect = bench.registry.register(bench.ctx, tool("write", old))

    async def swap(signal: PreExecute) -> Decision | None:
        await effect.dispose()
        bench.registry.register(bench.ctx, tool("write", new))
        return Allow()

    bench.ctx.on(PreExecute, swap)
    outcome = await bench.call("write")
    assert outcome.error_code == Code.UNKNOWN_TOOL
    assert not old.calls
    assert not new.calls


# bodies


async def test_a_body_that_raises_is_told_to_the_model_and_reported(bench: ToolBench) -> None:
    bench.add(tool("read", Spy(FileNotFoundError("no such file: a.txt"))))
    outcome = await bench.call("read")
    assert (outcome.is_error, outcome.error_code) == (True, Code.TOOL_FAILED)
    assert "FileNotFoundError: no such file: a.txt" in outcome.content
    assert isinstance(bench.reports[0].error, FileNotFoundError)


async def test_a_body_may_fail_with_a_code_of_its_own(bench: ToolBench) -> None:
    bench.add(
        tool(
            "read", Spy(ToolOutput({"n": 1}, "Gone.", is_error=True, error_code="GONE", concludes_turn=True))
        )
    )
    outcome = await bench.call("read")
    assert (outcome.error_code, outcome.content, outcome.value) == ("GONE", "Gone.", b'{"n":1}')
    assert not outcome.concludes_turn


async def test_a_body_that_takes_too_long_is_stopped(bench: ToolBench) -> None:
    stopped = Event()

    async def slow(args: object, call: ToolInvocation) -> str:
        try:
            await sleep_forever()
        finally:
            stopped.set()
        return ""

    bench.add(tool("slow", slow, timeout_s=0.01))
    outcome = await bench.call("slow")
    assert outcome.error_code == Code.TOOL_TIMEOUT
    assert "0.01 s" in outcome.content
    assert stopped.is_set()


async def test_a_timeout_of_the_bodys_own_is_a_failure_like_any_other(bench: ToolBench) -> None:
    bench.add(tool("slow", Spy(TimeoutError("upstream")), timeout_s=60))
    assert (await bench.call("slow")).error_code == Code.TOOL_FAILED


async def test_a_body_is_tried_again_while_it_raises(bench: ToolBench) -> None:
    tries: list[int] = []

    async def flaky(args: object, call: ToolInvocation) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("reset")
        return "at last"

    bench.add(tool("fetch", flaky, attempts=3))
    assert (await bench.call("fetch")).content == "at last"
    assert not bench.reports


async def test_a_plain_function_runs_in_a_thread_and_gets_its_invocation(bench: ToolBench) -> None:
    def keyed(text: str, call: ToolInvocation) -> str:
        """Says with the key."""
        return f"{text} {call.idempotency_key}"

    bench.add(tool_from_function(keyed))
    assert (await bench.call("keyed", {"text": "hi"})).content == "hi c1/c1"


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ("text", "text"),
        ({"b": 1, "a": [True]}, '{"a":[true],"b":1}'),
        ([], "[]"),
        ({}, "{}"),
        (0, "0"),
        (False, "false"),
        (None, "(no output)"),
        ("", "(no output)"),
        (" \n", "(no output)"),
        (ToolOutput({"n": 1}, ""), "(no output)"),
    ],
)
async def test_a_result_without_content_is_rendered_and_never_empty(
    bench: ToolBench, answer: object, content: str
) -> None:
    bench.add(tool("give", Spy(answer)))
    outcome = await bench.call("give")
    assert (outcome.content, outcome.is_error) == (content, False)


@pytest.mark.parametrize("answer", [{1, 2}, {"a": float("nan")}, b"x", ToolOutput("x", 5), object()])  # type: ignore[arg-type]
async def test_a_result_that_is_not_json_is_an_error(bench: ToolBench, answer: object) -> None:
    bench.add(tool("give", Spy(answer)))
    outcome = await bench.call("give")
    assert outcome.error_code == Code.INVALID_TOOL_OUTPUT
    assert bench.reports


async def test_a_success_must_have_the_declared_shape(bench: ToolBench) -> None:
    bench.add(
        tool("good", Spy({"path": "a"}), result=Needed),
        tool("bad", Spy({"path": 1}), result=Needed),
        tool("failing", Spy(ToolOutput(None, "no", is_error=True)), result={"type": "array"}),
    )
    assert not (await bench.call("good")).is_error
    assert (await bench.call("bad")).error_code == Code.INVALID_TOOL_OUTPUT
    assert (await bench.call("failing")).error_code == Code.TOOL_FAILED


@pytest.mark.case("L03")
async def test_what_reaches_log_and_wire_is_clean_text(bench: ToolBench) -> None:
    bench.add(
        tool("run", Spy(ToolOutput({"out": "a\x00\x1b[1m"}, "\x1b[31mred\x1b[0m\x00 \udcd6\udcd0\r\n")))
    )
    outcome = await bench.call("run")
    assert outcome.content == "red \ufffd\ufffd\n"
    assert outcome.value == b'{"out":"a"}'
    assert outcome.message("m1").content.encode().decode() == outcome.content


class FullDisk(MemoryBlobs):
    def put(self, data: bytes, *, synced: bool = False) -> str:
        raise OSError("disk full")


async def test_a_long_result_keeps_head_and_tail_and_says_exactly_what_is_missing(bench: ToolBench) -> None:
    text = "".join(chr(ord("a") + at % 26) for at in range(1500))
    blobs = MemoryBlobs()
    bench.ctx.provide(Blobs, blobs)
    bench.add(tool("long", Spy(text)))
    outcome = await bench.call("long")
    head, notice, tail = outcome.content.split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) == 1000
    assert "500 of 1500 characters" in notice
    assert outcome.truncation is not None
    assert outcome.truncation.omitted_chars == 500
    assert blobs.get(outcome.truncation.blob or "") == text.encode()


async def test_a_long_result_is_kept_even_if_its_full_text_cannot_be_stored(bench: ToolBench) -> None:
    bench.ctx.provide(Blobs, FullDisk())
    bench.add(tool("long", Spy("x" * 1500)))
    outcome = await bench.call("long")
    assert not outcome.is_error
    assert outcome.truncation is not None
    assert outcome.truncation.blob is None
    assert bench.reports


@pytest.mark.case("T11")
async def test_cutting_a_result_never_loses_what_stands_in_its_value(bench: ToolBench) -> None:
    bench.add(tool("run", Spy(ToolOutput({"exit_code": 4}, "x" * 29_000))))
    assert (await bench.call("run")).value == b'{"exit_code":4}'


# around and after


async def test_wrappers_stand_around_the_body_and_may_answer_without_it(bench: ToolBench) -> None:
    spy = Spy()

    async def cached(signal: AroundExecute, call_next: Next) -> ToolOutput:
        return ToolOutput("from the cache")

    bench.add(tool("read", spy))
    bench.ctx.on(AroundExecute, cached)
    outcome = await bench.call("read")
    assert (outcome.content, outcome.started) == ("from the cache", False)
    assert not spy.calls


async def test_what_a_wrapper_answers_is_validated_like_a_bodys(bench: ToolBench) -> None:
    async def cached(signal: AroundExecute, call_next: Next) -> ToolOutput:
        return ToolOutput({"path": 1})

    bench.add(tool("read", Spy({"path": "a"}), result=Needed))
    bench.ctx.on(AroundExecute, cached)
    assert (await bench.call("read")).error_code == Code.INVALID_TOOL_OUTPUT


async def test_a_wrapper_that_fails_is_a_failure_that_nobody_reviews(bench: ToolBench) -> None:
    reviewed: list[PostExecute] = []

    async def broken(signal: AroundExecute, call_next: Next) -> ToolOutput:
        await call_next(signal)
        raise LookupError("trace lost")

    async def review(signal: PostExecute, call_next: Review) -> ToolOutput:
        reviewed.append(signal)
        return await call_next(signal)

    bench.add(tool("read", Spy()))
    bench.ctx.on(AroundExecute, broken)
    bench.ctx.on(PostExecute, review)
    outcome = await bench.call("read")
    assert outcome.error_code == Code.TOOL_FAILED
    assert "trace lost" in outcome.content
    assert not reviewed


@pytest.mark.parametrize("refused_by", ["policy", "arguments", "unknown", "body"])
async def test_denials_and_failures_pass_the_review_and_stay_errors(
    bench: ToolBench, refused_by: str
) -> None:
    seen: list[str | None] = []

    async def review(signal: PostExecute, call_next: Review) -> ToolOutput:
        seen.append(signal.output.error_code)
        return ToolOutput("all is well", concludes_turn=True)

    bench.add(tool("read", Spy(ValueError("x")) if refused_by == "body" else Spy()))
    if refused_by == "policy":
        bench.ctx.on(PreExecute, answering(Deny("no")))
    bench.ctx.on(PostExecute, review)
    outcome = await bench.call(
        "raed" if refused_by == "unknown" else "read", "{" if refused_by == "arguments" else "{}"
    )
    assert seen == [outcome.error_code]
    assert outcome.is_error
    assert outcome.content == "all is well"
    assert not outcome.concludes_turn


async def test_a_failing_policy_is_not_reviewed(bench: ToolBench) -> None:
    reviewed: list[PostExecute] = []

    async def review(signal: PostExecute, call_next: Review) -> ToolOutput:
        reviewed.append(signal)
        return await call_next(signal)

    bench.add(tool("read", Spy()))
    bench.ctx.on(PreExecute, answering(RuntimeError("x")))
    bench.ctx.on(PostExecute, review)
    await bench.call("read")
    assert not reviewed


async def test_reviewers_replace_one_after_the_other_and_may_block(bench: ToolBench) -> None:
    async def redact(signal: PostExecute, call_next: Review) -> ToolOutput:
        return await call_next(signal.replaced((signal.output.content or "").replace("secret", "*")))

    async def forbid(signal: PostExecute, call_next: Review) -> ToolOutput:
        if "*" in (signal.output.content or ""):
            return signal.blocked("it held a secret")
        return await call_next(replace(signal))

    bench.add(tool("safe", Spy(ToolOutput(None, "plain"))), tool("leak", Spy(ToolOutput(None, "a secret"))))
    bench.ctx.on(PostExecute, redact)
    bench.ctx.on(PostExecute, forbid)
    assert (await bench.call("safe")).content == "plain"
    leak = await bench.call("leak")
    assert (leak.content, leak.is_error) == ("it held a secret", True)


async def test_a_result_whose_review_fails_is_withheld(bench: ToolBench) -> None:
    async def broken(signal: PostExecute, call_next: Review) -> ToolOutput:
        raise RuntimeError("pattern file missing")

    bench.add(tool("read", Spy("a secret")))
    bench.ctx.on(PostExecute, broken)
    outcome = await bench.call("read")
    assert outcome.is_error
    assert "secret" not in outcome.content + outcome.value.decode()
    assert "pattern file missing" in outcome.content


async def test_the_stages_come_in_one_order(bench: ToolBench) -> None:
    order: list[str] = []

    async def body(args: object, call: ToolInvocation) -> str:
        order.append("body")
        return "x"

    async def pre(signal: PreExecute) -> Decision:
        order.append("pre")
        return Ask("?")

    async def around(signal: AroundExecute, call_next: Next) -> ToolOutput:
        order.append("around in")
        output = await call_next(signal)
        order.append("around out")
        return output

    async def post(signal: PostExecute, call_next: Review) -> ToolOutput:
        order.append("post")
        return await call_next(signal)

    class Yes(Approvals):
        async def decide(self, request: ApprovalRequest) -> ApprovalDecision:
            order.append("approval")
            return ApprovalDecision("allowed-once")

    async def sync() -> None:
        order.append("sync")

    bench.add(tool("write", body, side_effects=frozenset({"writes"})))
    bench.ctx.provide(Approvals, Yes())
    bench.registry.guard(bench.ctx, "guard", lambda call: order.append("guard"))
    bench.ctx.on(PreExecute, pre)
    bench.ctx.on(AroundExecute, around)
    bench.ctx.on(PostExecute, post)
    bench.ctx.on(ToolFinished, lambda signal: order.append("finished"))
    log = CallLog(
        on_call=lambda call: order.append("call"),
        on_result=lambda call, outcome: order.append("result"),
        before_side_effect=sync,
        on_asked=lambda request: order.append("asked"),
        on_decided=lambda request, decision: order.append(decision.outcome),
    )
    await bench.pipeline.call(ToolCall("c1", "write", "{}"), bench.caller, log)
    assert order == [
        "call", "pre", "asked", "sync", "approval", "allowed-once", "guard",
        "sync", "around in", "body", "around out", "post", "result", "finished",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("effects", "synced"),
    [
        (set(), False),
        ({"reads"}, False),
        ({"writes"}, True),
        ({"network"}, True),
        ({"reads", "network"}, True),
    ],
)
async def test_the_log_is_synced_before_side_effects_other_than_reads(
    bench: ToolBench, effects: set[str], synced: bool
) -> None:
    bench.add(tool("act", Spy(), side_effects=frozenset(effects)))
    outcome = await bench.call("act")
    assert ("sync" in bench.lines) is synced
    assert outcome.side_effects == tuple(sorted(effects))


async def test_nothing_runs_when_the_log_cannot_be_synced(bench: ToolBench) -> None:
    spy = Spy()
    bench.add(tool("act", spy, side_effects=frozenset({"writes"})))

    async def full() -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await bench.pipeline.call(ToolCall("c1", "act", "{}"), bench.caller, CallLog(before_side_effect=full))
    assert not spy.calls


# cancellation


async def test_a_wrapper_that_shields_itself_cannot_keep_the_body_from_its_callers_cancellation(
    bench: ToolBench,
) -> None:
    running, ended = Event(), list[str]()

    async def endless(args: object, call: ToolInvocation) -> str:
        running.set()
        try:
            await sleep_forever()
        finally:
            ended.append("body")
        return ""

    async def shield(signal: AroundExecute, call_next: Next) -> ToolOutput:
        output = ToolOutput(None)
        with CancelScope(shield=True):
            output = await call_next(signal)
        ended.append(output.error_code or "ok")
        return output

    bench.add(tool("endless", endless))
    bench.ctx.on(AroundExecute, shield)
    async with create_task_group() as group:
        group.start_soon(bench.call, "endless")
        await running.wait()
        group.cancel_scope.cancel()
    assert ended == ["body", Code.ABORTED]


async def test_a_wrappers_deadline_ends_the_body_before_the_wrapper_goes_on(bench: ToolBench) -> None:
    ended: list[str] = []

    async def endless(args: object, call: ToolInvocation) -> str:
        try:
            await sleep_forever()
        finally:
            with CancelScope(shield=True):
                await checkpoint()
            ended.append("body")
        return ""

    async def deadline(signal: AroundExecute, call_next: Next) -> ToolOutput:
        with move_on_after(0.01):
            return await call_next(signal)
        ended.append("wrapper")
        return ToolOutput(None, "Too slow.", is_error=True, error_code="TOO_SLOW")

    bench.add(tool("endless", endless))
    bench.ctx.on(AroundExecute, deadline)
    assert (await bench.call("endless")).error_code == "TOO_SLOW"
    assert ended == ["body", "wrapper"]


async def test_cancellation_propagates_once_the_body_has_ended(bench: ToolBench) -> None:
    running, ended = Event(), Event()

    async def tidy(args: object, call: ToolInvocation) -> str:
        running.set()
        try:
            await sleep_forever()
        finally:
            with CancelScope(shield=True):
                await checkpoint()
                ended.set()
        return ""

    bench.add(tool("tidy", tidy))
    outcomes: list[ToolOutcome] = []

    async def call() -> None:
        outcomes.append(await bench.call("tidy"))

    async with create_task_group() as group:
        group.start_soon(call)
        await running.wait()
        group.cancel_scope.cancel()
    assert ended.is_set()
    assert not outcomes


# nested calls


async def test_a_body_calls_another_tool_through_the_whole_pipeline(bench: ToolBench) -> None:
    inner = Spy("inner")

    async def outer(args: object, call: ToolInvocation) -> str:
        first = await call.invoke("inner", {"text": "a"})
        second = await call.invoke("forbidden")
        third = await call.invoke("nowhere", {"x": object()})
        return f"{first.content}, {second.error_code}, {third.error_code}"

    async def policy(signal: PreExecute) -> Decision | None:
        return Deny("no") if signal.call.name == "forbidden" else None

    bench.add(
        tool("outer", outer),
        tool("inner", inner, side_effects=frozenset({"writes"})),
        tool("forbidden", Spy()),
    )
    bench.ctx.on(PreExecute, policy)
    assert (await bench.call("outer")).content == "inner, DENIED, UNKNOWN_TOOL"
    call = inner.calls[0]
    assert (call.call_id, call.root_call_id, call.depth) == ("c1:1", "c1", 1)
    assert call.idempotency_key == "c1/c1:1"
    assert bench.lines == [
        "call c1",
        "nested call c1:1", "sync", "nested result c1:1 ok",
        "nested call c1:2", "nested result c1:2 DENIED",
        "nested call c1:3", "nested result c1:3 UNKNOWN_TOOL",
        "result c1 ok",
    ]  # fmt: skip


async def test_tools_that_call_each_other_come_to_an_end(bench: ToolBench) -> None:
    async def again(args: object, call: ToolInvocation) -> str:
        return (await call.invoke("again")).content

    bench.add(tool("again", again))
    assert "levels deep" in (await bench.call("again")).content


async def test_an_invocation_made_by_hand_says_that_it_cannot_call(bench: ToolBench) -> None:
    from leadline.core.tools.errors import NestedCallError

    with pytest.raises(NestedCallError, match="pipeline"):
        await ToolInvocation("c1", "outer", Caller(bench.ctx)).invoke("inner")
