"""What every decoder of replies shares: one state machine with one end, whatever the wire says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from leadline.capabilities.models.providers.failures import event_failure
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import JsonReader, as_list, as_object, as_text
from leadline.core.llm.failure import LlmFailure, Stop, Wait
from leadline.core.llm.stream import Finish, StreamEvent, UsageReport
from leadline.core.llm.usage import Usage

DONE = "[DONE]"


class Decoder(Protocol):
    """Feed it the data of server-sent events; it yields deltas and, once, the end."""

    @property
    def ended(self) -> bool:
        """Whether the `Finish` has been given."""
        ...

    @property
    def finish_seen(self) -> bool:
        """Whether the provider has said why it ends, so that little can be missing."""
        ...

    def feed(self, data: str, event: str = "message") -> list[StreamEvent]:
        """The events of one server-sent event, given its data and its type."""
        ...

    def whole(self, body: bytes) -> list[StreamEvent]:
        """The events of a reply that came in one piece, the end included."""
        ...

    def close(self) -> list[StreamEvent]:
        """The end, when the connection has ended properly."""
        ...

    def cut(self, failure: LlmFailure) -> list[StreamEvent]:
        """The end, when the connection was lost or given up."""
        ...


class ReplyDecoder(ABC):
    """The state machine. A wire format says in `chunk` and `reply` what its own words mean.

    After the `Finish` it yields nothing.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.reader = JsonReader()
        self.reason: str | None = None
        """The provider's word for the end, once it has said it."""
        self.refusal = False
        """Whether what was written is a refusal."""
        self.usage: Usage | None = None
        self.begun = False
        """Whether anything of an answer has come."""
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the `Finish` has been given."""
        return self._ended

    @property
    def finish_seen(self) -> bool:
        """Whether the provider has said why it ends, so that little can be missing."""
        return self.reason is not None

    @abstractmethod
    def chunk(self, members: Mapping[str, object], data: str) -> list[StreamEvent]:
        """The events of one object of the stream; ``data`` is its text."""

    @abstractmethod
    def reply(self, members: Mapping[str, object], body: bytes) -> list[StreamEvent]:
        """The events of a reply in one piece, without the end."""

    def feed(self, data: str, event: str = "message") -> list[StreamEvent]:
        """The events of one server-sent event, given its data and its type."""
        text = data.strip()
        if self._ended or not text:
            return []
        if text == DONE:
            return self.end(done=True)
        try:
            chunk = self.reader.read(data)
        except ValueError:
            return self.fail(malformed(f"the stream holds an event that is not JSON: {data[:80]!r}"))
        members = as_object(chunk)
        if event == "error":
            return self.fail(event_failure(self.profile, members.get("error") or chunk))
        if not members:
            return self.fail(malformed("the stream holds an event that is not an object, or an empty one"))
        return self._taken(self.chunk(members, data))

    def whole(self, body: bytes) -> list[StreamEvent]:
        """The events of a reply that came in one piece, the end included."""
        try:
            reply = self.reader.read(body)
        except ValueError:
            return self.fail(malformed("the reply is not JSON"))
        members = as_object(next(iter(as_list(reply)), reply))
        if not members:
            return self.fail(malformed("the reply is not an object, or an empty one"))
        events = self._taken(self.reply(members, body))
        return events if self._ended else [*events, *self.end(done=True)]

    def close(self) -> list[StreamEvent]:
        """The end, when the connection has ended properly."""
        return [] if self._ended else self.end(done=False)

    def cut(self, failure: LlmFailure) -> list[StreamEvent]:
        """The end, when the connection was lost or given up."""
        if self._ended:
            return []
        if self.reason is not None and not self.profile.stream_end.done_required:
            return self._finish(self.reason)
        return self.fail(failure, incomplete=self.begun)

    def _taken(self, events: list[StreamEvent]) -> list[StreamEvent]:
        if not self.begun:
            self.begun = any(not isinstance(event, UsageReport | Finish) for event in events)
        return events

    def end(self, *, done: bool) -> list[StreamEvent]:
        """The end, when nothing more will come; ``done`` where the wire's own end mark has come."""
        rule, reason = self.profile.stream_end, self.reason
        if reason is None and not self.begun and self.usage is None:
            return self.fail(Wait("EMPTY_RESPONSE", "the provider ended the stream without saying anything"))
        if rule.done_required and not done:
            return self.fail(Wait("STREAM_CLOSED", "the stream ended without its end mark"), incomplete=True)
        if reason is None and rule.finish_required:
            lost = Wait("STREAM_CLOSED", "the stream ended without a finish reason")
            return self.fail(lost, incomplete=True)
        return self._finish(reason)

    def _finish(self, reason: str | None) -> list[StreamEvent]:
        words = self.profile.finish
        if self.refusal or reason in words.refused:
            return self._last(Finish("refused", None, reason))
        if reason is None or reason in words.done:
            return self._last(Finish("done", None, reason))
        if reason in words.length:
            return self._last(Finish("length", None, reason))
        if reason in words.error:
            return self.fail(Wait("SERVER", f"the provider broke off the answer ({reason})"), detail=reason)
        step = f"add {reason!r} to one of the lists under settings.finish of this provider"
        unknown = Stop(
            "UNSUPPORTED", f"the provider ended the answer with an unknown word, {reason!r}", None, step
        )
        return self.fail(unknown, detail=reason)

    def fail(
        self, failure: LlmFailure, *, incomplete: bool = False, detail: str | None = None
    ) -> list[StreamEvent]:
        """The end, by ``failure``."""
        return self._last(Finish("incomplete" if incomplete else "error", failure, detail))

    def _last(self, finish: Finish) -> list[StreamEvent]:
        self._ended = True
        return [finish] if self.usage is None else [UsageReport(self.usage), finish]


def malformed(message: str) -> Wait:
    """What came is no answer of this provider."""
    return Wait("MALFORMED_RESPONSE", message)


def error_in(members: Mapping[str, object]) -> object:
    """The error that a reply in one piece reports instead of an answer; None when there is none."""
    if error := members.get("error"):
        return error
    return members if as_text(members.get("message")) or as_text(members.get("detail")) else None
