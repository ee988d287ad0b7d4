"""What must not get lost with the older part of a conversation, told by those who know it for certain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.kernel.signals import Gather

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent


@dataclass(frozen=True)
class Carry(Gather["str | None"]):
    """The older part of an agent's conversation is about to be replaced by less.

    A listener answers with what it holds of that agent in its own state (plan, evidence, live children) as text for
    the model; None where it holds nothing. It does not take it from the conversation.
    """

    agent: Agent
