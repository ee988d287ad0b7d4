"""Children: started whole or refused, held to their output, and gone when they are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from leadline.core.agent.agent import Agent
from leadline.core.agent.spec import AgentSpec, TurnBudget
from leadline.core.llm.adapter import Models
from leadline.core.llm.failure import Stop, Wait
from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.messages import MessageSource, UserMessage
from leadline.core.llm.request import LlmRequest
from leadline.core.llm.usage import Usage
from leadline.core.loop.audit import audit
from leadline.core.loop.config import LoopConfig, RetryConfig
from leadline.core.session.events import AssistantSaid, TurnEnd, UserEntered
from leadline.core.spend.limiter import LimiterConfig
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.policy import PostExecute
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.orchestration.subagent import plugin
from leadline.orchestration.subagent.errors import (
    OutputSchemaError,
    SubagentDepthError,
    SubagentNotStarted,
    UnknownDriver,
    UnsupportedCapability,
)
from leadline.orchestration.subagent.seam import (
    SubagentDriver,
    SubagentRequest,
    SubagentResult,
    SubagentRun,
    Subagents,
)
from leadline.testing.agents import AgentStack, agent_stack
from leadline.testing.scripted import Call, Playable, Reply, ScriptedModel

pytestmark = pytest.mark.anyio

PLAN = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 2, "pattern": "^[A-Z]"},
        "steps": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "effort": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["title", "steps"],
}
GOOD = {"title": "Plan", "steps": ["a"]}


@asynccontextmanager
async def stacked(
    folder: Path, model: ScriptedModel, loop: LoopConfig | None = None, limiter: LimiterConfig | None = None
) -> AsyncGenerator[AgentStack]:
    async with agent_stack(folder, model, loop=loop, limiter=limiter, plugins=(plugin.plugin,)) as stack:
        yield stack


async def parent_of(stack: AgentStack) -> Agent:
    return await stack.agents.create(AgentSpec())


async def done(stack: AgentStack, request: SubagentRequest) -> SubagentResult:
    run = await stack.ctx.get(Subagents).start(request)
    with anyio.fail_after(10):
        result = await run.result()
    await run.dispose()
    await run.dispose()
    assert await run.result() is result
    return result


def output(value: object) -> Call:
    return Call("structured_output", value)  # pyright: ignore[reportArgumentType]


def last_text(request: LlmRequest) -> str:
    message = request.conversation[-1]
    return "".join(getattr(part, "text", "") for part in message.content) if message.content else ""


# starting


async def test_a_spawned_child_starts_fresh_and_ends_gone(tmp_path: Path) -> None:
    model = ScriptedModel(["the parent's", "the child's"])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        parent.send("hello")
        await parent.when_idle()
        before = stack.kernel.snapshot()
        result = await done(stack, SubagentRequest(parent=parent, prompt="work", persona="You work."))
        assert (result.output, result.stop_reason, result.diagnostic) == ("the child's", "completed", None)
        assert len(model.requests[1].conversation) == 1
        assert model.requests[1].system == "You work."
        assert stack.agents.live == (parent,)
        assert stack.kernel.snapshot() == before


async def test_a_childs_log_names_its_line_of_descent(tmp_path: Path) -> None:
    async with stacked(tmp_path, ScriptedModel(["ok"])) as stack:
        parent = await parent_of(stack)
        run = await stack.ctx.get(Subagents).start(
            SubagentRequest(parent=parent, prompt="work", label="scout")
        )
        assert run.agent is not None
        header = run.agent.session.header
        assert (header.parent, header.depth, header.label, header.cwd) == (
            parent.id,
            1,
            "scout",
            parent.session.header.cwd,
        )
        await run.result()
        entered = next(run.agent.session.of(UserEntered))
        assert entered.message.source == MessageSource("agent", parent.id)
        await run.dispose()


@pytest.mark.case("K08")
async def test_a_fork_sees_the_completed_turns_and_answers_for_its_own_alone(tmp_path: Path) -> None:
    usage = Usage(input=100, output=10)
    model = ScriptedModel([Reply("first", usage=usage), Reply(hang=True)])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        parent.send("one")
        await parent.when_idle()
        parent.send("under way")
        await anyio.wait_all_tasks_blocked()
        model.push(Reply("", usage=usage), Reply("", usage=usage))
        result = await done(stack, SubagentRequest(parent=parent, prompt="work", mode="fork"))
        texts = [m.content[0] for m in model.requests[2].conversation if isinstance(m, UserMessage)]
        assert [getattr(part, "text", "") for part in texts] == ["one", "work"]
        assert result.output == ""
        assert result.usage == Usage(input=200, output=20)
        assert result.stop_reason == "error"
        await parent.dispose()


async def test_a_fork_of_a_parent_without_a_completed_turn_starts_fresh(tmp_path: Path) -> None:
    model = ScriptedModel(["ok"])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="work", mode="fork"))
        assert result.stop_reason == "completed"
        assert len(model.requests[0].conversation) == 1


@pytest.mark.case("A05")
async def test_a_child_that_would_be_too_deep_is_refused(tmp_path: Path) -> None:
    async with stacked(tmp_path, ScriptedModel()) as stack:
        agent = await parent_of(stack)
        for _ in range(3):
            agent = await stack.agents.create(AgentSpec(parent=agent))
        with pytest.raises(SubagentDepthError) as caught:
            await stack.ctx.get(Subagents).start(SubagentRequest(parent=agent, prompt="work"))
        assert (caught.value.attempted, caught.value.maximum) == (4, 3)


async def test_what_a_driver_cannot_do_is_refused_before_anything_starts(tmp_path: Path) -> None:
    class Simple(SubagentDriver):
        name = "simple"
        capabilities = frozenset(())

        async def start(self, request: SubagentRequest) -> SubagentRun:
            raise AssertionError("not reached")

    async with stacked(tmp_path, ScriptedModel()) as stack:
        parent, subagents = await parent_of(stack), stack.ctx.get(Subagents)
        subagents.register(stack.ctx, Simple())
        with pytest.raises(UnsupportedCapability) as caught:
            await subagents.start(
                SubagentRequest(parent=parent, prompt="w", driver="simple", output_schema=PLAN, persona="x")
            )
        assert caught.value.capabilities == ("output_schema", "persona")
        with pytest.raises(UnknownDriver, match="in-process, simple"):
            await subagents.start(SubagentRequest(parent=parent, prompt="w", driver="other"))


async def test_a_bad_schema_or_tool_starts_nothing(tmp_path: Path) -> None:
    async with stacked(tmp_path, ScriptedModel()) as stack:
        parent, subagents = await parent_of(stack), stack.ctx.get(Subagents)
        before = stack.kernel.snapshot()
        with pytest.raises(OutputSchemaError):
            await subagents.start(SubagentRequest(parent=parent, prompt="w", output_schema={"type": "array"}))
        with pytest.raises(SubagentNotStarted, match="no_such_tool"):
            await subagents.start(SubagentRequest(parent=parent, prompt="w", tools=("no_such_tool",)))
        assert stack.kernel.snapshot() == before
        assert [entry.id for entry in await stack.sessions.list()] == [parent.id]


@pytest.mark.case("A21")
async def test_five_children_started_in_one_message_all_run(tmp_path: Path) -> None:
    def respond(request: LlmRequest) -> Playable:
        if request.purpose.name == "subagent/turn":
            return "child done"
        if len(request.conversation) == 1:
            return Reply(calls=tuple(Call("delegate", {"n": n}) for n in range(5)))
        return "all done"

    async with stacked(tmp_path, ScriptedModel(respond)) as stack:
        others = [await parent_of(stack) for _ in range(2)]

        async def delegate(args: object, call: ToolInvocation) -> str:
            result = await done(
                stack, SubagentRequest(parent=stack.agents.get(str(call.agent_id)), prompt="work")
            )
            return result.output

        stack.tools.register(
            stack.ctx,
            Tool(
                "delegate", "Delegates.", {"type": "object", "properties": {"n": {}}}, delegate, parallel=True
            ),
        )
        parent = await parent_of(stack)
        for agent in (parent, *others):
            agent.send("go")
        with anyio.fail_after(10):
            for agent in (parent, *others):
                await agent.when_idle()
        assert next(m for m in reversed(list(parent.session.of(AssistantSaid)))).message.text == "all done"
        assert len(stack.agents) == 3
        assert len(await stack.sessions.list()) == 3 + 15


# what a child may do


def add_tools(stack: AgentStack, *names: str) -> None:
    async def ok(args: object, call: ToolInvocation) -> str:
        return "ok"

    for name in names:
        stack.tools.register(stack.ctx, Tool(name, f"The tool {name}.", {"type": "object"}, ok))


def offered(request: LlmRequest) -> list[str]:
    return [tool.name for tool in request.tools]


async def test_a_child_has_at_most_what_its_parent_has(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: "ok")
    async with stacked(tmp_path, model) as stack:
        add_tools(stack, "read", "write", "search")
        parent = await stack.agents.create(AgentSpec(tools_allow=("read", "search")))
        own = Tool("own", "The child's own.", {"type": "object"}, _ok)
        await done(stack, SubagentRequest(parent=parent, prompt="w"))
        await done(stack, SubagentRequest(parent=parent, prompt="w", tools=("read",), own_tools=(own,)))
        await done(stack, SubagentRequest(parent=parent, prompt="w", tools=()))
        assert [offered(request) for request in model.requests] == [["read", "search"], ["own", "read"], []]
        with pytest.raises(SubagentNotStarted, match="write"):
            await done(stack, SubagentRequest(parent=parent, prompt="w", tools=("write",)))


async def test_a_guard_over_the_parent_holds_for_the_child(tmp_path: Path) -> None:
    model = ScriptedModel([Call("read"), "ok"])
    async with stacked(tmp_path, model) as stack:
        add_tools(stack, "read")
        parent = await parent_of(stack)
        stack.tools.guard(parent.ctx, "no reading", lambda call: "not today" if call.name == "read" else None)
        await done(stack, SubagentRequest(parent=parent, prompt="w"))
        assert "not today" in str(model.requests[1].conversation[-1])


async def _ok(args: object, call: ToolInvocation) -> str:
    return "ok"


# the declared output


async def test_the_output_is_what_the_child_hands_in(tmp_path: Path) -> None:
    model = ScriptedModel([Reply("here", (output(GOOD),))])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="plan", output_schema=PLAN))
        assert (result.structured, result.stop_reason) == (GOOD, "completed")
        assert offered(model.requests[0]) == ["structured_output"]
        assert "structured_output" in model.requests[0].system
        assert stack.tools.view(None) == {}


@pytest.mark.case("A11")
async def test_every_violation_goes_back_to_the_child_within_its_turn(tmp_path: Path) -> None:
    bad = {"title": "p", "steps": [], "effort": 9}
    model = ScriptedModel([output(bad), output({**GOOD, "effort": 5})])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        run = await stack.ctx.get(Subagents).start(
            SubagentRequest(parent=parent, prompt="p", output_schema=PLAN)
        )
        result = await run.result()
        told = str(model.requests[1].conversation[-1])
        for place in ("$.title", "$.steps", "$.effort"):
            assert place in told
        assert result.structured == {**GOOD, "effort": 5}
        assert run.agent is not None and run.agent.session.place.turn == 1
        await run.dispose()


async def test_what_a_schema_cannot_say_is_checked_by_the_caller(tmp_path: Path) -> None:
    def check(value: JsonValue) -> Sequence[str]:
        assert isinstance(value, dict)
        return [] if value["title"] != "Plan" else ["the title is taken", "be specific"]

    model = ScriptedModel([output(GOOD), output({**GOOD, "title": "Better"})])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        result = await done(
            stack, SubagentRequest(parent=parent, prompt="p", output_schema=PLAN, check=check)
        )
        told = str(model.requests[1].conversation[-1])
        assert "the title is taken" in told and "be specific" in told
        assert isinstance(result.structured, dict) and result.structured["title"] == "Better"


async def test_nothing_runs_behind_the_accepted_output(tmp_path: Path) -> None:
    ran: list[str] = []
    model = ScriptedModel([Reply(calls=(output(GOOD), Call("act"), output({**GOOD, "title": "Other"})))])
    async with stacked(tmp_path, model) as stack:

        async def act(args: object, call: ToolInvocation) -> str:
            ran.append("act")
            return "ok"

        stack.tools.register(stack.ctx, Tool("act", "Acts.", {"type": "object"}, act))
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="p", output_schema=PLAN))
        assert ran == []
        assert result.structured == GOOD
        assert len(model.requests) == 1


async def test_an_output_whose_result_is_blocked_is_not_kept(tmp_path: Path) -> None:
    model = ScriptedModel([output(GOOD), output({**GOOD, "title": "Other"})])
    async with stacked(tmp_path, model) as stack:

        async def block(
            signal: PostExecute, call_next: Callable[[PostExecute], Awaitable[ToolOutput]]
        ) -> ToolOutput:
            first = len(model.requests) == 1
            return signal.blocked("think again") if first else await call_next(signal)

        stack.ctx.on(PostExecute, block)
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="p", output_schema=PLAN))
        assert result.structured == {**GOOD, "title": "Other"}


@pytest.mark.parametrize("outer_fails", [False, True])
async def test_an_output_inside_another_call_waits_for_that_call(tmp_path: Path, outer_fails: bool) -> None:
    model = ScriptedModel([Call("run"), output({**GOOD, "title": "Second"})])
    async with stacked(tmp_path, model) as stack:

        async def run(args: object, call: ToolInvocation) -> str:
            outcome = await call.invoke("structured_output", GOOD)
            assert not outcome.is_error
            if outer_fails:
                raise RuntimeError("the code failed later")
            return "ran"

        stack.tools.register(stack.ctx, Tool("run", "Runs code.", {"type": "object"}, run))
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="p", output_schema=PLAN))
        assert result.structured == ({**GOOD, "title": "Second"} if outer_fails else GOOD)
        assert len(model.requests) == (2 if outer_fails else 1)


@pytest.mark.case("A18")
async def test_a_missing_field_is_asked_for_once_with_the_exact_error(tmp_path: Path) -> None:
    model = ScriptedModel(['Here: {"title":"Tea"} ok', 'Sorry. {"title":"Tea","steps":["boil"]}'])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="p", output_schema=PLAN))
        assert "'steps' is a required property" in last_text(model.requests[1])
        assert result.structured == {"title": "Tea", "steps": ["boil"]}
        assert result.stop_reason == "completed"


async def test_a_second_answer_of_no_use_is_a_typed_failure(tmp_path: Path) -> None:
    model = ScriptedModel(["no", "still no"])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="p", output_schema=PLAN))
        assert (result.stop_reason, result.structured) == ("error", None)
        assert result.diagnostic is not None and "no JSON object" in result.diagnostic
        assert len(model.requests) == 2


@pytest.mark.case("A09")
async def test_a_fenced_output_with_backticks_inside_is_taken_intact(tmp_path: Path) -> None:
    text = '```json\n{"title":"Use ```x``` here","steps":["a"]}\n```'
    async with stacked(tmp_path, ScriptedModel([text])) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="p", output_schema=PLAN))
        assert result.structured == {"title": "Use ```x``` here", "steps": ["a"]}


@pytest.mark.case("A10")
async def test_the_corrective_turn_outlives_the_turn_of_the_parent(tmp_path: Path) -> None:
    held = anyio.Event()

    def respond(request: LlmRequest) -> Playable:
        if request.purpose.name != "subagent/turn":
            return "the parent is done"
        if len(request.conversation) == 1:
            return "not a plan"
        held.set()
        return output(GOOD)

    async with stacked(tmp_path, ScriptedModel(respond)) as stack:
        parent = await parent_of(stack)
        run = await stack.ctx.get(Subagents).start(
            SubagentRequest(parent=parent, prompt="p", output_schema=PLAN)
        )
        parent.send("go")
        await parent.when_idle()
        with anyio.fail_after(5):
            result = await run.result()
        assert held.is_set()
        assert result.structured == GOOD
        await run.dispose()


async def test_a_child_does_not_inherit_its_parents_way_of_handing_in(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(hang=True), "ok", output(GOOD)])
    async with stacked(tmp_path, model) as stack:
        root = await parent_of(stack)
        subagents = stack.ctx.get(Subagents)
        outer = await subagents.start(SubagentRequest(parent=root, prompt="p", output_schema=PLAN))
        await anyio.wait_all_tasks_blocked()
        assert outer.agent is not None
        await done(stack, SubagentRequest(parent=outer.agent, prompt="w"))
        inner = await done(stack, SubagentRequest(parent=outer.agent, prompt="w", output_schema=PLAN))
        assert offered(model.requests[1]) == []
        assert inner.structured == GOOD
        await outer.cancel()
        assert (await outer.result()).structured is None
        await outer.dispose()


# how it ends


@pytest.mark.case("K12")
async def test_the_usage_of_a_result_has_every_attempt(tmp_path: Path) -> None:
    failed = Reply("half", failure=Wait("SERVER", "oops"), usage=Usage(input=10, output=500))
    model = ScriptedModel([failed, Reply("ok", usage=Usage(input=10, output=600))])
    loop = LoopConfig(retry=RetryConfig(first_s=0.001))
    async with stacked(tmp_path, model, loop) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="w"))
        assert result.usage == Usage(input=20, output=1100)


@pytest.mark.parametrize(
    ("reply", "reason", "told"),
    [
        (Stop("AUTH", "bad key"), "error", "AUTH: bad key"),
        (Stop("AUTH", "bad key", next_step="make a new one"), "error", "AUTH: bad key; make a new one"),
        (Reply("cut", state="length"), "max-tokens", "output limit"),
        (Reply("no", state="refused"), "refusal", "refusal"),
    ],
)
async def test_a_childs_failure_is_its_result(
    tmp_path: Path, reply: Playable, reason: str, told: str
) -> None:
    async with stacked(tmp_path, ScriptedModel([reply])) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="w"))
        assert result.stop_reason == reason
        assert result.diagnostic is not None and told in result.diagnostic


async def test_a_diagnostic_is_bounded_in_bytes(tmp_path: Path) -> None:
    async with stacked(tmp_path, ScriptedModel([Stop("AUTH", "ü" * 9_000)])) as stack:
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="w"))
        assert result.diagnostic is not None
        assert 4_000 < len(result.diagnostic.encode()) <= 4_096
        assert result.diagnostic.endswith("ü …")


async def test_a_used_up_budget_is_an_error_that_names_it(tmp_path: Path) -> None:
    async with stacked(tmp_path, ScriptedModel(lambda request: Call("act"))) as stack:
        add_tools(stack, "act")
        parent = await parent_of(stack)
        result = await done(stack, SubagentRequest(parent=parent, prompt="w", budget=TurnBudget(max_steps=2)))
        assert result.stop_reason == "error"
        assert result.diagnostic is not None and "max_steps" in result.diagnostic


async def test_cancel_reaches_rest_and_owns_the_outcome(tmp_path: Path) -> None:
    model = ScriptedModel([Reply("so far", hang=True)])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        run = await stack.ctx.get(Subagents).start(
            SubagentRequest(parent=parent, prompt="w", output_schema=PLAN)
        )
        await anyio.wait_all_tasks_blocked()
        await run.cancel("not needed")
        assert run.agent is not None
        length = len(run.agent.session)
        result = await run.result()
        assert (result.stop_reason, result.output) == ("aborted", "so far")
        assert result.diagnostic == "aborted: not needed"
        await run.dispose()
        assert len(run.agent.session) == length
        assert len(stack.agents) == 1


async def test_cancelling_before_the_first_slice_is_an_abort_without_a_request(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        run = await stack.ctx.get(Subagents).start(SubagentRequest(parent=parent, prompt="w"))
        await run.cancel()
        assert (await run.result()).stop_reason == "aborted"
        assert model.requests == []
        await run.dispose()


async def test_disposing_a_run_at_work_frees_it_and_settles_its_result(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(hang=True)])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        before = stack.kernel.snapshot()
        run = await stack.ctx.get(Subagents).start(SubagentRequest(parent=parent, prompt="w"))
        await anyio.wait_all_tasks_blocked()
        await run.dispose()
        assert (await run.result()).stop_reason == "aborted"
        assert stack.kernel.snapshot() == before


async def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    model = ScriptedModel([Reply(hang=True)])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        run = await stack.ctx.get(Subagents).start(SubagentRequest(parent=parent, prompt="w"))
        await anyio.wait_all_tasks_blocked()
        await parent.dispose()
        assert (await run.result()).stop_reason == "aborted"
        assert len(stack.agents) == 0
        await run.dispose()


# many at once


def delegating(stack: AgentStack, model_depth: int, fan: int, peak: Counter[str]) -> None:
    """A tool that starts `fan` children and waits for them, down to `model_depth`."""

    async def delegate(args: object, call: ToolInvocation) -> str:
        agent = stack.agents.get(str(call.agent_id))
        async with anyio.create_task_group() as group:
            for _ in range(fan):
                group.start_soon(
                    done,
                    stack,
                    SubagentRequest(parent=agent, prompt=f"level {agent.depth + 1}", max_depth=model_depth),
                )
        peak["agents"] = max(peak["agents"], len(stack.agents))
        return "done"

    stack.tools.register(stack.ctx, Tool("delegate", "Delegates.", {"type": "object"}, delegate))


class Slow(ScriptedModel):
    """Counts the calls that are answered at a time."""

    def __init__(self, depth: int) -> None:
        super().__init__(self._respond)
        self._depth = depth

    def _respond(self, request: LlmRequest) -> Playable:
        first = request.conversation[0]
        level = int(str(getattr(first.content[0], "text", "level 0")).removeprefix("level ") or 0)
        if len(request.conversation) == 1 and level < self._depth:
            return Call("delegate")
        return "done"


@pytest.mark.case("A03")
async def test_parents_that_wait_for_their_children_hold_no_permit(tmp_path: Path) -> None:
    limiter = LimiterConfig(children=1)
    async with stacked(tmp_path, Slow(3), limiter=limiter) as stack:
        delegating(stack, 3, 2, Counter())
        root = await parent_of(stack)
        root.send("level 0")
        with anyio.fail_after(20):
            await root.when_idle()
        assert next(root.session.of(TurnEnd)).reason == "completed"


@pytest.mark.case("A05")
async def test_one_cap_holds_over_all_levels(tmp_path: Path) -> None:
    in_flight, most = 0, 0

    class Counting(Slow):
        def prepare(self, request: LlmRequest) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
            return Watched(super().prepare(request), request)

    class Watched:
        def __init__(self, inner: object, request: LlmRequest) -> None:
            self.inner, self.request = inner, request
            self.digest = getattr(inner, "digest")  # noqa: B009

        async def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[object, None]:
            nonlocal in_flight, most
            is_child = self.request.purpose.name == "subagent/turn"
            in_flight += is_child
            most = max(most, in_flight)
            try:
                await anyio.sleep(0.001)
                async for event in getattr(self.inner, "stream")(idempotency_key=idempotency_key):  # noqa: B009
                    yield event
            finally:
                in_flight -= is_child

    limiter = LimiterConfig(children=4)
    async with stacked(tmp_path, Counting(2), limiter=limiter) as stack:
        peak: Counter[str] = Counter()
        delegating(stack, 3, 5, peak)
        root = await parent_of(stack)
        root.send("level 0")
        with anyio.fail_after(30):
            await root.when_idle()
        assert most == 4
        assert peak["agents"] > 5
        assert len(await stack.sessions.list()) == 1 + 5 + 25
        assert len(stack.agents) == 1


async def test_everything_a_child_was_asked_can_be_proved(tmp_path: Path) -> None:
    model = ScriptedModel(["first", "not json", output(GOOD)])
    async with stacked(tmp_path, model) as stack:
        parent = await parent_of(stack)
        parent.send("one")
        await parent.when_idle()
        request = SubagentRequest(parent=parent, prompt="p", output_schema=PLAN, mode="fork")
        run = await stack.ctx.get(Subagents).start(request)
        await run.result()
        await run.dispose()
        found = audit(await stack.sessions.read(run.session_id), stack.ctx.get(Models))
        assert found.ok, found
        assert found.proved == 3
