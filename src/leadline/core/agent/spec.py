"""What an agent is made from, and the limits of one of its turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.core.llm.request import CHAT, ModelRef, Purpose

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.session.seeds import Seed
    from leadline.core.spend.account import Account


@dataclass(frozen=True)
class TurnBudget:
    """Ceilings on one turn; None is no ceiling. The first that is reached ends the turn, typed.

    A ceiling is looked at before each model call, which reserves what it may use; so a call that was begun still
    ends properly, and at most one call goes over.
    """

    max_steps: int | None = None
    """Model calls with their tools."""
    max_seconds: float | None = None
    """Wall time. Unlike the others it also ends a step that is under way."""
    max_tokens: int | None = None
    """Tokens of the turn's calls as providers report them, failed attempts included."""
    max_cost: float | None = None
    """US dollars for the turn's calls. Every model that it asks has to have a price."""
    max_calls: int | None = None
    """Requests to models, failed attempts included."""


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
    account: Account | None = None
    """Whom its calls are charged to. None: an account of its own that draws on the parent's."""
    priority: int = 0
    """Its calls go before waiting ones of a lower priority."""
    seed_turns: bool = False
    """Start from the parent's completed turns (a fork) instead of an empty history."""
    seed: Seed | None = None
    """Start from these messages, and ask with exactly this header whatever the agent's scope would give."""
    setup: Callable[[Agent], Awaitable[None]] | None = None
    """Registers what belongs to this agent alone, before anyone can see the agent."""
