"""The program behind a command: booted, with what it refuses told in one line, and stopped by signals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

import anyio

from leadline.apps.cli.exits import refusing
from leadline.apps.cli.stopping import Stop, stoppable
from leadline.apps.cli.streams import reports_held
from leadline.apps.sdk.app import Leadline

T = TypeVar("T")

_patches: ContextVar[tuple[Path, ...]] = ContextVar("patches", default=())


@contextmanager
def patched(patches: Sequence[Path]) -> Generator[None]:
    """Within the block, what is stored is looked for where the patches say."""
    token = _patches.set(tuple(patches))
    try:
        yield
    finally:
        _patches.reset(token)


def run_stoppable(work: Callable[[Stop], Awaitable[T]]) -> T:
    """Run `work` to its end; see `stoppable`."""
    return anyio.run(stoppable, work)


def from_store(work: Callable[[Leadline], Awaitable[T]], *, refuse: bool = True) -> T:
    """What `work` makes of what is stored.

    Args:
        work: gets the running program; it has no models and no tools.
        refuse: an error of the project in it means that nothing was done.

    Raises:
        Quit: the program does not start, or `work` was refused.
    """

    patches = _patches.get()

    async def run() -> T:
        async with booted(stored_in(patches)) as app:
            with refusing() if refuse else nullcontext():
                return await work(app)

    return anyio.run(run)


def stored_in(patches: Sequence[Path]) -> Leadline:
    """The program over what is stored where the patches say."""
    # A patch may speak of every row that ships; without one, less is enough and starts sooner.
    return Leadline(profile="research" if patches else "base", patches=patches)


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
