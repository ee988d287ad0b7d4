"""Provides the prompt registry, with the sections that every agent has."""

from __future__ import annotations

from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from leadline.core.config import ConfigParser
from leadline.core.prompt.sections import IDENTITY_ORDER, PERSONA_ORDER, PromptSections
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


class PromptConfig(BaseModel):
    """What every system prompt begins with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    identity: bool = True
    """Whether the prompt says what the model runs in."""

    persona: str = ""
    """Who the model is and how it works; an agent may have its own. `{{variable}}` is replaced."""


async def _apply(ctx: Context, config: PromptConfig) -> None:
    prompt = PromptSections()
    ctx.provide(PromptSections, prompt)
    if config.identity:
        text = (
            files(__package__ or "leadline.core.prompt").joinpath("identity.md").read_text(encoding="utf-8")
        )
        prompt.section(ctx, "identity", IDENTITY_ORDER, text)
    if config.persona.strip():
        prompt.section(ctx, "persona", PERSONA_ORDER, config.persona)


plugin: Plugin[PromptConfig] = Plugin(
    "prompt", _apply, config=ConfigParser(PromptConfig), provides=(PromptSections,)
)
