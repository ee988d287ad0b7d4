"""A kernel with a tool registry and a pipeline, for tests of tools and of policies over them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.llm.messages import ToolCall
from leadline.core.tools.flight import CallLog
from leadline.core.tools.invocation import Caller, ToolInvocation
from leadline.core.tools.outcome import ToolOutcome
from leadline.core.tools.pipeline import ToolPipeline
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.scheduler import run_calls
from leadline.core.tools.spec import Tool
from leadline.kernel.context import Context, Kernel, Report


@dataclass
class ToolBench:
    """Calls tools as the loop does, and remembers what a log was told."""

    kernel: Kernel
    registry: ToolRegistry
    pipeline: ToolPipeline
    reports: list[Report]
    """What the kernel was told of errors without a caller."""

    lines: list[str] = field(default_factory=list[str])
    """What the log was told, in order: `call ID`, `sync`, `result ID CODE`, `nested call ID`, ..."""

    ctx: Context = field(init=False)
    """On whose behalf calls are made; replace it by a scoped one to call as somebody else."""

    def __post_init__(self) -> None:
        self.ctx = self.kernel.root

    @property
    def caller(self) -> Caller:
        return Caller(self.ctx, agent_id="agent-1")

    @property
    def log(self) -> CallLog:
        return CallLog(
            on_call=lambda call: self.lines.append(f"call {call.id}"),
            on_result=self._on_result,
            before_side_effect=self._sync,
            on_nested_call=lambda parent, call: self.lines.append(f"nested call {call.id}"),
            on_nested_result=self._on_nested_result,
            on_asked=lambda request: self.lines.append(f"asked {request.call_id}"),
            on_decided=lambda request, decision: self.lines.append(
                f"decided {request.call_id} {decision.outcome}"
            ),
        )

    async def _sync(self) -> None:
        self.lines.append("sync")

    def _on_result(self, call: ToolCall, outcome: ToolOutcome) -> None:
        self.lines.append(f"result {call.id} {outcome.error_code or 'ok'}")

    def _on_nested_result(self, call: ToolInvocation, outcome: ToolOutcome) -> None:
        self.lines.append(f"nested result {call.call_id} {outcome.error_code or 'ok'}")

    def add(self, *tools: Tool) -> None:
        """Register `tools` for everybody."""
        for tool in tools:
            self.registry.register(self.kernel.root, tool)

    async def call(self, name: str, arguments: JsonObject | str | None = None) -> ToolOutcome:
        """One call, id `c1`; text as arguments is sent as it is."""
        text = (
            arguments if isinstance(arguments, str) else msgspec.json.encode(dict(arguments or {})).decode()
        )
        return await self.pipeline.call(ToolCall("c1", name, text), self.caller, self.log)

    async def run(self, *names: str) -> Sequence[ToolOutcome]:
        """One message that calls each of `names` without arguments, ids `c1`, `c2`, ..."""
        calls = [ToolCall(f"c{at}", name, "{}") for at, name in enumerate(names, 1)]
        return await run_calls(self.pipeline, calls, self.caller, self.log)


@asynccontextmanager
async def tool_bench(
    *, max_result_chars: int = 50_000, max_parallel: int = 10, grace_s: float = 5.0
) -> AsyncGenerator[ToolBench]:
    """A bench in a kernel of its own, gone with all it holds when it is left."""
    reports: list[Report] = []
    async with Kernel(on_report=reports.append) as kernel:
        registry = ToolRegistry(grace_s=grace_s)
        pipeline = ToolPipeline(registry, max_result_chars=max_result_chars, max_parallel=max_parallel)
        yield ToolBench(kernel, registry, pipeline, reports)
