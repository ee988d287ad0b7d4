"""Opens a folder the way the program does, and keeps its texts at hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from leadline.capabilities.corpus.plugin import plugin as corpus_plugin
from leadline.capabilities.corpus.seam import Corpora, Corpus
from leadline.capabilities.documents.plugin import plugin as documents_plugin
from leadline.capabilities.documents.seam import Snapshots
from leadline.core.clock import plugin as clock_plugin
from leadline.core.home import plugin as home_plugin
from leadline.core.ids import Ids
from leadline.core.ids import plugin as ids_plugin
from leadline.core.session.blobs import Blobs
from leadline.kernel.context import Context, Kernel
from leadline.kernel.plugin import Plugin
from leadline.testing.sessions import MemoryBlobs


@dataclass(frozen=True)
class OpenFolder:
    """A corpus with the services that it came from."""

    corpus: Corpus
    snapshots: Snapshots
    ids: Ids


async def _provide_blobs(ctx: Context, config: None) -> None:
    ctx.provide(Blobs, MemoryBlobs())


@asynccontextmanager
async def open_folder(folder: Path, home: Path) -> AsyncGenerator[OpenFolder, None]:
    """`folder` as a corpus; `home` takes the cache of its index."""
    async with Kernel() as kernel:
        root = kernel.root
        await root.mount(clock_plugin)
        await root.mount(ids_plugin)
        await root.mount(home_plugin, {"path": str(home)})
        await root.mount(Plugin("blobs.memory", _provide_blobs, provides=(Blobs,)))
        await root.mount(documents_plugin)
        await root.mount(corpus_plugin)
        corpus = await root.get(Corpora).open([folder])
        yield OpenFolder(corpus, root.get(Snapshots), root.get(Ids))
