"""A signal that is heard or sent in the wrong mode does not type-check.

The type checker is the test: an ignore below that it finds unnecessary is an error.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from leadline.kernel.context import Context
from leadline.kernel.signals import Around, First, Gather, Notice


@dataclass(frozen=True)
class Saved(Notice):
    seq: int


@dataclass(frozen=True)
class Facts(Gather[str]):
    topic: str


@dataclass(frozen=True)
class Pick(First[str]):
    task: str


@dataclass(frozen=True)
class Ask(Around[str]):
    prompt: str


Next = Callable[[Ask], Awaitable[str]]


def _hears(signal: Saved) -> None: ...
async def _tells(signal: Facts) -> str: ...
async def _counts(signal: Facts) -> int: ...
async def _wraps(signal: Ask, call_next: Next) -> str: ...
async def _ends(signal: Ask) -> str: ...
async def _ends_badly(signal: Ask) -> int: ...


async def typed(ctx: Context) -> None:
    ctx.on(Saved, _hears)
    ctx.on(Facts, _tells)
    ctx.on(Ask, _wraps)
    ctx.on(Saved, _tells)  # pyright: ignore[reportArgumentType]
    ctx.on(Facts, _hears)  # pyright: ignore[reportArgumentType]
    ctx.on(Facts, _counts)  # pyright: ignore[reportArgumentType]
    ctx.on(Ask, _ends)  # pyright: ignore[reportArgumentType]
    ctx.on(int, _hears)  # pyright: ignore[reportArgumentType]
    ctx.notice(Saved(1))
    ctx.notice(Facts("x"))  # pyright: ignore[reportArgumentType]
    facts: list[str] = await ctx.gather(Facts("x"))
    counts: list[int] = await ctx.gather(Facts("x"))  # pyright: ignore[reportAssignmentType]
    await ctx.gather(Saved(1))  # pyright: ignore[reportArgumentType]
    await ctx.first(Facts("x"))  # pyright: ignore[reportArgumentType]
    picked: str | None = await ctx.first(Pick("x"))
    asked: str = await ctx.around(Ask("x"), _ends)
    await ctx.around(Ask("x"), _ends_badly)  # pyright: ignore[reportArgumentType]
    await ctx.around(Pick("x"), _ends)  # pyright: ignore[reportArgumentType]
    del facts, counts, picked, asked
