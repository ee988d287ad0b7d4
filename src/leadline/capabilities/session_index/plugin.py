"""Mounts the index over all sessions."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from leadline.capabilities.retention.seam import SessionsRemoved
from leadline.capabilities.session_index.providers.local import LocalIndex
from leadline.capabilities.session_index.seam import ListQuery, SessionIndex
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.session.projection import Projections
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


class SessionIndexConfig(BaseModel):
    """Where the index is kept."""

    model_config = ConfigDict(extra="forbid")

    path: Path | None = None
    """The file; without it `index.sqlite` in the home directory. It can be deleted at any time."""


async def _apply(ctx: Context, config: SessionIndexConfig) -> None:
    path = config.path.expanduser() if config.path else ctx.get(Home).index
    index = LocalIndex(ctx.get(SessionStore), path, ctx.get(Projections), ctx.get(Clock), ctx.report)
    ctx.defer("index of sessions", index.close)

    async def forget(removed: SessionsRemoved) -> None:
        await index.list(ListQuery(limit=1))  # looks at what is still there; texts of what is gone go too

    ctx.on(SessionsRemoved, forget)
    ctx.provide(SessionIndex, index)


plugin: Plugin[SessionIndexConfig] = Plugin(
    "session-index",
    _apply,
    config=ConfigParser(SessionIndexConfig),
    needs=(Home, Clock, SessionStore, Projections),
    provides=(SessionIndex,),
)
