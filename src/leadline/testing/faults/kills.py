"""Kills real processes: the same command again and again, until it is let be."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from subprocess import DEVNULL
from tempfile import TemporaryFile
from typing import TypeAlias

import anyio
from anyio.abc import Process

from leadline.kernel.errors import LeadlineError

Command: TypeAlias = Callable[[int], Awaitable[Sequence[str]]]
"""What to run at attempt number n, from 0: to begin something, or to go on with it."""
Moment: TypeAlias = Callable[[int], Awaitable[None]]
"""Returns when attempt number n is to be killed."""


class NotKilled(LeadlineError):
    """The command did not do what it should between its kills; with what it said."""


@dataclass(frozen=True)
class Ended:
    """How a process ended that was let be."""

    code: int
    out: bytes
    err: str


@dataclass(frozen=True)
class Killed:
    """What became of a command."""

    kills: int
    """How often it was killed: fewer than wanted where it came to its end before."""
    last: Ended
    """Its end."""


def within(seconds: float, seed: int = 0, *, at_least: float = 0.0) -> Moment:
    """Moments drawn evenly between `at_least` and `seconds` after the start of a process."""
    random = Random(seed)

    async def moment(attempt: int) -> None:
        await anyio.sleep(random.uniform(at_least, seconds))

    return moment


async def killed(
    command: Command,
    kills: int,
    moment: Moment,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> Killed:
    """Run a command and kill it with SIGKILL, `kills` times, each at its moment; then let it come to its end.

    A process that ends by itself before its moment ends the killing; where it failed, see `last.code`.

    Raises:
        NotKilled: the last process did not end within `timeout_s`.
    """
    for attempt in range(kills):
        ended = await kill(await command(attempt), moment, attempt, env=env)
        if ended is not None:
            return Killed(attempt, ended)
    return Killed(kills, await let_be(await command(kills), env=env, timeout_s=timeout_s))


async def let_be(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float = 120.0
) -> Ended:
    """Run a command to its end.

    Raises:
        NotKilled: it did not end within `timeout_s`.
    """
    with anyio.move_on_after(timeout_s):
        done = await anyio.run_process([*command], check=False, env=_with(env))
        return Ended(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))
    raise NotKilled(f"{' '.join(command)} did not end within {timeout_s:.0f} s")


async def together(
    commands: Sequence[Sequence[str]], *, env: Mapping[str, str] | None = None, timeout_s: float = 120.0
) -> list[Ended]:
    """Run several commands at once, each to its end; how each ended, in the order of the commands.

    Raises:
        NotKilled: one did not end within `timeout_s`.
    """
    ended: dict[int, Ended] = {}

    async def one(number: int, command: Sequence[str]) -> None:
        ended[number] = await let_be(command, env=env, timeout_s=timeout_s)

    async with anyio.create_task_group() as group:
        for number, command in enumerate(commands):
            group.start_soon(one, number, command)
    return [ended[number] for number in range(len(commands))]


async def kill(
    command: Sequence[str], moment: Moment, attempt: int = 0, *, env: Mapping[str, str] | None = None
) -> Ended | None:
    """Run a command and kill it, with all that it started, at its moment; its end where it came to that before."""
    with TemporaryFile() as out, TemporaryFile() as err:
        options = {"stdin": DEVNULL, "stdout": out, "stderr": err, "start_new_session": True}
        code: int | None = None
        process = await anyio.open_process([*command], env=_with(env), **options)  # type: ignore[arg-type]
        try:
            over = await _ends_before(process, attempt, moment)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                code = await process.wait()
        assert code is not None
        if not over and code == -signal.SIGKILL:
            return None
        out.seek(0)
        err.seek(0)
        return Ended(code, out.read(), err.read().decode("utf-8", "backslashreplace"))


async def _ends_before(process: Process, attempt: int, moment: Moment) -> bool:
    over = False

    async def watch() -> None:
        nonlocal over
        await process.wait()
        over = True
        group.cancel_scope.cancel()

    async def wait() -> None:
        await moment(attempt)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        group.start_soon(wait)
    return over


def _with(env: Mapping[str, str] | None) -> dict[str, str] | None:
    return {**os.environ, **env} if env else None
