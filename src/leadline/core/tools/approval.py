"""The seam through which a call is put before somebody; who answers, and how, is a provider's business."""

from __future__ import annotations

import hashlib
import unicodedata
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

from leadline.core.session.events import ApprovalOutcome
from leadline.core.tools.spec import SideEffect
from leadline.kernel.services import Service


@dataclass(frozen=True)
class ApprovalRequest:
    """A call that waits for a yes."""

    call_id: str
    root_call_id: str
    tool: str
    arguments: str
    """Canonical JSON: exactly what will be executed."""

    side_effects: frozenset[SideEffect]
    reason: str
    agent_id: str | None
    session_id: str | None

    @cached_property
    def digest(self) -> str:
        """sha256 in hex of tool and arguments, for a record of what was approved."""
        return hashlib.sha256(f"{self.tool}\0{self.arguments}".encode()).hexdigest()

    @property
    def shown(self) -> str:
        """Tool and arguments at full length, with everything that would not be seen made visible."""
        return f"{self.tool} {visible(self.arguments)}"


@dataclass(frozen=True)
class ApprovalDecision:
    """The answer, and why."""

    outcome: ApprovalOutcome
    reason: str = ""


@dataclass(frozen=True)
class EarlierQuestion:
    """What an earlier process asked about a call, as the log has it."""

    digest: str
    """`ApprovalRequest.digest` of what was to be executed."""
    reason: str
    decision: ApprovalDecision | None = None
    """None where it died before anybody had answered."""


class Approvals(Service, key="approvals"):
    """Decides calls that a policy asks about. Without a provider every such call is denied."""

    @abstractmethod
    async def decide(self, request: ApprovalRequest) -> ApprovalDecision:
        """The decision for this one call; an answer holds once.

        A call that waited when its process died is put before whoever decides again, with the same ids.

        Raises:
            Exception: whatever; the call is denied then, and the error reported.
        """


def visible(text: str) -> str:
    r"""`text` with control, invisible and direction-changing characters as `\u{...}`.

    A line break or tab is shown as well, and runs of blanks keep their length.
    """
    return "".join(f"\\u{{{ord(char):x}}}" if _hidden(char) else char for char in text)


def _hidden(char: str) -> bool:
    return char != " " and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
