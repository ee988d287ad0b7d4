"""What a run used: a sum over the logs of its roles, failed attempts included."""

from __future__ import annotations

from leadline.core.llm.usage import Usage
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestSent
from leadline.core.session.log import Session


class UsageCount:
    """Model calls and tokens so far."""

    def __init__(self) -> None:
        self.calls = 0
        self.tokens = Usage()

    def count(self, calls: int, tokens: Usage) -> None:
        """Count what is known from elsewhere."""
        self.calls += calls
        self.tokens = self.tokens + tokens

    def add(self, session: Session) -> None:
        """Count every request of a session, and whatever the provider reported for it."""
        self.calls += sum(1 for _ in session.of(RequestSent))
        for ended in (*session.of(AssistantSaid), *session.of(RequestEnded)):
            if ended.usage is not None:
                self.tokens = self.tokens + ended.usage
