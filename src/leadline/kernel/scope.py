"""Scopes and layered registries: who sees a registration, and how a scope narrows what it inherits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from leadline.kernel.errors import DuplicateName, KernelError, UnknownName, did_you_mean

if TYPE_CHECKING:
    from leadline.kernel.context import Context
    from leadline.kernel.effects import Effect

T = TypeVar("T")


class Scope:
    """An identity that registrations can be limited to, such as one agent or a preset.

    A scope sees what was registered globally, on its ancestors and on itself. It routes
    registrations; it is not a security boundary.
    """

    def __init__(self, parent: Scope | None = None, label: str = "scope") -> None:
        self.parent = parent
        self.label = label
        self.chain: tuple[Scope, ...] = (self, *(parent.chain if parent else ()))
        """This scope and its ancestors, nearest first."""

    def __repr__(self) -> str:
        return f"<Scope {'/'.join(scope.label for scope in reversed(self.chain))}>"


@dataclass(frozen=True, eq=False)
class _Mask:
    allow: frozenset[str] | None
    deny: frozenset[str]

    def lets(self, name: str) -> bool:
        return name not in self.deny and (self.allow is None or name in self.allow)


@dataclass
class _Layer(Generic[T]):
    entries: dict[str, tuple[T, str]] = field(default_factory=dict[str, tuple[T, str]])
    masks: list[_Mask] = field(default_factory=list[_Mask])


class ScopedRegistry(Generic[T]):
    """Named values in layers: one global, one for each scope that registered something.

    The nearest layer shadows. A restriction filters what its scope inherits, never what the scope
    itself registered; several restrictions intersect; descendants inherit the result.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        """What one value is called in messages, such as "tool"."""
        self.version = 0
        """Grows with every change, so that a reader can keep what it built."""
        self._layers: dict[Scope | None, _Layer[T]] = {}

    def register(self, ctx: Context, name: str, value: T) -> Effect:
        """Add `value` to the layer of the context's scope, for as long as the context lives.

        Raises:
            DuplicateName: the layer has the name already; names both owners.
            FiberInactive: the context's owner is unloading or disposed.
        """
        ctx.check_open(f"{self.noun} {name}")
        layer = self._layers.get(ctx.scope)
        if layer is not None and name in layer.entries:
            raise DuplicateName(
                f"{self.noun} {name!r} is already registered by {layer.entries[name][1]}, so {ctx.label} "
                "cannot register it too; rename one, or register it in a scope of its own"
            )
        layer = self._layers.setdefault(ctx.scope, _Layer())
        layer.entries[name] = (value, ctx.label)
        return self._keep(ctx, f"{self.noun} {name}", lambda: layer.entries.pop(name))

    def restrict(
        self, ctx: Context, *, allow: Collection[str] | None = None, deny: Collection[str] = ()
    ) -> Effect:
        """Let the context's scope inherit only `allow` (None: everything) without `deny`.

        Raises:
            KernelError: the context has no scope, so there is nothing it inherits.
            UnknownName: a name that the scope does not inherit now.
            FiberInactive: the context's owner is unloading or disposed.
        """
        if ctx.scope is None:
            raise KernelError(
                f"{ctx.label} has no scope, so it inherits no {self.noun}; use ctx.scoped(scope)"
            )
        ctx.check_open(f"restriction of {self.noun}")
        inherited = self._merged(ctx.scope.parent)
        for name in (*(allow or ()), *deny):
            if name not in inherited:
                raise UnknownName(
                    f"a restriction by {ctx.label} names the unknown {self.noun} {name!r}"
                    + did_you_mean(name, inherited)
                )
        mask = _Mask(None if allow is None else frozenset(allow), frozenset(deny))
        layer = self._layers.setdefault(ctx.scope, _Layer())
        layer.masks.append(mask)
        return self._keep(ctx, f"restriction of {self.noun}", lambda: layer.masks.remove(mask))

    def view(self, scope: Scope | None) -> Mapping[str, T]:
        """What `scope` sees (None: the global layer), a copy, in order of registration, outer first."""
        return MappingProxyType({name: value for name, (value, _) in self._merged(scope).items()})

    def get(self, name: str, scope: Scope | None) -> T | None:
        """What `scope` sees under `name`, or None."""
        for step in scope.chain if scope else ():
            layer = self._layers.get(step)
            if layer is None:
                continue
            if name in layer.entries:
                return layer.entries[name][0]
            if not all(mask.lets(name) for mask in layer.masks):
                return None
        outermost = self._layers.get(None)
        return outermost.entries[name][0] if outermost and name in outermost.entries else None

    def peek(self, scope: Scope | None) -> Mapping[str, T]:
        """What was registered on exactly `scope`, without what it inherits; a copy."""
        layer = self._layers.get(scope)
        return MappingProxyType({name: value for name, (value, _) in layer.entries.items()} if layer else {})

    def snapshot(self) -> list[str]:
        """A line for each entry and restriction, comparable between two moments."""
        return [
            f"{self.noun} {name} in {scope} by {owner}"
            for scope, layer in self._layers.items()
            for name, (_, owner) in layer.entries.items()
        ] + [
            f"{self.noun} restriction in {scope}"
            for scope, layer in self._layers.items()
            for _ in layer.masks
        ]

    def _merged(self, scope: Scope | None) -> dict[str, tuple[T, str]]:
        outermost = self._layers.get(None)
        seen = dict(outermost.entries) if outermost else {}
        for step in reversed(scope.chain if scope else ()):
            layer = self._layers.get(step)
            if layer is None:
                continue
            if layer.masks:
                seen = {name: entry for name, entry in seen.items() if all(m.lets(name) for m in layer.masks)}
            seen.update(layer.entries)
        return seen

    def _keep(self, ctx: Context, label: str, remove: Callable[[], object]) -> Effect:
        scope = ctx.scope

        def undo() -> None:
            remove()
            self.version += 1
            layer = self._layers.get(scope)
            if layer is not None and not layer.entries and not layer.masks:
                del self._layers[scope]

        self.version += 1
        ctx.kernel.registries.add(self)
        return ctx.defer(label, undo)
