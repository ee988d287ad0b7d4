"""SIGINT and SIGTERM: the first one cancels and keeps what there is, a second one ends the process at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeAlias, TypeVar

import anyio
from anyio.abc import TaskStatus

from leadline.apps.cli.exits import Exit, Quit
from leadline.apps.cli.streams import say

T = TypeVar("T")
End: TypeAlias = Callable[[str], Coroutine[object, object, None]]
"""Ends something gently; takes the reason."""


class Stop:
    """What a signal does now. Before there is a run, everything is cancelled; a run is asked to end."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._gently: End | None = None
        self.name = ""
        """The signal that came; empty while none did."""

    def gently(self, end: End | None) -> None:
        """From now on a signal calls `end` with the reason; None: it cancels everything again."""
        self._gently = end

    async def watch(self, *, task_status: TaskStatus[None]) -> None:
        """Wait for signals."""
        async with anyio.create_task_group() as ends:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                task_status.started()
                async for received in signals:
                    if self.name:
                        say("leadline: stopped at once")
                        os._exit(Exit.CANCELLED)
                    self.name = signal.Signals(received).name
                    if self._gently is None:
                        self._scope.cancel()
                    else:
                        ends.start_soon(self._gently, f"stopped by {self.name}")


async def stoppable(work: Callable[[Stop], Awaitable[T]]) -> T:
    """The result of `work`, which signals can stop.

    Raises:
        Quit: a signal came before `work` had something that could end gently.
        Exception: whatever `work` raised.
    """
    done: list[T] = []
    failed: list[Exception] = []
    async with anyio.create_task_group() as tasks:
        stop = Stop(tasks.cancel_scope)
        await tasks.start(stop.watch)
        try:
            done.append(await work(stop))
        except Exception as error:  # noqa: BLE001 - raised again below, outside of the task group that would wrap it
            failed.append(error)
        tasks.cancel_scope.cancel()
    if failed:
        raise failed[0]
    if not done:
        raise Quit(Exit.CANCELLED, "stopped; nothing was started")
    return done[0]
