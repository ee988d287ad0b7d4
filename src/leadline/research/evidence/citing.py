"""Where in a child's log a tool call stands, so that a fact of the run can cite it."""

from __future__ import annotations

from leadline.core.session.events import ToolCalled
from leadline.core.tools.invocation import ToolInvocation


def call_seq(call: ToolInvocation) -> int | None:
    """The sequence number of the call's `tool/call` event; None where the call is not logged."""
    if call.session is None:
        return None
    for logged in reversed(call.session.logged):
        if logged.type == ToolCalled.TYPE and logged.as_(ToolCalled).call_id == call.call_id:
            return logged.seq
    return None
