"""When room is made in a model's window, and how."""

from __future__ import annotations

from fnmatch import fnmatchcase

from pydantic import BaseModel, ConfigDict, Field


class ModelWindow(BaseModel):
    """What is different for some models."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """`provider/name`; `*` stands for any letters, such as in `ollama/*`."""
    window: int | None = Field(default=None, ge=256)
    """Tokens that the model takes, prompt and answer together, where its provider does not say it or says it wrongly."""
    ratio: float | None = Field(default=None, gt=0, le=1)
    """As `ratio` of the row, for this model."""


class PruneConfig(BaseModel):
    """Old tool results become stubs that name where the result is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    """Whether results are replaced at all."""
    keep: float = Field(default=0.25, ge=0, le=1)
    """Part of the room whose newest tool results stay as they are."""
    least_tokens: int = Field(default=200, ge=50)
    """Tokens below which a result is not worth a stub."""


class CompactConfig(BaseModel):
    """The older part of a conversation is summarised by the model itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    """Whether summaries are asked for at all. Without them the oldest part is left out where nothing else helps."""
    keep: float = Field(default=0.2, ge=0, le=1)
    """Part of the room whose newest messages stay as they are."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Seconds that one summary may take."""
    attempts: int = Field(default=2, ge=1)
    """How often a summary is asked for before the work goes on without one."""


class WindowConfig(BaseModel):
    """How a conversation is kept within the window of its model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: float = Field(default=0.8, gt=0, le=1)
    """Part of the room (the model's window without what the answer needs) from which on room is made."""
    settle: float = Field(default=0.6, gt=0, le=1)
    """Part of that which may be filled when room was made, so that it lasts for many steps."""
    overflow_attempts: int = Field(default=3, ge=0)
    """How often a request that was refused as too large is made smaller and sent again, in one step."""
    prune: PruneConfig = PruneConfig()
    """Tool results first."""
    compact: CompactConfig = CompactConfig()
    """Then a summary of the older part."""
    models: tuple[ModelWindow, ...] = ()
    """What is different for some models; the first that fits counts."""

    def of(self, model: str) -> ModelWindow | None:
        """What is different for `provider/name`."""
        return next((one for one in self.models if fnmatchcase(model, one.model)), None)
