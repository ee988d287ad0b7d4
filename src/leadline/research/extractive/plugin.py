"""Offers the extractive model under `extractive/extractive`."""

from __future__ import annotations

from leadline.capabilities.documents.seam import Snapshots
from leadline.core.llm.adapter import Models
from leadline.core.session.errors import BlobError
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.research.extractive.adapter import Extractive


async def apply(ctx: Context, config: None) -> None:
    """Register the adapter; without a store of snapshots it can plan and write, but finds nothing."""
    snapshots = ctx.find(Snapshots)

    def text(digest: str) -> str | None:
        if snapshots is None or not digest:
            return None
        try:
            return snapshots.text(digest)
        except BlobError:
            return None

    ctx.get(Models).register(ctx, Extractive(text))


plugin: Plugin[None] = Plugin("extractive", apply, needs=(Models,), wants=(Snapshots,))
