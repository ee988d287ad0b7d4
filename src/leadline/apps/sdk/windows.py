"""`app.context`, `app.compact`, `app.undo_compaction`: what fills the windows of stored sessions, and making room in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from leadline.core.llm.adapter import Models
from leadline.core.session.errors import SessionError
from leadline.core.session.store import SessionStore
from leadline.kernel.errors import LeadlineError
from leadline.window.breakdown import Breakdown, breakdown
from leadline.window.spill import model_of, window_of
from leadline.window.summary import KIND, NoSummary
from leadline.window.window import Window

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.session.events import WindowChanged
    from leadline.core.session.log import Session
    from leadline.kernel.context import Context


class NotCompacted(LeadlineError):
    """Nothing could be summarised, or no summary came."""


class WindowView(msgspec.Struct, frozen=True):
    """What fills the window of a session, and those of the sessions that were made for it."""

    own: Breakdown
    below: tuple[Breakdown, ...]
    """Roles of a run, children of an agent, in the order in which they were made."""


async def window_view(ctx: Context, session_id: str) -> WindowView:
    """The view of one session, live, damaged or at rest; what cannot be read below it is left out.

    Raises:
        SessionNotFound, SessionUnreadable: there is nothing to be read.
    """
    store = ctx.get(SessionStore)
    own = await store.read(session_id)
    below: list[Breakdown] = []
    made = [one for one in await store.list() if one.parent == own.id and one.depth > own.header.depth]
    for entry in sorted(made, key=lambda one: (one.created, one.id)):
        if entry.kind == KIND:
            continue
        try:
            below.append(_broken_down(ctx, await store.read(entry.id)))
        except SessionError:
            continue
    return WindowView(_broken_down(ctx, own), tuple(below))


def _broken_down(ctx: Context, session: Session) -> Breakdown:
    model, window, models = model_of(session), ctx.find(Window), ctx.find(Models)
    if model is None:
        return breakdown(session, None)
    if window is not None:
        return breakdown(session, window.tokens_of(model))
    return breakdown(session, None if models is None else window_of(models, model))


async def compacted(ctx: Context, agent: Agent) -> WindowChanged:
    """Summarise the older part of an agent's conversation now.

    Raises:
        NotCompacted: there is too little to summarise, or the summary did not come; the window is as before.
    """
    outcome = await ctx.get(Window).compact(agent)
    if isinstance(outcome, NoSummary):
        why = f": {outcome.detail}" if outcome.detail else ""
        raise NotCompacted(
            f"session {agent.id} was not compacted: the summary came to nothing ({outcome.fault}{why}); "
            f"nothing has changed; try it again, or with another model"
        )
    if outcome == "nothing":
        raise NotCompacted(
            f"session {agent.id} was not compacted: apart from its latest exchange there is nothing to summarise"
        )
    return outcome
