"""Configuration of the research engine."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class EngineConfig(BaseModel):
    """Limits that hold for every run, whatever its method."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source_calls: int = Field(default=4, ge=1, le=1000)
    """Searches and reads that one unit may make."""
    recovery_reads: int = Field(default=1, ge=0, le=100)
    """Reads beyond that, of a document that a search returned, after a read of the unit failed."""
    max_steps: int = Field(default=24, ge=1, le=1000)
    """Model calls that one role may make."""
    listed_unreadable: int = Field(default=200, ge=0)
    """Documents that could not be read and are listed one by one in the coverage; the rest are counted."""
