"""Which tools a scope sees, what it may not call, and the bodies that run for it now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from anyio import move_on_after

from leadline.core.llm.request import ToolSchema
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import Tool
from leadline.kernel.effects import Effect, Ending, Work, run_work
from leadline.kernel.scope import Scope, ScopedRegistry
from leadline.kernel.services import Service

if TYPE_CHECKING:
    from leadline.kernel.context import Context

R = TypeVar("R")

GuardRule: TypeAlias = Callable[[ToolInvocation], "Awaitable[str | None] | str | None"]
"""The reason why a call may not run; None lets it pass. It cannot allow what something else denies."""


@dataclass(frozen=True, eq=False)
class Guard:
    """A rule that can only deny."""

    name: str
    rule: GuardRule
    owner: str

    async def refusal(self, call: ToolInvocation) -> str | None:
        """Why `call` may not run, or None."""
        answer = self.rule(call)
        return await answer if isawaitable(answer) else answer


@dataclass(eq=False)
class Registered:
    """A tool as it is registered, with the calls of it that are in flight."""

    tool: Tool
    running: dict[Work, Ending] = field(default_factory=dict[Work, Ending])

    async def run(self, body: Callable[[], Awaitable[R]]) -> tuple[R] | None:
        """The result of `body` in a 1-tuple; None if the tool was unregistered and it took too long to end."""
        work, done = Work.nested(), Ending()
        self.running[work] = done
        try:
            return await run_work(work, body)
        finally:
            del self.running[work]
            done.set()

    async def drain(self, grace_s: float) -> None:
        """Let the calls in flight end, then cut off those that take longer than `grace_s`."""
        with move_on_after(grace_s):
            await self._rest()
        for work in tuple(self.running):
            work.interrupt()
        await self._rest()

    async def _rest(self) -> None:
        while self.running:
            await next(iter(self.running.values())).wait()


class ToolRegistry(Service, key="tools"):
    """The tools of all scopes. A scope sees its own and, unless restricted, those it inherits."""

    def __init__(self, *, grace_s: float = 5.0) -> None:
        """`grace_s`: seconds that calls in flight may take to end when their tool is unregistered."""
        self._tools = ScopedRegistry[Registered]("tool")
        self._guards: dict[Scope | None, list[Guard]] = {}
        self._grace_s = grace_s

    @property
    def version(self) -> int:
        """Grows with every change of what any scope sees; equal versions give equal schemas."""
        return self._tools.version

    def register(self, ctx: Context, tool: Tool, *, checked: bool = False) -> Effect:
        """Make `tool` visible to the context's scope and below; a nearer tool of the same name shadows it.

        Undone at unload, which returns when no call of it runs any more. `checked`: the owner has held its schemas
        against the rules for schemas already; then the first call is the first to need what validates.

        Raises:
            DuplicateName: the scope itself has a tool of that name.
            BadToolSpec: a schema of the tool cannot be used.
            FiberInactive: the context's owner is unloading or disposed.
        """
        if not checked:
            tool.check()
        entry = Registered(tool)
        inner = self._tools.register(ctx, tool.name, entry)

        async def undo() -> None:
            await inner.dispose()
            await entry.drain(self._grace_s)

        return ctx.defer(f"calls of tool {tool.name}", undo)

    def restrict(
        self, ctx: Context, *, allow: Collection[str] | None = None, deny: Collection[str] = ()
    ) -> Effect:
        """Let the context's scope inherit only `allow` (None: all) without `deny`.

        What the scope registers itself is not filtered. Restrictions intersect and are inherited, so a
        child never has more than its parent.

        Raises:
            UnknownName: a name that the scope does not inherit; gives the nearest.
            KernelError: the context has no scope.
            FiberInactive: the context's owner is unloading or disposed.
        """
        return self._tools.restrict(ctx, allow=allow, deny=deny)

    def guard(self, ctx: Context, name: str, rule: GuardRule) -> Effect:
        """Let `rule` deny calls of the context's scope and below. No other rule can overrule it.

        Raises:
            FiberInactive: the context's owner is unloading or disposed.
        """
        guard, scope = Guard(name, rule, ctx.label), ctx.scope
        effect = ctx.defer(f"guard {name}", lambda: self._drop(scope, guard))
        self._guards.setdefault(scope, []).append(guard)
        return effect

    def _drop(self, scope: Scope | None, guard: Guard) -> None:
        self._guards[scope].remove(guard)
        if not self._guards[scope]:
            del self._guards[scope]

    def guards(self, scope: Scope | None) -> tuple[Guard, ...]:
        """The guards over `scope`: global ones first, then from the farthest ancestor to its own."""
        if not self._guards:
            return ()
        layers = (None, *reversed(scope.chain if scope else ()))
        return tuple(guard for layer in layers for guard in self._guards.get(layer, ()))

    def find(self, name: str, scope: Scope | None) -> Registered | None:
        """The registration that `scope` sees under `name`, or None."""
        return self._tools.get(name, scope)

    def get(self, name: str, scope: Scope | None) -> Tool | None:
        """The tool that `scope` sees under `name`, or None."""
        found = self.find(name, scope)
        return found.tool if found else None

    def view(self, scope: Scope | None) -> Mapping[str, Tool]:
        """What `scope` sees, sorted by name; a copy."""
        seen = self._tools.view(scope)
        return MappingProxyType({name: seen[name].tool for name in sorted(seen)})

    def schemas(self, scope: Scope | None) -> tuple[ToolSchema, ...]:
        """What a model of `scope` is told, sorted by name; the order of registration changes nothing."""
        return tuple(tool.schema for tool in self.view(scope).values())
