"""The context, which is all a plugin gets, and the kernel, which owns every task.

What is added to the agreed surface: `on`, `provide` and `defer` return the `Effect`, so that one
registration can be undone early with `await effect.dispose()`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast
from weakref import WeakSet

from anyio import CancelScope, create_task_group, get_cancelled_exc_class

from leadline.kernel.diagnose import Diagnosis, Snapshot, diagnose, snapshot, tree, why_not
from leadline.kernel.effects import Effect, Effects, TaskHandle, Undo
from leadline.kernel.errors import KernelError, PluginFailed, ServiceUnavailable
from leadline.kernel.fiber import Fiber, State
from leadline.kernel.services import Provision, Provisions, Service, definition_of
from leadline.kernel.signals import Completed, First, Gather, Listener, Listeners, Listens, Notice

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from leadline.kernel.diagnose import Observed
    from leadline.kernel.plugin import Mountable
    from leadline.kernel.scope import Scope

T = TypeVar("T")
S = TypeVar("S", bound=Service)
R = TypeVar("R")
L = TypeVar("L")
MAX_MOUNTED_WITHIN = 64
"""Plugins mounted within each other; more is taken for one that mounts itself."""

Isolation = Mapping[str, bool | str]
"""Service key to True (a realm of one's own) or to the name of a realm that is shared by name."""


class Context:
    """What a plugin registers with. All that is registered here is undone when its owner ends.

    A context belongs to one activation of one fiber, or to a sub-context of it, and may be limited
    to a scope.
    """

    def __init__(self, kernel: Kernel, fiber: Fiber, effects: Effects, scope: Scope | None) -> None:
        self.kernel = kernel
        self.fiber = fiber
        self.effects = effects
        self.scope = scope

    def __repr__(self) -> str:
        return f"<Context {self.label}>"

    @property
    def label(self) -> str:
        """The path of the owner, for messages."""
        return self.effects.label

    # services

    def get(self, definition: type[S]) -> S:
        """The value that is provided for `definition` in this context's realm.

        Raises:
            ServiceUnavailable: nobody provides it, or the provider is not active; names the service,
                who asks, what would provide it and the next step.
        """
        value = self.kernel.provisions.find(definition, self.fiber)
        if value is None:
            key = definition_of(definition).service_key
            raise ServiceUnavailable(
                f"service {key!r} is not available to {self.label}: {why_not(definition, self.fiber)}",
                key=key,
                asker=self.label,
            )
        return value

    def find(self, definition: type[S]) -> S | None:
        """The value that is provided for `definition` in this context's realm, or None."""
        return self.kernel.provisions.find(definition, self.fiber)

    def provide(self, definition: type[S], value: S) -> Effect:
        """Offer `value` as `definition`; others get it once this fiber is active.

        Withdrawn at unload: whoever depends on it has stopped before that.

        Raises:
            DuplicateService: the realm has a provider already; names both.
            FiberInactive: the owner is unloading or disposed.
        """
        label = f"service {definition_of(definition).service_key}"
        self.check_open(label)
        provision = self.kernel.provisions.add(definition, value, self.fiber)
        self.kernel.wake(provision.definition)

        async def withdraw() -> None:
            await self.kernel.withdraw(provision)
            self.kernel.provisions.remove(provision)

        return self.effects.add(label, withdraw)

    # effects

    def check_open(self, label: str) -> None:
        """Refuse early what could not be registered: raises FiberInactive if the owner is unloading or disposed."""
        self.effects.check_open(label)

    def defer(self, label: str, undo: Undo) -> Effect:
        """Keep the inverse of something already done; it runs at unload, last in, first out.

        Raises:
            FiberInactive: the owner is unloading or disposed; `undo` is not kept.
        """
        return self.effects.add(label, undo)

    async def effect(self, label: str, cm: AbstractAsyncContextManager[T]) -> T:
        """The value of `cm`, entered now and left at unload, both in one task of the kernel.

        Raises:
            FiberInactive: the owner is unloading or disposed.
            Exception: whatever entering raised; nothing stays registered then.
        """
        return await self.effects.enter(label, cm)

    def spawn(self, fn: Callable[..., Awaitable[object]], *args: object, name: str) -> TaskHandle:
        """Run `fn(*args)` as a task of this owner: cancelled and joined at unload, its error reported.

        Raises:
            FiberInactive: the owner is unloading or disposed.
        """
        return self.effects.spawn(lambda: fn(*args), name)

    # children

    async def mount(
        self,
        plugin: Mountable,
        config: object = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that a row uses
        isolate: Isolation | None = None,
    ) -> Fiber:
        """Mount `plugin` as a child; returns when it is settled: active, pending or failed.

        `config` is a mapping, a ready config value, or None for the defaults. A caller that is
        cancelled before the child settled leaves no child behind.

        Raises:
            FiberInactive: the owner is unloading or disposed.
            PluginFailed: too many plugins are mounted within each other.
        """
        fiber = self.attach(plugin, config, id=id, isolate=isolate)
        try:
            await fiber.settled()
        except get_cancelled_exc_class():
            await fiber.dispose()
            raise
        return fiber

    def attach(
        self,
        plugin: Mountable,
        config: object = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that a row uses
        isolate: Isolation | None = None,
    ) -> Fiber:
        """Mount `plugin` as a child without waiting for it to settle."""
        label = f"plugin {id or plugin.name}"
        self.check_open(label)
        if self.fiber.path.count("/") >= MAX_MOUNTED_WITHIN:
            raise PluginFailed(f"{label} would be mounted too deep; does a plugin mount itself?")
        realms = {
            **self.fiber.realms,
            **{key: _realm(to) for key, to in (isolate or {}).items() if to is not False},
        }
        fiber = Fiber(
            self.kernel,
            plugin,
            config,
            id=id or plugin.name,
            parent=self.fiber,
            scope=self.scope,
            realms=realms,
        )
        fiber.entry = self.effects.add(label, fiber.stop)
        self.kernel.fibers[fiber] = None
        fiber.validate()
        fiber.refresh()
        return fiber

    def scoped(self, scope: Scope | None) -> Context:
        """The same owner; what is registered on the result is visible to `scope` and below it only."""
        return Context(self.kernel, self.fiber, self.effects, scope)

    def subcontext(self, label: str, scope: Scope | None = None) -> SubContext:
        """A context with a life of its own within this one: `async with`, or `await sub.dispose()`.

        `scope` None means the scope of this context.

        Raises:
            FiberInactive: the owner is unloading or disposed.
        """
        effects = Effects(self.kernel, f"{self.label}/{label}")
        entry = self.effects.add(f"context {label}", effects.dispose, effects)
        return SubContext(self.kernel, self.fiber, effects, scope or self.scope, entry)

    # signals

    def on(self, signal: Listens[L], listener: L, *, prepend: bool = False) -> Effect:
        """Listen to a signal class; what a listener looks like follows from the signal's mode.

        On a scoped context the listener hears dispatches of that scope and its descendants only. At
        unload calls in flight may end; those that take longer than the kernel's grace fail with
        ListenerGone.

        Raises:
            FiberInactive: the owner is unloading or disposed.
        """
        name = getattr(signal, "__name__", str(signal))
        self.check_open(f"listener of {name}")
        added = Listener(cast("Callable[..., object]", listener), self.scope, self.label, name)
        self.kernel.listeners.add(signal, added, prepend=prepend)

        async def remove() -> None:
            await self.kernel.listeners.remove(signal, added)

        return self.effects.add(f"listener of {name}", remove)

    def heard(self, signal: type[object]) -> bool:
        """Whether anyone at all listens to a signal class, in whatever scope: what nobody hears need not be made."""
        return signal in self.kernel.listeners.table

    def notice(self, signal: Notice) -> None:
        """Tell every listener, now; one that raises is reported and stops nobody."""
        if type(signal) in self.kernel.listeners.table:
            self.kernel.listeners.notify(signal, self.scope)

    async def gather(self, signal: Gather[R]) -> list[R]:
        """Every listener's answer, asked all at once, in order of registration.

        Raises:
            ExceptionGroup: one or more listeners raised; all had ended by then.
        """
        return await self.kernel.listeners.gather(signal, self.scope)

    async def first(self, signal: First[R]) -> R | None:
        """The first answer other than None, listeners asked in order; None if there is none.

        Raises:
            Exception: whatever a listener raised; later ones were not asked.
        """
        return await self.kernel.listeners.first(signal, self.scope)

    async def around(self, signal: Completed[L, R], default: L) -> R:
        """The answer of the chain of listeners around `default(signal)`.

        Raises:
            CallNextTwice: a listener continued more than once.
            Exception: whatever a listener or `default` raised.
        """
        end = cast("Callable[[object], Awaitable[R]]", default)
        if type(signal) not in self.kernel.listeners.table:
            return await end(signal)
        return await self.kernel.listeners.around(signal, end, self.scope)

    # reports

    def report(self, error: BaseException, what: str = "") -> None:
        """Tell an error that has no caller to go to; it is logged with this context's label."""
        self.kernel.report(error, f"{self.label}: {what}" if what else self.label)

    def diagnose(self) -> list[Diagnosis]:
        """Each fiber that is pending or failed, with what it lacks and the deepest cause."""
        return diagnose(self.kernel)

    def tree(self) -> str:
        """The fibers and their registrations, as indented text."""
        return tree(self.kernel)

    async def settled(self) -> None:
        """Returns when every fiber but this one and those above it rests."""
        await self.kernel.settled(self.fiber)


class SubContext(Context):
    """A context that ends before its owner does, such as that of one agent."""

    def __init__(
        self, kernel: Kernel, fiber: Fiber, effects: Effects, scope: Scope | None, entry: Effect
    ) -> None:
        super().__init__(kernel, fiber, effects, scope)
        self._entry = entry

    async def dispose(self) -> None:
        """Undo all that was registered here; returns when it has stopped. Idempotent; joins one in flight."""
        await self._entry.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.dispose()


@dataclass(frozen=True)
class Report:
    """An error that had no caller to go to, and where it came from."""

    error: BaseException
    where: str


class Kernel:
    """The plugin container: `async with Kernel() as kernel`, then mount on `kernel.root`.

    Leaving it disposes everything, last in, first out. It owns the one task group that all plugin
    work runs in; none of that work is cancelled from outside before its turn to be undone comes.
    """

    def __init__(self, *, on_report: Callable[[Report], None] | None = None, grace_s: float = 5.0) -> None:
        """`on_report` gets every report (default: the log "leadline"); `grace_s`, in seconds, is how
        long a listener's calls in flight may take to end when its plugin is unloaded."""
        self.reports: deque[Report] = deque(maxlen=200)
        """The latest reports, oldest first."""
        self.provisions = Provisions()
        self.listeners = Listeners(self, grace_s)
        self.fibers: dict[Fiber, None] = {}
        self.tasks: dict[object, str] = {}
        self.registries: WeakSet[Observed] = WeakSet()
        self._on_report = on_report or _log_report
        self._group: TaskGroup | None = None
        root = Fiber(self, None, None, id="root", parent=None)
        root.state = State.ACTIVE
        root.effects = Effects(self, "root")
        self.root = Context(self, root, root.effects, None)
        self.fibers[root] = None

    async def __aenter__(self) -> Self:
        self._group = await create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with CancelScope(shield=True):
            await self.root.effects.dispose()
        self.root.fiber.state = State.DISPOSED
        group, self._group = self._group, None
        if group is not None:
            # The group must not wrap the body's own error, and there is nothing left to cancel.
            group.cancel_scope.shield = True
            await group.__aexit__(None, None, None)

    def start(self, fn: Callable[[], Awaitable[None]], name: str) -> None:
        """Run `fn` in the kernel's task group.

        Raises:
            KernelError: the kernel is not entered, or was left.
        """
        if self._group is None:
            raise KernelError(
                f"the kernel is not running, so {name!r} cannot start; use `async with Kernel() as kernel`"
            )
        key = object()

        async def run() -> None:
            try:
                await fn()
            finally:
                del self.tasks[key]

        self.tasks[key] = name
        self._group.start_soon(run, name=name)

    def report(self, error: BaseException, where: str) -> None:
        """Tell an error that has no caller to go to."""
        entry = Report(error, where)
        self.reports.append(entry)
        self._on_report(entry)

    def new_context(self, fiber: Fiber, effects: Effects) -> Context:
        return Context(self, fiber, effects, fiber.scope)

    def wake(self, *definitions: type[Service]) -> None:
        """Let every fiber that needs or wants one of these look again."""
        for fiber in tuple(self.fibers):
            if any(fiber.watches(definition) for definition in definitions):
                fiber.refresh()

    async def withdraw(self, provision: Provision) -> None:
        """Stop offering `provision`; returns when nobody runs with it."""
        provision.withdrawing = True
        for fiber in tuple(self.fibers):
            if fiber is not provision.fiber and provision in fiber.bound.values():
                await fiber.unbind(provision)

    async def settled(self, but: Fiber | None = None) -> None:
        """Returns when every fiber rests, `but` and those above it left out."""
        while True:
            busy = [it for it in self.fibers if not it.resting and not (but and but.is_within(it))]
            if not busy:
                return
            await busy[0].settled()

    def snapshot(self) -> Snapshot:
        """What is registered now, comparable with another moment: equal means no trace."""
        return snapshot(self)


def _realm(to: bool | str) -> Hashable:
    return to if isinstance(to, str) else object()


def _log_report(report: Report) -> None:
    logging.getLogger("leadline").error("%s: %s", report.where, report.error, exc_info=report.error)
