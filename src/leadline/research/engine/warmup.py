"""Loads, in a thread, what a run needs later: while its corpus is read and its first model call is waited for."""

from __future__ import annotations

from importlib import import_module

import anyio.to_thread

from leadline.research.verify import attribution


async def warm_up() -> None:
    """Returns when the schema validator is imported and the patterns of the checks are compiled."""
    await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)


def _load() -> None:
    import_module("jsonschema")
    attribution.forms()
