"""Provides Retention over the stores of sessions and blobs that are mounted."""

from __future__ import annotations

from leadline.capabilities.retention.providers.stored import StoredRetention
from leadline.capabilities.retention.seam import Retention, SessionsRemoved
from leadline.core.clock import Clock
from leadline.core.home import Home
from leadline.core.ids import Ids
from leadline.core.session.blobs import Blobs
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


async def _apply(ctx: Context, config: None) -> None:
    async def removed(signal: SessionsRemoved) -> None:
        try:
            await ctx.gather(signal)
        except ExceptionGroup as failures:  # the sessions are gone; what is derived from them is no authority
            ctx.report(failures, "forgetting of sessions that were removed")

    retention = StoredRetention(
        ctx.get(SessionStore),
        ctx.get(Blobs),
        ctx.get(Home),
        clock=ctx.get(Clock),
        ids=ctx.get(Ids),
        removed=removed,
    )
    ctx.provide(Retention, retention)


plugin: Plugin[None] = Plugin(
    "retention",
    _apply,
    needs=(SessionStore, Blobs, Home, Clock, Ids),
    provides=(Retention,),
)
"""Export, import, delete, archive, prune, collect."""
