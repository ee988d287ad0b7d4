"""Signals: dispatches between plugins, each a class that carries its payload and its mode.

Subclass one of the four modes as a frozen dataclass. The mode fixes what a listener looks like
and which dispatch of `Context` takes it, so a call in the wrong mode does not type-check.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutine
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar, cast

from anyio import create_task_group, move_on_after

from leadline.kernel.effects import Ending, Host, Work, contained, run_work
from leadline.kernel.errors import CallNextTwice, KernelError, ListenerGone

if TYPE_CHECKING:
    from leadline.kernel.scope import Scope

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
L_contra = TypeVar("L_contra", contravariant=True)


class Notice:
    """Every listener sees it, synchronously; one that raises is reported and stops nobody."""

    @classmethod
    def _accepts(cls, listener: Callable[[Self], None], /) -> None: ...


class Gather(Generic[R]):
    """All listeners at once, awaited; the answers come in order of registration."""

    @classmethod
    def _accepts(cls, listener: Callable[[Self], Awaitable[R]], /) -> None: ...


class First(Generic[R]):
    """Listeners in order; the first answer other than None wins and the rest are not asked."""

    @classmethod
    def _accepts(cls, listener: Callable[[Self], Awaitable[R | None]], /) -> None: ...


class Around(Generic[R]):
    """Middleware: a listener gets the signal and `call_next`, which it awaits at most once.

    Not calling it is a decision. To change what the rest sees, pass a changed copy.
    """

    @classmethod
    def _accepts(
        cls, listener: Callable[[Self, Callable[[Self], Awaitable[R]]], Awaitable[R]], /
    ) -> None: ...

    def _completes(self, default: Callable[[Self], Awaitable[R]], /) -> R: ...


class Listens(Protocol[L_contra]):
    """A signal class, seen as what may listen to it."""

    def _accepts(self, listener: L_contra, /) -> None: ...


class Completed(Protocol[L_contra, R_co]):
    """An around signal, seen as what may stand at the end of its chain."""

    def _completes(self, default: L_contra, /) -> R_co: ...


class Listener:
    """One registered function and the calls of it that are in flight."""

    def __init__(self, fn: Callable[..., object], scope: Scope | None, owner: str, signal: str) -> None:
        self.fn = fn
        self.scope = scope
        self.owner = owner
        self.signal = signal
        self.alive = True
        self.calls: dict[Work, Ending] = {}

    def __str__(self) -> str:
        return f"listener of {self.signal} by {self.owner}"

    async def call(self, *args: object) -> object:
        """The listener's answer.

        Raises:
            ListenerGone: its owner was unloaded and the call did not end in the time it was given.
        """
        work, done = Work.nested(), Ending()
        self.calls[work] = done
        try:
            answer = await run_work(work, lambda: cast("Awaitable[object]", self.fn(*args)))
        finally:
            del self.calls[work]
            done.set()
        if answer is None:
            raise ListenerGone(f"the {self} was unloaded while its call was in flight; send the signal again")
        return answer[0]


class Listeners:
    """All listeners of a kernel. Tuples are replaced, not changed, so a dispatch has its snapshot for free."""

    def __init__(self, host: Host, grace_s: float) -> None:
        self._host = host
        self._grace_s = grace_s
        self.table: dict[object, tuple[Listener, ...]] = {}

    def add(self, signal: object, listener: Listener, *, prepend: bool) -> None:
        present = self.table.get(signal, ())
        self.table[signal] = (listener, *present) if prepend else (*present, listener)

    async def remove(self, signal: object, listener: Listener) -> None:
        """Take `listener` out, let its calls in flight end, and cut off those that take too long."""
        listener.alive = False
        left = tuple(other for other in self.table.get(signal, ()) if other is not listener)
        if left:
            self.table[signal] = left
        else:
            self.table.pop(signal, None)
        with move_on_after(self._grace_s):
            while listener.calls:
                await next(iter(listener.calls.values())).wait()
        for work in tuple(listener.calls):
            work.interrupt()
        while listener.calls:
            await next(iter(listener.calls.values())).wait()

    def select(self, signal: object, scope: Scope | None) -> list[Listener]:
        """Who hears a dispatch of `signal` on a context of `scope`: global ones, the scope's, its ancestors'."""
        heard = scope.chain if scope else ()
        return [it for it in self.table.get(type(signal), ()) if it.scope is None or it.scope in heard]

    def notify(self, signal: Notice, scope: Scope | None) -> None:
        for listener in self.select(signal, scope):
            if not listener.alive:
                continue
            try:
                answer = listener.fn(signal)
                if isawaitable(answer):
                    if iscoroutine(answer):
                        answer.close()
                    raise KernelError(
                        f"the {listener} is async, but a notice is synchronous; make it a plain function"
                    )
            except BaseException as raised:  # noqa: BLE001 - a notice stops nobody; the kernel's report tells it
                self._host.report(contained(raised), str(listener))

    async def gather(self, signal: Gather[R], scope: Scope | None) -> list[R]:
        listeners = self.select(signal, scope)
        if not listeners:
            return []
        answers: dict[int, R] = {}
        errors: list[Exception] = []

        async def ask(place: int, listener: Listener) -> None:
            try:
                answers[place] = cast("R", await listener.call(signal))
            except Exception as error:  # noqa: BLE001 - raised together once all have answered
                error.add_note(f"in the {listener}")
                errors.append(error)

        async with create_task_group() as group:
            for place, listener in enumerate(listeners):
                group.start_soon(ask, place, listener)
        if errors:
            raise ExceptionGroup(f"listeners of {type(signal).__name__}", errors)
        return [answers[place] for place in sorted(answers)]

    async def first(self, signal: First[R], scope: Scope | None) -> R | None:
        for listener in self.select(signal, scope):
            if listener.alive:
                answer = cast("R | None", await listener.call(signal))
                if answer is not None:
                    return answer
        return None

    async def around(
        self, signal: object, default: Callable[[object], Awaitable[R]], scope: Scope | None
    ) -> R:
        listeners = self.select(signal, scope)

        async def run(place: int, value: object) -> R:
            if not isinstance(value, type(signal)):
                raise KernelError(
                    f"call_next of {type(signal).__name__} was given a {type(value).__name__}; "
                    "pass the signal or a changed copy of it"
                )
            while place < len(listeners) and not listeners[place].alive:
                place += 1
            if place == len(listeners):
                return await default(value)
            listener, spent = listeners[place], False

            async def call_next(changed: object) -> R:
                nonlocal spent
                if spent:
                    raise CallNextTwice(f"the {listener} may call call_next once, and before it returns")
                spent = True
                return await run(place + 1, changed)

            try:
                return cast("R", await listener.call(value, call_next))
            finally:
                spent = True

        return await run(0, signal)
