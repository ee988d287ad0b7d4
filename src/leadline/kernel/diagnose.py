"""What can be seen of a kernel from outside: why a fiber does not run, the live tree, a comparable snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from leadline.kernel.services import Service, definition_of

if TYPE_CHECKING:
    from leadline.kernel.context import Kernel
    from leadline.kernel.effects import Effects
    from leadline.kernel.fiber import Fiber


@dataclass(frozen=True)
class Diagnosis:
    """Why one fiber is not active."""

    fiber: str
    """Its path."""
    state: str
    """`pending` or `failed`."""
    lacks: tuple[str, ...]
    """Keys of the services it needs and may not use now."""
    reason: str
    """For one that failed: the error. For one that is pending: `inactive: needs KEY, KEY`."""
    cause: str
    """The deepest cause: what failed, or which service nobody provides, at the end of the chain."""
    missing: bool
    """Whether the deepest cause is only that nothing mounted provides a service."""

    def __str__(self) -> str:
        return f"{self.fiber}: {self.reason}" + ("" if self.cause == self.reason else f" ({self.cause})")


class Observed(Protocol):
    """Something outside the kernel's own tables that a snapshot looks into, such as a registry."""

    def snapshot(self) -> list[str]:
        """A line for each entry."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """What was registered at one moment, in lines."""

    lines: tuple[str, ...]

    def difference(self, later: Snapshot) -> list[str]:
        """What `later` has more (`+ line`) or less (`- line`) than this."""
        before, after = Counter(self.lines), Counter(later.lines)
        return [f"+ {line}" for line in (after - before).elements()] + [
            f"- {line}" for line in (before - after).elements()
        ]


def diagnose(kernel: Kernel) -> list[Diagnosis]:
    """A diagnosis of each pending or failed fiber, in order of mounting."""
    return [explain(fiber) for fiber in kernel.fibers if fiber.state.value in ("pending", "failed")]


def explain(fiber: Fiber) -> Diagnosis:
    """Why `fiber` is not active."""
    lacks = tuple(definition.service_key for definition in fiber.lacks())
    reason = _error(fiber) if fiber.error else f"inactive: needs {', '.join(lacks)}" if lacks else "inactive"
    cause, missing = _deepest(fiber, ())
    return Diagnosis(fiber.path, fiber.state.value, lacks, reason, cause, missing)


def providers_of(cls: type[Service], asker: Fiber) -> list[Fiber]:
    """The mounted fibers that provide, or declare that they provide, a service in the asker's realm."""
    definition = definition_of(cls)
    realm = asker.realms.get(definition.service_key)
    present = asker.kernel.provisions.at(definition, asker.realms)
    declared = [
        fiber
        for fiber in asker.kernel.fibers
        if fiber.plugin is not None
        and definition in map(definition_of, fiber.plugin.provides)
        and fiber.realms.get(definition.service_key) == realm
    ]
    return [present.fiber] if present is not None else declared


def why_not(cls: type[Service], asker: Fiber) -> str:
    """What stands between `asker` and a service, with the next step."""
    providers = providers_of(cls, asker)
    if not providers:
        return f"nothing mounted provides it; mount a plugin with provides=({cls.__name__},)"
    fiber = providers[0]
    if fiber.state.value in ("pending", "failed"):
        return f"{fiber.path} would provide it, but is {fiber.state.value}: {_deepest(fiber, ())[0]}"
    return (
        f"{fiber.path} provides it, but is {fiber.state.value}; name it in needs, so that you start after it"
    )


def _error(fiber: Fiber) -> str:
    return f"failed: {type(fiber.error).__name__}: {fiber.error}"


def _deepest(fiber: Fiber, seen: tuple[Fiber, ...]) -> tuple[str, bool]:
    """The cause at the end of the chain, and whether it is only a service that nobody provides."""
    if fiber in seen:
        ring = [it.path for it in (*seen[seen.index(fiber) :], fiber)]
        return f"a cycle of needs: {' -> '.join(ring)}", False
    if fiber.error is not None:
        return (f"{fiber.path} " if seen else "") + _error(fiber), False
    found: list[tuple[str, bool]] = []
    for definition in fiber.lacks():
        providers = [it for it in providers_of(definition, fiber) if it is not fiber]
        if providers:
            found.append(_deepest(providers[0], (*seen, fiber)))
        else:
            found.append((f"nothing mounted provides {definition.service_key!r}", True))
    # A failure explains more than an absence does.
    return min(found, key=lambda it: it[1], default=(f"{fiber.path} is {fiber.state.value}", False))


def tree(kernel: Kernel) -> str:
    """The fibers and their registrations, as indented text."""
    return "\n".join(_lines(kernel, kernel.root.effects, kernel.root.fiber, 0))


def _lines(kernel: Kernel, effects: Effects | None, fiber: Fiber | None, depth: int) -> list[str]:
    pad = "  " * depth
    lines = [f"{pad}{fiber.id} [{fiber.state.value}]"] if fiber is not None else []
    children = {it.entry: it for it in kernel.fibers if it.entry is not None}
    for entry in effects.entries if effects else ():
        child = children.get(entry)
        if child is not None:
            lines += _lines(kernel, child.effects, child, depth + 1)
        else:
            lines.append(f"{pad}  {entry.label}")
            lines += _lines(kernel, entry.inner, None, depth + 1)
    return lines


def snapshot(kernel: Kernel) -> Snapshot:
    """What is registered now, sorted."""
    lines = tree(kernel).splitlines()
    lines += [f"service {it.definition.service_key} by {it.fiber.path}" for it in kernel.provisions]
    lines += [str(listener) for listeners in kernel.listeners.table.values() for listener in listeners]
    lines += [f"running {name}" for name in kernel.tasks.values()]
    lines += [line for registry in kernel.registries for line in registry.snapshot()]
    return Snapshot(tuple(sorted(lines)))
