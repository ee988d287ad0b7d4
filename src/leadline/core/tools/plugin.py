"""Provides the tool registry and the pipeline that runs its tools."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.config import ConfigParser
from leadline.core.session.invariants import Invariants
from leadline.core.tools.invariants import guard_calls
from leadline.core.tools.pipeline import ToolPipeline
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


class ToolsConfig(BaseModel):
    """How calls are run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_parallel: int = Field(default=10, ge=1)
    """Bodies of one message that overlap at most."""

    max_result_chars: int = Field(default=50_000, ge=1_000)
    """Characters of one result that a model reads; beginning and end are kept."""


async def _apply(ctx: Context, config: ToolsConfig) -> None:
    registry = ToolRegistry()
    ctx.provide(ToolRegistry, registry)
    ctx.provide(
        ToolPipeline,
        ToolPipeline(registry, max_result_chars=config.max_result_chars, max_parallel=config.max_parallel),
    )
    guard_calls(ctx)


plugin: Plugin[ToolsConfig] = Plugin(
    "tools",
    _apply,
    config=ConfigParser(ToolsConfig),
    wants=(Invariants,),
    provides=(ToolRegistry, ToolPipeline),
)
