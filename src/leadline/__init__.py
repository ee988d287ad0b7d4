"""Deep research you can audit, on an agent harness where everything is a plugin.

async with Leadline() as app:
    result = await app.research("What may a hotel night cost?", corpus=["./documents"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.version import __version__

if TYPE_CHECKING:
    from leadline.apps.sdk.app import Leadline as Leadline
    from leadline.apps.sdk.sync import SyncLeadline as SyncLeadline

__all__ = ["Leadline", "SyncLeadline", "__version__"]


def __getattr__(name: str) -> object:
    """Load the API when it is first used, so that `import leadline` stays quick."""
    if name == "Leadline":
        from leadline.apps.sdk.app import Leadline

        return Leadline
    if name == "SyncLeadline":
        from leadline.apps.sdk.sync import SyncLeadline

        return SyncLeadline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
