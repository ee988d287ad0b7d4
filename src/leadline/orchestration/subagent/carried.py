"""Which children an agent still has, for when the older part of its conversation is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.agent.agents import Agents
    from leadline.window.carry import Carry

KIND = "agent"
"""Kind of sessions in which delegated work is done."""


def live_children(agents: Agents, signal: Carry) -> str | None:
    """The live children of the agent, in the order in which they were made; None where it has none."""
    lines = [
        f"- {child.session.header.label or 'child'} (session {child.id}): "
        f"{'at work' if child.status == 'running' else 'done with its turn'}"
        for child in agents.live
        if child.spec.parent is signal.agent and child.spec.kind == KIND
    ]
    return "\n".join(("Work that is delegated and not over:", *lines)) if lines else None
