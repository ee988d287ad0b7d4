"""Configuration of the research engine."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.spend.money import SMALLEST
from leadline.research.events import KEEP, RunBudget
from leadline.research.request import MOST_KEPT


class BudgetConfig(BaseModel):
    """Ceilings on a run, where its request sets none; null is no ceiling."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: int | None = Field(default=None, ge=1)
    """All tokens of all its calls, prompts included."""
    cost: float | None = Field(default=None, ge=SMALLEST, allow_inf_nan=False)
    """US dollars; needs a model whose price is known."""
    calls: int | None = Field(default=None, ge=1)
    """Calls that are paid for, failed attempts included."""
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall time."""
    keep: float = Field(default=KEEP, ge=0, le=MOST_KEPT)
    """Share of each ceiling that only the writer may use, so that there is a report when the rest is used up."""
    unit_share: float | None = Field(default=None, gt=0, le=1)
    """Share of the rest that one unit may use; null: the same for every unit of the plan."""

    def over(self, asked: RunBudget) -> RunBudget:
        """What a run is held to: what was asked, and these where nothing was."""
        return RunBudget(
            tokens=self.tokens if asked.tokens is None else asked.tokens,
            cost=self.cost if asked.cost is None else asked.cost,
            calls=self.calls if asked.calls is None else asked.calls,
            seconds=self.seconds if asked.seconds is None else asked.seconds,
            keep=self.keep if asked.keep is None else asked.keep,
            unit_share=self.unit_share if asked.unit_share is None else asked.unit_share,
        )


class EngineConfig(BaseModel):
    """Limits that hold for every run, whatever its method."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source_calls: int = Field(default=4, ge=1, le=1000)
    """Searches and reads that one unit may make."""
    recovery_reads: int = Field(default=1, ge=0, le=100)
    """Reads beyond that, of a document that a search returned, after a read of the unit failed."""
    max_steps: int = Field(default=24, ge=1, le=1000)
    """Model calls that one role may make."""
    budget: BudgetConfig = BudgetConfig()
    """Ceilings of every run that sets none of its own."""
    listed_unreadable: int = Field(default=200, ge=0)
    """Documents that could not be read and are listed one by one in the coverage; the rest are counted."""
