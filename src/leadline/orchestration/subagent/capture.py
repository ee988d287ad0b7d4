"""Catches the declared output of one child: staged by the tool's body, kept once the call has succeeded.

All of it belongs to the child's context and ends with it. A value counts only when the final
result of its own call, after everything that reviews results, is a success; inside another call it
waits for that one's success too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

import msgspec

from leadline.core.agent.signals import ProposeRequest
from leadline.core.llm.adapter import Models
from leadline.core.llm.request import OutputSchema as AnswerSchema
from leadline.core.prompt.sections import PromptSections
from leadline.core.tools.invocation import Caller, ToolInvocation
from leadline.core.tools.outcome import Code, failed
from leadline.core.tools.policy import PostExecute, ToolFinished
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import Tool, ToolOutput, description_from
from leadline.orchestration.subagent.extraction import NotExtracted, extract_json
from leadline.orchestration.subagent.handed_in import Corrected, handed_in
from leadline.orchestration.subagent.schema import OutputSchema, listed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from leadline.core.agent.agent import Agent
    from leadline.core.llm.jsonvalue import JsonValue
    from leadline.core.llm.request import CallConfig
    from leadline.orchestration.subagent.seam import Check

TOOL_NAME = "structured_output"
SECTION_ORDER = 190
_TAKEN = "the result has been handed in; nothing more is run in this task"

Problems: TypeAlias = Sequence[str]


@dataclass(frozen=True)
class Captured:
    """The output of the child."""

    value: JsonValue


@dataclass
class _Staged:
    value: JsonValue
    awaited: ToolInvocation
    """The call whose success is needed next: the output's own, then each that encloses it."""


class Capture:
    """The declared output of one child, wherever it has got to."""

    def __init__(self, schema: OutputSchema, check: Check | None) -> None:
        self._schema = schema
        self._check = check
        self._staged: _Staged | None = None
        self.captured: Captured | None = None
        """The output; None until it has been accepted for good."""

    def install(self, child: Agent) -> None:
        """Give the child the tool, the sentence in its prompt, and the guard."""
        ctx, tools = child.ctx, child.ctx.get(ToolRegistry)
        tools.register(ctx, self._tool(), checked=True)
        tools.guard(ctx, TOOL_NAME, lambda call: self._refusal(call, child.id))
        text = description_from(__package__ or "", "finish.md")
        ctx.get(PromptSections).section(ctx, TOOL_NAME, SECTION_ORDER, text, for_tool=TOOL_NAME)
        ctx.on(ToolFinished, self._finished)
        ctx.on(PostExecute, self._conclude, prepend=True)

    def hold(self, child: Agent) -> None:
        """Hold the answers of a child that did not hand in to the schema, where that is the firmest way there is.

        The tool is the way to hand in. A model that can be made to call it is told again; one that cannot, but whose
        server writes to a schema, is asked for the output as its text. Not so where the schema would keep it from
        calling tools that it still has.
        """
        child.ctx.on(ProposeRequest, partial(self._held, child))

    async def _held(
        self,
        child: Agent,
        signal: ProposeRequest,
        call_next: Callable[[ProposeRequest], Awaitable[CallConfig]],
    ) -> CallConfig:
        config = await call_next(signal)
        if signal.agent is not child or self.captured is not None:
            return config
        adapter, ref = child.ctx.get(Models).resolve(config.model)
        info = adapter.info(ref.model)
        if info.forced_tool_choice or info.structured_output != "json_schema":
            return config
        others = set(child.ctx.get(ToolRegistry).view(child.ctx.scope)) - {TOOL_NAME}
        if others and not info.tools:
            return config
        return msgspec.structs.replace(config, output=AnswerSchema(TOOL_NAME, self._schema.schema))

    def restore(self, child: Agent) -> None:
        """Take up what the child handed in before its process died.

        The check sees again what it saw, in the same order, as it may keep count; what became of it is what the
        log says.
        """
        staged: tuple[JsonValue, str] | None = None
        for past in handed_in(child.session, TOOL_NAME):
            if isinstance(past, Corrected):
                extracted = extract_json(past.text)
                if not isinstance(extracted, NotExtracted):
                    self._look_again(extracted.value, child)
                continue
            if past.handed_in:
                self._look_again(past.value, child)
                staged = (past.value, past.call_id)
            if staged is not None and past.call_id == staged[1]:
                if not past.failed and past.parent is None:
                    self.captured = Captured(staged[0])
                staged = None if past.failed or past.parent is None else (staged[0], past.parent)
        if staged is not None and child.session.place.turn_open:
            caller = Caller(child.ctx, child.id, child.session)
            self._staged = _Staged(staged[0], ToolInvocation(staged[1], "", caller))

    def _look_again(self, value: JsonValue, child: Agent) -> None:
        try:
            self._problems(value)
        except Exception as error:  # noqa: BLE001 - it was told to the child when it happened; the report tells who
            child.ctx.report(error, "checking again what was handed in before")

    def accept_text(self, text: str) -> Problems:
        """Take a whole message as the output if it is one; else what is wrong with it, for the child."""
        extracted = extract_json(text)
        if isinstance(extracted, NotExtracted):
            return (extracted.problem,)
        problems = self._problems(extracted.value)
        if not problems:
            self.captured = Captured(extracted.value)
        return problems

    def _problems(self, value: JsonValue) -> Problems:
        return self._schema.problems(value) or (listed(self._check(value)) if self._check else ())

    def _tool(self) -> Tool:
        async def body(value: dict[str, object], call: ToolInvocation) -> ToolOutput:
            output = cast("JsonValue", value)
            problems = self._problems(output)
            if problems:
                lines = "\n".join(f"- {problem}" for problem in problems)
                text = (
                    f"The result was not accepted:\n{lines}\nCorrect all of this and call {TOOL_NAME} again."
                )
                return failed(Code.INVALID_ARGS, text)
            self._staged = _Staged(output, call)
            return ToolOutput({"accepted": True}, "The result is handed in.", concludes_turn=True)

        return Tool(
            TOOL_NAME, description_from(__package__ or "", "structured_output.md"), self._schema.schema, body
        )

    def _refusal(self, call: ToolInvocation, child_id: str) -> str | None:
        if call.agent_id != child_id or (self.captured is None and self._staged is None):
            return None
        staged = self._staged
        if (
            staged is not None
            and call.repeated
            and f"{staged.awaited.call_id}:".startswith(f"{call.call_id}:")
        ):
            # It handed in before the process died, and its own success is what the output waits for.
            return None
        return _TAKEN

    def _finished(self, signal: ToolFinished) -> None:
        staged = self._staged
        # Compared by the call itself: descendants are heard here too, and may use the same ids.
        if staged is None or not _same(signal.call, staged.awaited):
            return
        if signal.outcome.is_error:
            self._staged = None
        elif signal.call.parent is not None:
            staged.awaited = signal.call.parent
        else:
            self._staged, self.captured = None, Captured(staged.value)

    async def _conclude(
        self, signal: PostExecute, call_next: Callable[[PostExecute], Awaitable[ToolOutput]]
    ) -> ToolOutput:
        """An enclosing call that hands in the output ends the turn as the output's own call does."""
        output = await call_next(signal)
        staged = self._staged
        if staged is not None and not output.is_error and _same(signal.call, staged.awaited):
            return replace(output, concludes_turn=True)
        return output


def _same(one: ToolInvocation, other: ToolInvocation) -> bool:
    return (one.agent_id, one.call_id) == (other.agent_id, other.call_id)
