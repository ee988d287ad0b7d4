"""What a body knows of the call it runs for, and who the call is made for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.tools.errors import NestedCallError
from leadline.core.tools.outcome import ToolOutcome

if TYPE_CHECKING:
    from leadline.core.session.log import Session
    from leadline.core.spend.account import Account
    from leadline.kernel.context import Context
    from leadline.kernel.scope import Scope

Reenter: TypeAlias = Callable[["ToolInvocation", str, JsonObject], Awaitable[ToolOutcome]]


@dataclass(frozen=True)
class Caller:
    """On whose behalf calls are made: whose tools, policies and log are used."""

    ctx: Context
    """Its scope decides which tools, guards and listeners there are."""

    agent_id: str | None = None
    session: Session | None = None
    account: Account | None = None
    """Whom it is charged to when a tool pays for something."""
    group: str = ""
    """The session at the root, whose turn it is in a line."""


@dataclass(frozen=True, eq=False)
class ToolInvocation:
    """One call, as its body and the policies around it see it."""

    call_id: str
    name: str
    caller: Caller = field(repr=False)
    arguments: JsonObject = field(default_factory=lambda: MappingProxyType[str, object]({}))
    """As validated; nobody can change them."""

    root_call_id: str = ""
    """The call of the model that this one serves; its own id unless another tool made the call."""

    parent: ToolInvocation | None = None
    """The call whose body made this one."""

    reenter: Reenter | None = field(default=None, repr=False)
    """How the pipeline runs a nested call; set by it."""

    repeated: bool = False
    """Whether a process that died had started this very call: its body may have done part of its work."""

    _nested: list[str] = field(default_factory=list[str], init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.root_call_id:
            object.__setattr__(self, "root_call_id", self.call_id)

    @property
    def ctx(self) -> Context:
        return self.caller.ctx

    @property
    def scope(self) -> Scope | None:
        return self.caller.ctx.scope

    @property
    def agent_id(self) -> str | None:
        return self.caller.agent_id

    @property
    def session(self) -> Session | None:
        return self.caller.session

    @property
    def depth(self) -> int:
        """How many calls this one is nested in."""
        return self.parent.depth + 1 if self.parent else 0

    @property
    def idempotency_key(self) -> str:
        """The same whenever this very call is sent again; what a side effect is keyed with."""
        return f"{self.root_call_id}/{self.call_id}"

    def next_nested_id(self) -> str:
        """`<call id>:1`, `<call id>:2`, …, in the order in which the body asks."""
        self._nested.append(f"{self.call_id}:{len(self._nested) + 1}")
        return self._nested[-1]

    async def invoke(self, name: str, arguments: JsonObject | None = None) -> ToolOutcome:
        """Call another tool of the same caller through the whole pipeline; failures are values.

        Raises:
            NestedCallError: no pipeline runs this invocation.
        """
        if self.reenter is None:
            raise NestedCallError(
                f"{self.name} cannot call {name!r}: this invocation was not made by a pipeline"
            )
        return await self.reenter(self, name, arguments or {})
