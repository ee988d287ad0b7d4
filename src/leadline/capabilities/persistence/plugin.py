"""Sessions and blobs, as one row of a composition: sessions in files of their own or in one database."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

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

    store: Literal["jsonl", "sqlite"] = "jsonl"
    """How sessions are kept: `jsonl`, a file for each; `sqlite`, all in one database. One does not see what the other has."""

    sessions: Path | None = None
    """For `jsonl`: directory of the session logs; without it `sessions` in the home directory."""

    database: Path | None = None
    """For `sqlite`: file of the database, on a file system with locks; without it `sessions.sqlite` in the home directory."""

    blobs: Path | None = None
    """Directory of the blobs; without it `blobs` in the home directory."""


async def _apply(ctx: Context, config: PersistenceConfig) -> None:
    blob_files.start(ctx, config.blobs)
    if config.store == "jsonl":
        await jsonl.start(ctx, config.sessions)
        return
    from leadline.capabilities.persistence.providers import sqlite  # noqa: PLC0415 - loaded where it is chosen

    await sqlite.start(ctx, config.database)


plugin: Plugin[PersistenceConfig] = Plugin(
    "persistence",
    _apply,
    config=ConfigParser(PersistenceConfig),
    needs=(Home, Clock, EventTypes),
    provides=(SessionStore, Blobs),
)
