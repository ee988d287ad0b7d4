"""A process that does one operation of retention and kills itself at the n-th step of the stores."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio

from leadline.capabilities.persistence import plugin as persistence
from leadline.capabilities.retention import plugin as retention
from leadline.capabilities.retention.seam import Retention
from leadline.core import clock, home, ids
from leadline.core.session import registry
from leadline.core.session.blobs import Blobs
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Kernel


def killing(owner: object, name: str, left: list[int]) -> None:
    """Make the method `name` of `owner` count `left` down before and after each call, and kill at zero."""
    real = getattr(owner, name)

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async def awaited(*args: object, **named: object) -> object:
        count()
        result = await real(*args, **named)
        count()
        return result

    def called(*args: object, **named: object) -> object:
        count()
        result = real(*args, **named)
        count()
        return result

    setattr(owner, name, called if name in ("put", "remove") else awaited)


async def main(root: str, store: str, step: str, operation: str, argument: str) -> None:
    async with Kernel() as kernel:
        ctx = kernel.root
        for plugin, config in (
            (clock.plugin, {}),
            (ids.plugin, {}),
            (home.plugin, {"path": root}),
            (registry.plugin, {}),
            (persistence.plugin, {"store": store}),
            (retention.plugin, {}),
        ):
            await ctx.mount(plugin, config)
        left = [int(step)]
        for name in ("add_raw", "delete", "archive"):
            killing(ctx.get(SessionStore), name, left)
        for name in ("put", "remove"):
            killing(ctx.get(Blobs), name, left)
        kept = ctx.get(Retention)
        match operation:
            case "import":
                await kept.import_(Path(argument))
            case "delete":
                await kept.delete(argument)
            case "archive":
                await kept.archive(argument)
            case _:
                await kept.collect()


root, store, step, operation, argument = sys.argv[1:]
anyio.run(main, root, store, step, operation, argument)
