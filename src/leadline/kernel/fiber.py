"""A fiber: one mounted plugin, and the one driver that moves it between its states."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TYPE_CHECKING

from anyio import CancelScope, Event
from anyio.lowlevel import checkpoint

from leadline.kernel.effects import Effect, Effects, Work, contained, run_work
from leadline.kernel.errors import FiberInactive, PluginFailed
from leadline.kernel.services import definition_of

if TYPE_CHECKING:
    from leadline.kernel.context import Context, Kernel
    from leadline.kernel.plugin import Mountable
    from leadline.kernel.scope import Scope
    from leadline.kernel.services import Provision, Realms, Service

Epoch = tuple[int, ...]


class State(Enum):
    """Where a fiber is in its life."""

    PENDING = "pending"
    LOADING = "loading"
    ACTIVE = "active"
    UNLOADING = "unloading"
    DISPOSED = "disposed"
    FAILED = "failed"


class Fiber:
    """One mounted plugin.

    It runs while all it needs is usable, under an *epoch*: the identities of the providers of what
    it needs and wants. Another epoch means unload and load again. All changes of state are made by
    one driver task, so they never overlap.
    """

    def __init__(
        self,
        kernel: Kernel,
        plugin: Mountable | None,
        config: object,
        *,
        id: str,  # noqa: A002 - the word that a row uses
        parent: Fiber | None,
        scope: Scope | None = None,
        realms: Realms | None = None,
    ) -> None:
        self.kernel = kernel
        self.plugin = plugin
        self.config = config
        self.id = id
        self.parent = parent
        self.scope = scope
        self.realms: Realms = realms or {}
        self.path: str = f"{parent.path}/{id}" if parent is not None and parent.parent is not None else id
        self.state = State.PENDING
        self.error: Exception | None = None
        """Why it failed, in state FAILED."""
        self.bound: dict[type[Service], Provision] = {}
        """What it was started with."""
        self.effects: Effects | None = None
        self.entry: Effect | None = None
        self._context: Context | None = None
        self._epoch: Epoch | None = None
        self._generation = 0
        self._stopping = False
        self._refused = False
        self._setup: Work | None = None
        self._driving = False
        self._idle = Event()
        self._unbound = Event()

    def __repr__(self) -> str:
        return f"<Fiber {self.path} {self.state.value}>"

    @property
    def offers(self) -> bool:
        """Whether what it provides may be used by others."""
        return self.state is State.ACTIVE

    @property
    def context(self) -> Context:
        """The context of the present activation.

        Raises:
            FiberInactive: it is neither loading nor active.
        """
        if self._context is None:
            raise FiberInactive(
                f"{self.path} is {self.state.value}, so it has no context; see ctx.diagnose()"
            )
        return self._context

    @property
    def resting(self) -> bool:
        """Whether no change of state is under way."""
        return not self._driving

    def is_within(self, ancestor: Fiber) -> bool:
        """Whether this is `ancestor` or below it."""
        fiber: Fiber | None = self
        while fiber is not None and fiber is not ancestor:
            fiber = fiber.parent
        return fiber is not None

    def watches(self, definition: type[Service]) -> bool:
        """Whether it starts, stops or restarts with `definition`."""
        plugin = self.plugin
        return plugin is not None and any(
            definition_of(it) is definition for it in (*plugin.needs, *plugin.wants)
        )

    def validate(self) -> None:
        """Fail at once on a config that cannot be used, whether or not what it needs is there."""
        try:
            if self.plugin is not None:
                self.plugin.bind(self.config)
        except BaseException as raised:  # noqa: BLE001 - a plugin's failure is its fiber's state; diagnose() tells it
            self.state, self.error, self._refused = State.FAILED, contained(raised), True
            self.kernel.report(self.error, f"plugin {self.path}")

    def lacks(self) -> list[type[Service]]:
        """The needed services that it may not use now."""
        return [it for it in (self.plugin.needs if self.plugin else ()) if self._resolve(it) is None]

    def depends_on(self, other: Fiber) -> bool:
        """Whether, through what it or its ancestors were started with, this stops when `other` stops."""
        seen: set[Fiber] = set()
        open_: list[Fiber] = [self]
        while open_:
            fiber = open_.pop()
            if fiber is other:
                return True
            if fiber not in seen:
                seen.add(fiber)
                open_ += [provision.fiber for provision in fiber.bound.values()]
                open_ += [fiber.parent] if fiber.parent else []
        return False

    async def settled(self) -> None:
        """Returns when the fiber rests: active, pending, failed or disposed."""
        while self._driving:
            await self._idle.wait()

    async def dispose(self) -> None:
        """Stop the plugin for good; returns when its work has stopped. Idempotent; joins one in flight."""
        if self.entry is not None:
            await self.entry.dispose()

    async def update(self, config: object) -> None:
        """Restart with another config; returns when settled.

        Raises:
            ConfigError: `config` cannot be used; the fiber goes on as it was.
        """
        if self.plugin is not None:
            self.plugin.bind(config)
        self.config, self._refused = config, False
        self._generation += 1
        if self.state is State.FAILED:
            self._epoch = ()
        self.refresh()
        await self.settled()

    def refresh(self) -> None:
        """Look again at what should be the case, and set the driver going if it is not."""
        if self._driving:
            if self._setup is not None and self._target() != self._epoch:
                self._setup.interrupt()
        elif self._next() is not None:
            self._driving = True
            self._idle = Event()
            self.kernel.start(self._drive, f"fiber {self.path}")

    async def stop(self) -> None:
        """The inverse of mounting."""
        self._stopping = True
        self.refresh()
        await self.settled()

    async def unbind(self, provision: Provision) -> None:
        """Returns when the fiber no longer runs with `provision`."""
        self.refresh()
        while provision in self.bound.values():
            await self._unbound.wait()

    def _resolve(self, definition: type[Service], *, wanted: bool = False) -> Provision | None:
        found = self.kernel.provisions.at(definition_of(definition), self.realms)
        if found is None or found.withdrawing or found.fiber.is_within(self):
            return None
        if not (found.fiber.offers or self.is_within(found.fiber)):
            return None
        # Two fibers that want each other's service would restart each other for ever.
        if wanted and found.fiber.depends_on(self):
            return None
        return found

    def _resolved(self) -> dict[type[Service], Provision | None]:
        if self.plugin is None:
            return {}
        found = {definition: self._resolve(definition, wanted=True) for definition in self.plugin.wants}
        return found | {definition: self._resolve(definition) for definition in self.plugin.needs}

    def _target(self) -> Epoch | None:
        if self._stopping or self._refused or self.plugin is None:
            return None
        found = self._resolved()
        if any(found[definition] is None for definition in self.plugin.needs):
            return None
        return (self._generation, *(it.uid if it else 0 for it in found.values()))

    def _owner_is_closing(self) -> bool:
        """Whether this or a fiber above it is about to be disposed: a reload would only be undone again."""
        fiber: Fiber | None = self
        while fiber is not None and fiber.entry is not None and not fiber.entry.owner.closed:
            fiber = fiber.parent
        return fiber is not None and fiber.entry is not None

    def _next(self) -> Callable[[], Awaitable[None]] | None:
        """The next step towards what should be the case, or None at rest."""
        target = self._target()
        if self.state in (State.ACTIVE, State.FAILED) and (self._stopping or target != self._epoch):
            return self._unload
        if self.state is State.PENDING and self._stopping:
            return self._finish
        if self.state is State.PENDING and target is not None and not self._owner_is_closing():
            return self._load
        return None

    async def _drive(self) -> None:
        try:
            with CancelScope(shield=True):
                while (step := self._next()) is not None:
                    await step()
        finally:
            self._driving = False
            self._idle.set()

    async def _load(self) -> None:
        self.state, self.error, self._epoch = State.LOADING, None, self._target()
        await checkpoint()
        if self._target() != self._epoch or self._owner_is_closing():
            # What landed first wins: no code of the plugin runs.
            self._rest(State.PENDING)
            return
        self.bound = {it.definition: it for it in self._resolved().values() if it is not None}
        self.effects = Effects(self.kernel, self.path)
        self._setup = Work()
        try:
            finished = await run_work(self._setup, self._start)
            if finished is not None and not self._setup.interrupted:
                self._check_provided()
        except BaseException as raised:  # noqa: BLE001 - a plugin's failure is its fiber's state; diagnose() tells it
            self.error = contained(raised, cancellable=False)
        interrupted, self._setup = self._setup.interrupted, None
        if self.error is None and not interrupted:
            self.state = State.ACTIVE
            self.kernel.wake(*(it.definition for it in self.kernel.provisions if it.fiber is self))
            return
        if self.error is not None:
            self.kernel.report(self.error, f"plugin {self.path}")
        await self._unwind()
        self._rest(State.PENDING if interrupted else State.FAILED)

    async def _start(self) -> None:
        assert self.plugin is not None and self.effects is not None
        start = self.plugin.bind(self.config)
        self._context = self.kernel.new_context(self, self.effects)
        await start(self._context)

    def _check_provided(self) -> None:
        provided = {it.definition for it in self.kernel.provisions if it.fiber.is_within(self)}
        for definition in self.plugin.provides if self.plugin else ():
            if definition_of(definition) not in provided:
                raise PluginFailed(
                    f"{self.path} declares that it provides {definition.service_key!r} but did not; "
                    f"call ctx.provide({definition.__name__}, ...) in apply or take it out of provides"
                )

    async def _unload(self) -> None:
        if self.state is State.ACTIVE:
            self.state = State.UNLOADING
            await self._unwind()
        self._rest(State.PENDING)

    async def _unwind(self) -> None:
        """Stop those who depend on this, then undo everything; their service works until they have stopped."""
        for provision in self.kernel.provisions:
            if provision.fiber is self:
                await self.kernel.withdraw(provision)
        if self.effects is not None:
            await self.effects.dispose()

    def _rest(self, state: State) -> None:
        self.state = state
        self._context = None
        self.bound = {}
        if state is State.PENDING:
            self.error, self._epoch = None, None
        self._unbound.set()
        self._unbound = Event()

    async def _finish(self) -> None:
        self.state = State.DISPOSED
        self.kernel.fibers.pop(self, None)
