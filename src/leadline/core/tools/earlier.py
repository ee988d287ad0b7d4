"""What an earlier process did of calls that are to be run now, so that nothing is done twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.core.tools.outcome import ToolOutcome
from leadline.core.tools.spec import READS

if TYPE_CHECKING:
    from leadline.core.tools.approval import ApprovalDecision, ApprovalRequest, EarlierQuestion
    from leadline.core.tools.invocation import ToolInvocation
    from leadline.core.tools.spec import Tool


@dataclass(frozen=True)
class EarlierCall:
    """A call that an earlier process started."""

    name: str
    arguments: str
    """As logged: raw for a call of the model, canonical JSON for a nested one."""

    side_effects: frozenset[str]
    """What the tool declared then."""

    outcome: ToolOutcome | None = None
    """What it came to; None where the process died before that was logged."""

    question: EarlierQuestion | None = None
    """The latest that was asked about it; None where nobody was asked."""

    begun: bool = True
    """Whether its body may have begun; not where it was waiting for a yes, or was denied."""

    def decided(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """What was decided about the very same question; None where nothing was."""
        asked = self.question
        same = asked is not None and (asked.digest, asked.reason) == (request.digest, request.reason)
        return asked.decision if asked is not None and same else None

    def repeatable(self, tool: Tool | None) -> bool:
        """Whether doing it now does no harm: it never began, or `tool` says so, or it read at most, then and by what
        is declared now."""
        if not self.begun or (tool is not None and tool.idempotent):
            return True
        return self.side_effects <= READS and (tool is None or not tool.changes_the_world)


class Earlier:
    """The calls of one step that an earlier process started, by their ids."""

    def __init__(self, calls: Mapping[str, EarlierCall] | None = None) -> None:
        self._calls = dict(calls or {})
        self._taken: set[str] = set()

    def call(self, call_id: str) -> EarlierCall | None:
        """What was done of the call of that id; None where it was never started."""
        return self._calls.get(call_id)

    def nested(self, parent: ToolInvocation, name: str, arguments: str) -> str:
        """The id of a call that the body of `parent` makes now: that of the same call made before, if there is one.

        A body that is run again may ask in another order; each earlier call is taken once.
        """
        if parent.repeated:
            for call_id, past in self._calls.items():
                direct = call_id.rpartition(":")[0] == parent.call_id
                if direct and call_id not in self._taken and (past.name, past.arguments) == (name, arguments):
                    self._taken.add(call_id)
                    return call_id
        made = parent.next_nested_id()
        while made in self._calls:
            made = parent.next_nested_id()
        return made


NOTHING_EARLIER = Earlier()
