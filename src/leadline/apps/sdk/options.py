"""What may be said of a run beside its question and its corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from leadline.capabilities.corpus.seam import Progress


class BudgetOptions(TypedDict, total=False):
    """Ceilings on a run, or on what an agent does; what is absent or None is no ceiling, or the configured one."""

    max_tokens: int | None
    """All tokens of all calls, prompts included."""
    max_cost: float | None
    """US dollars; needs models whose price is known."""
    max_calls: int | None
    """Paid calls, failed attempts included."""
    max_seconds: float | None
    """Wall time."""
    keep: float | None
    """Share of each ceiling, 0 to 0.9, that only the writer of a report may use; default 0.15."""


class ResearchOptions(BudgetOptions, total=False):
    """Options of a run; one that is absent takes its default."""

    method: str | None
    """How the research is done; default `adaptive`."""
    breadth: str | None
    """`focused`, `balanced` or `broad`: at most 1, 2 or 3 units."""
    format: str | None
    """`report`, `brief` or `memo`."""
    language: str | None
    """Language of the report; default: that of the question."""
    purpose: str | None
    """What the answer is for."""
    context: str | None
    """What the researcher should know and the report need not prove."""
    model: str | None
    """`provider/name`; default: that of the composition."""
    progress: Progress | None
    """Told how far reading the corpus has got."""
