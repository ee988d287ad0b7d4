"""Anthropic Messages: replies as stream events."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from leadline.capabilities.models.providers.decode import read_usage
from leadline.capabilities.models.providers.ending import ReplyDecoder, error_in, malformed
from leadline.capabilities.models.providers.failures import event_failure
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import as_count, as_list, as_object, as_text
from leadline.core.llm.stream import ReasoningDelta, StreamEvent, TextDelta, ToolCallDelta
from leadline.core.llm.wire import encode_text


class MessagesDecoder(ReplyDecoder):
    """Blocks by their index; a signature is kept until its block ends and is then given with it."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._signatures: dict[int | None, str] = {}
        self._counts: dict[str, object] = {}

    def chunk(self, members: Mapping[str, object], data: str) -> list[StreamEvent]:
        """One event of the stream; kinds that are not known are passed over, as the API asks."""
        index = as_count(members.get("index"))
        match as_text(members.get("type")):
            case "message_start":
                self._count(as_object(members.get("message")))
            case "content_block_start":
                return self._begun(index, as_object(members.get("content_block")))
            case "content_block_delta":
                return self._delta(index, as_object(members.get("delta")))
            case "content_block_stop":
                return self._stopped(index)
            case "message_delta":
                self._count(members)
                delta = as_object(members.get("delta"))
                self.reason = as_text(delta.get("stop_reason")) or self.reason
            case "message_stop":
                return self.end(done=True)
            case "error":
                return self.fail(event_failure(self.profile, members.get("error") or members))
            case "":
                if error := members.get("error"):
                    return self.fail(event_failure(self.profile, error))
                return self.fail(malformed("the stream holds an event without a type"))
            case _:
                pass
        return []

    def reply(self, members: Mapping[str, object], body: bytes) -> list[StreamEvent]:
        """A whole message."""
        if "content" not in members and (error := error_in(members)):
            return self.fail(event_failure(self.profile, error))
        self._count(members)
        events: list[StreamEvent] = []
        for index, block in enumerate(as_list(members.get("content"))):
            events += [*self._begun(index, as_object(block)), *self._stopped(index)]
        self.reason = as_text(members.get("stop_reason")) or None
        return events

    def _count(self, members: Mapping[str, object]) -> None:
        """Later counts replace earlier ones; what a later report leaves out stays."""
        reported = as_object(members.get("usage"))
        self._counts |= {key: value for key, value in reported.items() if value is not None}
        if self._counts:
            self.usage = read_usage({"usage": self._counts}, self.profile.usage)

    def _begun(self, index: int | None, block: Mapping[str, object]) -> list[StreamEvent]:
        match as_text(block.get("type")):
            case "text":
                text = as_text(block.get("text"))
                return [TextDelta(text)] if text else []
            case "tool_use":
                given = block.get("input")
                arguments = msgspec.json.encode(given).decode() if given else ""
                name, id_ = as_text(block.get("name")) or None, as_text(block.get("id")) or None
                return [ToolCallDelta(index=index, id=id_, name=name, arguments=arguments)]
            case "thinking":
                self._signatures[index] = as_text(block.get("signature"))
                text = as_text(block.get("thinking"))
                return [ReasoningDelta(text)] if text else []
            case "redacted_thinking":
                state = {"type": "redacted_thinking", "data": as_text(block.get("data"))}
                return [ReasoningDelta("", encode_text(state).decode())]
            case _:
                return []

    def _delta(self, index: int | None, delta: Mapping[str, object]) -> list[StreamEvent]:
        match as_text(delta.get("type")):
            case "text_delta":
                text = as_text(delta.get("text"))
                return [TextDelta(text)] if text else []
            case "input_json_delta":
                piece = as_text(delta.get("partial_json"))
                return [ToolCallDelta(index=index, arguments=piece)] if piece else []
            case "thinking_delta":
                text = as_text(delta.get("thinking"))
                return [ReasoningDelta(text)] if text else []
            case "signature_delta":
                known = self._signatures.get(index, "")
                self._signatures[index] = known + as_text(delta.get("signature"))
                return []
            case _:
                return []

    def _stopped(self, index: int | None) -> list[StreamEvent]:
        signature = self._signatures.pop(index, "")
        if not signature:
            return []
        state = {"type": "thinking", "signature": signature}
        return [ReasoningDelta("", encode_text(state).decode())]
