"""What one owner has registered, and how it is undone: last in, first out, each step awaited, all of them run.

Each piece of work runs in a task of the kernel with its own shielded cancel scope. So an async
context manager is entered and left in one task whoever asks, and an outer cancellation cannot
tear things down out of order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from inspect import isawaitable
from typing import Generic, Protocol, TypeVar, cast

from anyio import CancelScope, Event, get_cancelled_exc_class
from anyio.lowlevel import checkpoint

from leadline.kernel.errors import FiberInactive, PluginFailed

T = TypeVar("T")
Undo = Callable[[], Awaitable[None] | None]


class Host(Protocol):
    """What effects need of the kernel."""

    def start(self, fn: Callable[[], Awaitable[None]], name: str) -> None:
        """Run `fn` in the kernel's task group."""
        ...

    def report(self, error: BaseException, where: str) -> None:
        """Tell an error that has no caller to go to."""
        ...


class Work:
    """A stretch of plugin code that the kernel runs and can interrupt.

    Waiting for a disposal is shielded from cancellation, except from the interruption of the very
    work that waits: without that exception a plugin that disposes its own owner would wait for itself.
    """

    def __init__(self, outer: Work | None = None) -> None:
        self.scope = CancelScope(shield=outer is None)
        self.interrupted = False
        self.joins: set[CancelScope] = set()
        self._outer = outer

    @classmethod
    def nested(cls) -> Work:
        """Work inside whatever runs now: interrupted with it, or alone."""
        work = cls(_work.get())
        work.scope.shield = False
        return work

    def chain(self) -> list[Work]:
        return [self, *(self._outer.chain() if self._outer else ())]

    def interrupt(self) -> None:
        self.interrupted = True
        self.scope.cancel()
        for scope in self.joins:
            scope.cancel()


_work: ContextVar[Work | None] = ContextVar("_work", default=None)
_undoing: ContextVar[frozenset[Effect]] = ContextVar("_undoing", default=frozenset())


async def run_work(work: Work, fn: Callable[[], Awaitable[T]]) -> tuple[T] | None:
    """The result of `fn` in a 1-tuple, or None if it was interrupted.

    Raises:
        PluginFailed: `fn` raised what would end the program.
        as `fn`.
    """
    if work.interrupted:
        return None
    token, undoing = _work.set(work), _undoing.set(frozenset())
    try:
        with work.scope:
            return (await fn(),)
    except BaseException as raised:  # noqa: BLE001 - raised again, as what ends this code alone
        raise contained(raised)  # noqa: B904 - it is the same error, or has it as its cause
    finally:
        _work.reset(token)
        _undoing.reset(undoing)
    return None


def contained(raised: BaseException, *, cancellable: bool = True) -> Exception:
    """What plugin code raised, as an error that ends that code and not the program: `sys.exit` included.

    `cancellable` False: nobody outside can cancel that code, so a cancellation in it is a failure of its own.

    Raises:
        BaseException: `raised` itself, where a person or a cancellation is in it, which nobody may swallow.
    """
    if isinstance(raised, Exception):
        return raised
    if _asks_to_stop(raised, get_cancelled_exc_class() if cancellable else KeyboardInterrupt):
        raise raised
    failed = PluginFailed(f"{type(raised).__name__}: {raised}")
    failed.__cause__ = raised
    return failed


def _asks_to_stop(error: BaseException, cancellation: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return any(_asks_to_stop(one, cancellation) for one in inner)
    return isinstance(error, (KeyboardInterrupt, GeneratorExit, cancellation))


def interrupted() -> bool:
    """Whether the kernel is ending the very work that asks, rather than somebody cancelling it."""
    work = _work.get()
    return work is not None and any(it.interrupted for it in work.chain())


class Ending:
    """Comes once, and can be waited for. Unlike an `Event` it costs next to nothing while nobody waits."""

    __slots__ = ("_come", "_event")

    def __init__(self) -> None:
        self._come = False
        self._event: Event | None = None

    def set(self) -> None:
        self._come = True
        if self._event is not None:
            self._event.set()

    def is_set(self) -> bool:
        return self._come

    async def wait(self) -> None:
        if self._event is None:
            self._event = Event()
            if self._come:
                self._event.set()
        await self._event.wait()


async def join(done: Ending) -> None:
    """Wait for `done`, whatever cancels the caller, unless the kernel interrupts the caller itself."""
    current = _work.get()
    works = current.chain() if current else []
    if not interrupted():
        with CancelScope(shield=True) as scope:
            for work in works:
                work.joins.add(scope)
            try:
                await done.wait()
            finally:
                for work in works:
                    work.joins.discard(scope)
    if not done.is_set():
        await checkpoint()


class Effect:
    """One registration: its label and, once, its inverse."""

    def __init__(self, owner: Effects, label: str, undo: Undo, inner: Effects | None = None) -> None:
        self.owner = owner
        self.label = label
        self.inner = inner
        self.error: Exception | None = None
        self.done = Ending()
        self._undo = undo
        self._begun = False

    async def dispose(self) -> None:
        """Undo this now; returns when it is undone. Idempotent, and joins an undoing in flight.

        An error of the inverse is reported to the kernel. From inside the undoing itself this
        returns at once, since it would wait for itself.
        """
        if self.done.is_set() or self in _undoing.get():
            return
        if not self._begun:
            self._begun = True
            self.owner.host.start(self._dispose_alone, f"undo {self.label}")
        await join(self.done)

    def forget(self) -> None:
        """Drop the registration without running its inverse: what it stood for has ended by itself."""
        self.owner.entries.pop(self, None)
        self.done.set()

    async def unwind(self) -> None:
        """Undo in the caller's task; joins one in flight. An error is kept in `error`."""
        if self._begun:
            await self.done.wait()
            return
        self._begun = True
        await self._run()
        if self.error is not None:
            self.owner.errors.append(self.error)

    async def _dispose_alone(self) -> None:
        with CancelScope(shield=True):
            await self._run()
        if self.error is not None:
            self.owner.host.report(self.error, f"{self.owner.label}: undoing {self.label}")

    async def _run(self) -> None:
        token, work = _undoing.set(_undoing.get() | {self}), _work.set(None)
        try:
            result = self._undo()
            if isawaitable(result):
                await result
        except BaseException as raised:  # noqa: BLE001 - reported by whoever asked for the undoing
            error = contained(raised, cancellable=False)
            error.add_note(f"while undoing {self.label!r} of {self.owner.label!r}")
            self.error = error
        finally:
            _undoing.reset(token)
            _work.reset(work)
            self.forget()


class Effects:
    """The stack of one owner's registrations."""

    def __init__(self, host: Host, label: str) -> None:
        self.host = host
        self.label = label
        self.entries: dict[Effect, None] = {}
        self.errors: list[Exception] = []
        self.closed = False
        self.done = Ending()

    def add(self, label: str, undo: Undo, inner: Effects | None = None) -> Effect:
        """Keep `undo` for the end.

        Raises:
            FiberInactive: the owner is unloading or disposed.
        """
        self.check_open(label)
        effect = Effect(self, label, undo, inner)
        self.entries[effect] = None
        return effect

    def check_open(self, label: str) -> None:
        if self.closed:
            raise FiberInactive(
                f"{self.label} is unloading or disposed, so it cannot take {label!r}; "
                "register while it is loading or active"
            )

    async def dispose(self) -> None:
        """Undo everything; returns when all of it has stopped. Idempotent; joins one in flight."""
        if not self.closed:
            self.closed = True
            self.host.start(self._unwind, f"unload {self.label}")
        await join(self.done)

    async def _unwind(self) -> None:
        try:
            with CancelScope(shield=True):
                while self.entries:
                    await next(reversed(self.entries)).unwind()
            if self.errors:
                self.host.report(ExceptionGroup(f"unloading {self.label}", self.errors), self.label)
        finally:
            self.done.set()

    async def enter(self, label: str, cm: AbstractAsyncContextManager[T]) -> T:
        """The value of `cm`, entered now and left when this stack is undone.

        Raises:
            FiberInactive: the owner is unloading, or began to while `cm` was being entered.
            Exception: whatever entering raised; nothing stays registered then.
        """
        held = _Held(self, label, cm)
        self.host.start(held.run, f"{self.label}: {label}")
        try:
            await held.entered.wait()
        except BaseException:
            held.work.interrupt()
            await join(held.done)
            if held.error is not None:
                self.host.report(held.error, f"{self.label}: {label}")
            raise
        if held.error is not None:
            raise held.error
        if held.value is None:
            raise FiberInactive(f"{self.label} was unloaded while it entered {label!r}")
        return held.value[0]

    def spawn(self, fn: Callable[[], Awaitable[object]], name: str) -> TaskHandle:
        """Run `fn` in a task of this owner: cancelled and joined when the stack is undone."""
        handle = TaskHandle(self, fn, name)
        self.host.start(handle.run, f"{self.label}: {name}")
        return handle


class _Held(Generic[T]):
    """An async context manager, entered and left in one task of the kernel."""

    def __init__(self, owner: Effects, label: str, cm: AbstractAsyncContextManager[T]) -> None:
        self.work = Work()
        self.entered, self.leave, self.done = Ending(), Ending(), Ending()
        self.value: tuple[T] | None = None
        self.error: Exception | None = None
        self._cm = cm
        self._closing: frozenset[Effect] = frozenset()
        self._effect = owner.add(label, self._close)

    async def run(self) -> None:
        try:
            await run_work(self.work, self._hold)
        except Exception as error:  # noqa: BLE001 - given to whoever waits, or reported below
            self.error = error
        finally:
            owner, early = self._effect.owner, not self.leave.is_set()
            if early:
                self._effect.forget()
            if self.error is not None and early and self.value is not None:
                owner.host.report(self.error, f"{owner.label}: {self._effect.label} ended early")
            self.entered.set()
            self.done.set()

    async def _hold(self) -> None:
        async with self._cm as value:
            self.value = (value,)
            self.entered.set()
            await self.leave.wait()
            _undoing.set(self._closing)

    async def _close(self) -> None:
        self._closing = _undoing.get()
        self.leave.set()
        if not self.entered.is_set():
            self.work.interrupt()
        await self.done.wait()
        if self.error is not None and self.value is not None:
            raise self.error


class TaskHandle:
    """A task that a context owns."""

    def __init__(self, owner: Effects, fn: Callable[[], Awaitable[object]], name: str) -> None:
        self.name = name
        self.error: Exception | None = None
        self.ended = Ending()
        self._fn = fn
        self._work = Work()
        self._effect = owner.add(f"task {name}", self._stop)

    @property
    def done(self) -> bool:
        """Whether the task has ended, in whatever way."""
        return self.ended.is_set()

    def cancel(self) -> None:
        """Ask the task to stop; `wait` tells when it has."""
        self._work.interrupt()

    async def stop(self) -> None:
        """Cancel the task; returns when it has stopped, whatever cancels the caller."""
        self.cancel()
        await join(self.ended)

    async def wait(self) -> None:
        """Returns when the task has ended; its error, if it had one, is in `error` and was reported."""
        await self.ended.wait()

    async def run(self) -> None:
        owner = self._effect.owner
        try:
            await run_work(self._work, self._fn)
        except Exception as error:  # noqa: BLE001 - reported with the owner's name; the kernel lives on
            self.error = error
            owner.host.report(error, f"{owner.label}: task {self.name}")
        finally:
            self.ended.set()
            self._effect.forget()

    async def _stop(self) -> None:
        self.cancel()
        await self.ended.wait()
