"""The registry of what a system prompt is made of: sections, variables, and contexts for what changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import msgspec

from leadline.core.llm.request import ToolSchema
from leadline.core.prompt.errors import PromptError
from leadline.core.prompt.snapshot import ContextSnapshot, snapshot_of
from leadline.core.prompt.template import VARIABLE, Template, parse_template
from leadline.kernel.effects import Effect
from leadline.kernel.scope import Scope, ScopedRegistry
from leadline.kernel.services import Service

if TYPE_CHECKING:
    from leadline.kernel.context import Context

T = TypeVar("T")

IDENTITY_ORDER = -100
PERSONA_ORDER = 0
_KEPT = 64
"""How many different beginnings of requests are remembered."""

ContextProvider: TypeAlias = "Callable[[Scope | None], Awaitable[str | None]]"
"""What a scope should know now; None or blank: nothing."""


@dataclass(frozen=True)
class _Ordered(Generic[T]):
    name: str
    order: int
    value: T


@dataclass(frozen=True)
class _Section:
    template: Template
    for_tool: str | None


@dataclass(frozen=True)
class Assembled:
    """What every request of an epoch begins with. Equal parts give equal bytes."""

    system: str
    tools: tuple[ToolSchema, ...]
    digest: str
    """sha256 in hex of both."""


class PromptSections(Service, key="prompt"):
    """Sections in order, then by name, so that the order of mounting changes no byte. There is no clock in it."""

    def __init__(self) -> None:
        self._sections = ScopedRegistry[_Ordered[_Section]]("prompt section")
        self._variables = ScopedRegistry[str | None]("prompt variable")
        self._contexts = ScopedRegistry[_Ordered[ContextProvider]]("prompt context")
        self._made: OrderedDict[str, Assembled] = OrderedDict()

    @property
    def version(self) -> int:
        """Grows whenever a section or variable is registered, withdrawn or restricted, in any scope."""
        return self._sections.version + self._variables.version

    def section(
        self, ctx: Context, name: str, order: int, text: str, *, for_tool: str | None = None
    ) -> Effect:
        r"""Add a section to the context's scope and below; a nearer one of the same name shadows it.

        `text` may use `{{variable}}`; `\{{` stands for two braces. With `for_tool` it is left out where
        that tool is not offered.

        Raises:
            BadTemplate: the text is malformed.
            DuplicateName: the scope itself has a section of that name.
            FiberInactive: the context's owner is unloading or disposed.
        """
        template = parse_template(f"prompt section {name!r}", text.strip())
        return self._sections.register(ctx, name, _Ordered(name, order, _Section(template, for_tool)))

    def restrict(
        self, ctx: Context, *, allow: Collection[str] | None = None, deny: Collection[str] = ()
    ) -> Effect:
        """Let the context's scope inherit only the sections `allow` (None: all) without `deny`.

        Raises:
            UnknownName: a name that the scope does not inherit.
            KernelError: the context has no scope.
            FiberInactive: the context's owner is unloading or disposed.
        """
        return self._sections.restrict(ctx, allow=allow, deny=deny)

    def variable(self, ctx: Context, name: str, value: str | None) -> Effect:
        """Give a variable its value in the context's scope and below; None: it must be set nearer by.

        Raises:
            PromptError: the name has not the form `[a-z][a-z0-9_]*`.
            DuplicateName: the scope itself has a variable of that name.
            FiberInactive: the context's owner is unloading or disposed.
        """
        if not VARIABLE.fullmatch(name):
            raise PromptError(f"prompt variable {name!r}: a name has the form [a-z][a-z0-9_]*")
        return self._variables.register(ctx, name, value)

    def context(self, ctx: Context, name: str, order: int, provider: ContextProvider) -> Effect:
        """Let `provider` say what changes while an agent works; it never enters the system prompt.

        Raises:
            DuplicateName: the scope itself has a context of that name.
            FiberInactive: the context's owner is unloading or disposed.
        """
        return self._contexts.register(ctx, name, _Ordered(name, order, provider))

    def assemble(self, scope: Scope | None, tools: Sequence[ToolSchema] = ()) -> Assembled:
        """What requests of `scope` begin with; `tools` are sorted by name.

        Scopes in which it is the same get the same object, so that hundreds of agents of one kind hold it once.

        Raises:
            UnknownVariable: a section uses a variable that has no value in this scope.
        """
        offered = tuple(sorted(tools, key=lambda tool: tool.name))
        names = {tool.name for tool in offered}
        values = self._variables.view(scope)
        sections = [it.value for it in _in_order(self._sections.view(scope).values())]
        texts = [it.template.render(values) for it in sections if it.for_tool is None or it.for_tool in names]
        system = "\n\n".join(text for text in texts if text.strip())
        digest = sha256(msgspec.json.encode([system, offered])).hexdigest()
        made = self._made.setdefault(digest, Assembled(system, offered, digest))
        self._made.move_to_end(digest)
        if len(self._made) > _KEPT:
            self._made.popitem(last=False)
        return made

    async def snapshot(self, ctx: Context) -> ContextSnapshot:
        """What the contexts of the scope of `ctx` say now. One that raises is reported and left out."""
        texts: list[str] = []
        for it in _in_order(self._contexts.view(ctx.scope).values()):
            try:
                text = await it.value(ctx.scope)
            except Exception as error:  # noqa: BLE001 - one source of facts less; the kernel's report tells which
                ctx.report(error, f"prompt context {it.name}")
                continue
            if text and text.strip():
                texts.append(text.strip())
        return snapshot_of(texts)


def _in_order(entries: Collection[_Ordered[T]]) -> list[_Ordered[T]]:
    return sorted(entries, key=lambda it: (it.order, it.name))
