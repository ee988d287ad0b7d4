"""Sessions and blobs in files, as one row of a composition."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from leadline.capabilities.persistence.providers import blob_files, jsonl
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.session.blobs import Blobs
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


class PersistenceConfig(BaseModel):
    """Where sessions and blobs are kept."""

    model_config = ConfigDict(extra="forbid")

    sessions: Path | None = None
    """Directory of the session logs; without it `sessions` in the home directory."""

    blobs: Path | None = None
    """Directory of the blobs; without it `blobs` in the home directory."""


async def _apply(ctx: Context, config: PersistenceConfig) -> None:
    blob_files.start(ctx, config.blobs)
    await jsonl.start(ctx, config.sessions)


plugin: Plugin[PersistenceConfig] = Plugin(
    "persistence",
    _apply,
    config=ConfigParser(PersistenceConfig),
    needs=(Home, Clock, EventTypes),
    provides=(SessionStore, Blobs),
)
