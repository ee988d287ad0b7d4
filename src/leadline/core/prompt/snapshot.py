"""What changes while an agent works, as a message at the tail that is sent only when it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEADING = "Current facts. They replace all current facts stated earlier."
CLEARED = "The current facts stated earlier no longer hold, and there are no new ones."


@dataclass(frozen=True)
class ContextSnapshot:
    """All contexts at one moment."""

    text: str
    """As a message says it; empty where there is nothing to say."""

    def change(self, last: str | None) -> str | None:
        """The text to append now, or None where the model knows already.

        `last` is the text of the latest snapshot message that the model still sees; None where there
        is none, be it that none was sent or that it has left the window.
        """
        if self.text:
            return self.text if self.text != last else None
        return CLEARED if last not in (None, "", CLEARED) else None


def snapshot_of(texts: Sequence[str]) -> ContextSnapshot:
    """The snapshot that states `texts`, one paragraph each."""
    return ContextSnapshot("\n\n".join((HEADING, *texts)) if texts else "")
