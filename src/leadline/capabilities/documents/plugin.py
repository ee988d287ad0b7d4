"""Provides Documents and Snapshots, with the readers that come with Leadline."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leadline.capabilities.documents.providers.binary import BinaryReader
from leadline.capabilities.documents.providers.docx import DocxReader
from leadline.capabilities.documents.providers.html import HtmlReader
from leadline.capabilities.documents.providers.pdf import PdfReader
from leadline.capabilities.documents.providers.text import TextReader
from leadline.capabilities.documents.seam import Documents, Limits, Reader, Snapshots
from leadline.core.config import ConfigParser
from leadline.core.session.blobs import Blobs
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


class Config(BaseModel):
    """How much is read, and what is kept of it."""

    model_config = ConfigDict(extra="forbid")

    max_bytes: int = Field(default=50_000_000, ge=1)
    """Bytes of one document; a bigger one is recorded as unsupported, with both sizes."""

    max_text: int = Field(default=10_000_000, ge=1)
    """Characters of one text; a longer one is cut there and recorded as partial."""

    max_expanded: int = Field(default=200_000_000, ge=1)
    """Bytes that a packed document (DOCX) may unpack to."""

    keep_bytes: bool = False
    """Whether the original bytes are stored beside the text; their hash always is."""

    workers: int | None = Field(default=None, ge=1)
    """Threads that read documents at the same time; the number of processors by default."""


def built_in_readers() -> tuple[Reader, ...]:
    """A new reader of each kind that comes with Leadline."""
    return (PdfReader(), DocxReader(), HtmlReader(), TextReader(), BinaryReader())


async def apply(ctx: Context, config: Config) -> None:
    """Register the readers and provide both services until `ctx` ends."""
    documents = Documents(
        Limits(config.max_bytes, config.max_text, config.max_expanded), workers=config.workers
    )
    for reader in built_in_readers():
        documents.register(ctx, reader)
    ctx.provide(Documents, documents)
    ctx.provide(Snapshots, Snapshots(documents, ctx.get(Blobs), keep_bytes=config.keep_bytes))


plugin = Plugin(
    "documents", apply, config=ConfigParser(Config), needs=(Blobs,), provides=(Documents, Snapshots)
)
