"""What an agent is made from, and the limits of one of its turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.core.llm.request import CHAT, ModelRef, Purpose

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent


@dataclass(frozen=True)
class TurnBudget:
    """Ceilings on one turn; None is no ceiling. The first that is reached ends the turn, typed.

    A ceiling is looked at before each step, so the step that crosses it still ends properly.
    """

    max_steps: int | None = None
    """Model calls with their tools."""
    max_seconds: float | None = None
    """Wall time. Unlike the others it also ends a step that is under way."""
    max_tokens: int | None = None
    """Tokens that providers reported for the turn's calls, failed attempts included."""


@dataclass(frozen=True)
class CallOptions:
    """How the model is asked; None leaves it to the provider."""

    max_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    tool_choice: str | None = None


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """Everything an agent is created from. The log keeps what a later reader needs of it."""

    kind: str = "agent"
    """Kind of the session."""
    purpose: Purpose = CHAT
    """Why this agent's requests are made; logged with each of them."""
    model: ModelRef | None = None
    """None: the parent's, else the configured default."""
    options: CallOptions = field(default_factory=CallOptions)
    persona: str = ""
    """System text of this agent alone; replaces the persona it would inherit."""
    parent: Agent | None = None
    """Whose child this is: one deeper, never with more authority, disposed before it."""
    cwd: str = ""
    """Working folder, absolute; empty: the parent's, else the process's."""
    label: str = ""
    """For people; not unique."""
    tools_allow: tuple[str, ...] | None = None
    """Which inherited tools it may see; None: all that it inherits."""
    budget: TurnBudget = field(default_factory=TurnBudget)
    seed_turns: bool = False
    """Start from the parent's completed turns (a fork) instead of an empty history."""
    setup: Callable[[Agent], Awaitable[None]] | None = None
    """Registers what belongs to this agent alone, before anyone can see the agent."""
