"""Gemini generateContent: replies as stream events."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from leadline.capabilities.models.providers.decode import read_usage
from leadline.capabilities.models.providers.ending import ReplyDecoder, error_in
from leadline.capabilities.models.providers.failures import event_failure
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import as_list, as_object, as_text
from leadline.core.llm.stream import ReasoningDelta, StreamEvent, TextDelta, ToolCallDelta
from leadline.core.llm.wire import encode_text


class GeminiDecoder(ReplyDecoder):
    """Each chunk is a response of its own; there is no end mark, the connection just ends.

    A signature stands on the part that it belongs to. It is given as reasoning before that part, with the
    kind of the part, so that it can be put there again.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._told: list[Mapping[str, object]] = []
        self._calls = 0

    def chunk(self, members: Mapping[str, object], data: str) -> list[StreamEvent]:
        """One response object."""
        if error := members.get("error"):
            return self.fail(event_failure(self.profile, error))
        self.usage = read_usage(members, self.profile.usage) or self.usage
        if blocked := as_text(as_object(members.get("promptFeedback")).get("blockReason")):
            self.refusal, self.reason = True, blocked
            return []
        candidates = as_list(members.get("candidates"))
        candidate = as_object(candidates[0] if candidates else None)
        events: list[StreamEvent] = []
        for part in as_list(as_object(candidate.get("content")).get("parts")):
            events += self._part(as_object(part))
        self.reason = as_text(candidate.get("finishReason")) or self.reason
        return events

    def reply(self, members: Mapping[str, object], body: bytes) -> list[StreamEvent]:
        """A response in one piece, or the array of responses that a stream without events is."""
        if "candidates" not in members and (error := error_in(members)):
            return self.fail(event_failure(self.profile, error))
        read = self.reader.read(body)
        events: list[StreamEvent] = []
        for one in as_list(read) or [members]:
            events += self.chunk(as_object(one), "")
        return events

    def _part(self, part: Mapping[str, object]) -> list[StreamEvent]:
        signature, text = as_text(part.get("thoughtSignature")), as_text(part.get("text"))
        if call := as_object(part.get("functionCall")):
            if self._was_told(call):
                return []
            return [*_signed("functionCall", signature), self._call(call)]
        if part.get("thought") is True:
            if not signature:
                return [ReasoningDelta(text)] if text else []
            return [ReasoningDelta(text, _state("thought", signature))]
        if not text:
            return _signed("empty", signature)
        return [*_signed("text", signature), TextDelta(text)]

    def _was_told(self, call: Mapping[str, object]) -> bool:
        """Whether the very same call, by its id, came before: a chunk was sent again."""
        if not as_text(call.get("id")):
            return False
        told = call in self._told
        self._told.append(call)
        return told

    def _call(self, call: Mapping[str, object]) -> ToolCallDelta:
        index, self._calls = self._calls, self._calls + 1
        arguments = call.get("args")
        return ToolCallDelta(
            index=index,
            id=as_text(call.get("id")) or None,
            name=as_text(call.get("name")) or None,
            arguments=msgspec.json.encode(arguments).decode() if arguments else "{}",
        )


def _state(kind: str, signature: str) -> str:
    return encode_text({"part": kind, "thoughtSignature": signature}).decode()


def _signed(kind: str, signature: str) -> list[StreamEvent]:
    return [ReasoningDelta("", _state(kind, signature))] if signature else []
