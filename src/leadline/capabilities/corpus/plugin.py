"""Provides Corpora over local files."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leadline.capabilities.corpus.providers.local import LocalCorpora
from leadline.capabilities.corpus.seam import Corpora
from leadline.capabilities.documents.seam import Snapshots
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


class Config(BaseModel):
    """How files are read."""

    model_config = ConfigDict(extra="forbid")

    workers: int = Field(default=2, ge=1, le=64)
    """Files that are read at the same time."""


async def apply(ctx: Context, config: Config) -> None:
    """Provide Corpora until `ctx` ends; what it opened is closed then."""
    corpora = LocalCorpora(ctx.get(Snapshots), ctx.get(Home), ctx.get(Clock), workers=config.workers)
    ctx.defer("open corpora", corpora.close)
    ctx.provide(Corpora, corpora)


plugin: Plugin[Config] = Plugin(
    "corpus", apply, config=ConfigParser(Config), needs=(Snapshots, Home, Clock), provides=(Corpora,)
)
