"""The program behind a command: booted, with what it refuses told in one line, and stopped by signals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import anyio

from leadline.apps.cli.exits import refusing
from leadline.apps.cli.stopping import Stop, stoppable
from leadline.apps.cli.streams import reports_held
from leadline.apps.sdk.app import Leadline

T = TypeVar("T")


def run_stoppable(work: Callable[[Stop], Awaitable[T]]) -> T:
    """Run `work` to its end; see `stoppable`."""
    return anyio.run(stoppable, work)


@asynccontextmanager
async def booted(app: Leadline) -> AsyncGenerator[Leadline]:
    """The running program.

    Raises:
        Quit: it does not start.
    """
    async with AsyncExitStack() as stack:
        with refusing(), reports_held():
            await stack.enter_async_context(app)
        yield app
