"""Loads, in a thread, what a run needs later: while its first model call is waited for."""

from __future__ import annotations

from importlib import import_module

import anyio.to_thread

from leadline.core.clock import Clock
from leadline.core.patterns import compile_patterns

_UNTIL_SENT_S = 0.05
"""After the first role went to work, until its request has left."""

_READ_WITH_PATTERNS = (
    "leadline.research.report.markdown",
    "leadline.research.sources.dates",
    "leadline.research.sources.language",
    "leadline.research.sources.versions",
    "leadline.research.verify.blocks",
    "leadline.research.verify.check",
    "leadline.research.verify.checks.context",
    "leadline.research.verify.figures",
    "leadline.research.verify.names",
    "leadline.research.verify.quote_match",
    "leadline.research.verify.tokens",
    "leadline.research.verify.typography",
)


async def warm_up(clock: Clock) -> None:
    """Returns when the schema validator is imported and the patterns of sources, checks and report are compiled."""
    # Not before: a thread that computes holds up the way to the first request by milliseconds at each of its steps.
    await clock.sleep(_UNTIL_SENT_S)
    await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)


def _load() -> None:
    import_module("jsonschema")
    for name in _READ_WITH_PATTERNS:
        compile_patterns(import_module(name))
    import_module("leadline.research.verify.attribution").forms()
