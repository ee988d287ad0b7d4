"""The loop's configuration."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.agent.spec import TurnBudget
from leadline.core.llm.retry import RetryPolicy
from leadline.core.spend.money import SMALLEST


class RetryConfig(BaseModel):
    """How often and how long to wait for one answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attempts: int = Field(default=5, ge=1)
    """Attempts in all."""
    first_s: float = Field(default=0.5, gt=0)
    """Seconds before the second attempt; each further wait is twice as long."""
    max_s: float = Field(default=10.0, gt=0)
    """Longest wait of our own, in seconds. A provider that asks for more gets it within `budget_s`."""
    jitter: float = Field(default=0.1, ge=0, lt=1)
    """Part of a wait by which it may be longer or shorter."""
    budget_s: float = Field(default=300.0, ge=0)
    """Ceiling on all the waiting for one answer, in seconds."""

    def policy(self) -> RetryPolicy:
        """The decision these values make."""
        return RetryPolicy(self.attempts, self.first_s, self.max_s, self.jitter, self.budget_s)


class LoopConfig(BaseModel):
    """How turns are run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int | None = Field(default=250, ge=1)
    """Steps of one turn, where the agent itself says nothing; null: no ceiling."""
    max_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall time of one turn in seconds, where the agent itself says nothing; null: no ceiling."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens of one turn, where the agent itself says nothing; null: no ceiling."""
    max_cost: float | None = Field(default=None, ge=SMALLEST, allow_inf_nan=False)
    """US dollars for one turn, where the agent itself says nothing; null: no ceiling."""
    max_calls: int | None = Field(default=None, ge=1)
    """Requests to models in one turn, failed attempts included, where the agent itself says nothing; null: no
    ceiling."""
    answer_tokens: int = Field(default=16_384, ge=256)
    """Most tokens of one answer where a ceiling on tokens or cost holds and neither the agent nor the model has a
    lower bound: a call whose answer may be of any length could pass any ceiling."""
    durability: Literal["written", "synced"] = "written"
    """`written`: every fact survives the process, and power cuts from the end of each turn and before
    each side effect. `synced`: power cuts also from before each model call."""
    retry: RetryConfig = RetryConfig()
    """What happens when a provider fails in a way that may pass."""

    def budget(self, own: TurnBudget) -> TurnBudget:
        """The ceilings of a turn: the agent's own, and these where it says nothing."""
        return TurnBudget(
            max_steps=self.max_steps if own.max_steps is None else own.max_steps,
            max_seconds=self.max_seconds if own.max_seconds is None else own.max_seconds,
            max_tokens=self.max_tokens if own.max_tokens is None else own.max_tokens,
            max_cost=self.max_cost if own.max_cost is None else own.max_cost,
            max_calls=self.max_calls if own.max_calls is None else own.max_calls,
        )
