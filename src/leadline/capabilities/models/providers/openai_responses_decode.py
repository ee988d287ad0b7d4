"""OpenAI Responses: replies as stream events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from leadline.capabilities.models.providers.decode import read_usage
from leadline.capabilities.models.providers.ending import ReplyDecoder, error_in, malformed
from leadline.capabilities.models.providers.failures import event_failure
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import as_count, as_list, as_object, as_text
from leadline.core.llm.stream import ReasoningDelta, StreamEvent, TextDelta, ToolCallDelta
from leadline.core.llm.wire import encode_text


class _Item(msgspec.Struct, frozen=True):
    item: msgspec.Raw = msgspec.Raw()


class _Output(msgspec.Struct, frozen=True):
    output: tuple[msgspec.Raw, ...] = ()


class _Response(msgspec.Struct, frozen=True):
    response: _Output = _Output()


class ResponsesDecoder(ReplyDecoder):
    """Items by their place in the output.

    What came in pieces is not taken again from the whole item that follows; an item that only came whole is
    taken from there. A reasoning item is kept byte for byte.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._written: dict[int | None, int] = {}
        """Characters of each item that have been given."""
        self._closed: set[int | None] = set()
        self._places: dict[str, int | None] = {}
        """Where each call stood first, by its id."""
        self._repeated: set[int | None] = set()
        """Places of items that are a call of another place again."""

    def chunk(self, members: Mapping[str, object], data: str) -> list[StreamEvent]:
        """One event of the stream; kinds that are not known are passed over."""
        kind, index = as_text(members.get("type")), as_count(members.get("output_index"))
        match kind:
            case "response.output_text.delta":
                return self._pieces(index, TextDelta(as_text(members.get("delta"))))
            case "response.refusal.delta":
                self.refusal = True
                return self._pieces(index, TextDelta(as_text(members.get("delta"))))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._pieces(index, ReasoningDelta(as_text(members.get("delta"))))
            case "response.reasoning_summary_part.added":
                apart = (as_count(members.get("summary_index")) or 0) > 0
                return self._pieces(index, ReasoningDelta("\n\n")) if apart else []
            case "response.output_item.added":
                item = as_object(members.get("item"))
                return [self._placed(index, item)] if item.get("type") == "function_call" else []
            case "response.function_call_arguments.delta":
                piece = as_text(members.get("delta"))
                self._written[index] = self._written.get(index, 0) + len(piece)
                taken = piece and index not in self._repeated
                return [ToolCallDelta(index=index, arguments=piece)] if taken else []
            case "response.output_item.done":
                return self._item(index, as_object(members.get("item")), _raw_item(data))
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._ending(members, _raw_outputs(data))
            case "error":
                return self.fail(event_failure(self.profile, members.get("error") or members))
            case "":
                if error := members.get("error"):
                    return self.fail(event_failure(self.profile, error))
                return self.fail(malformed("the stream holds an event without a type"))
            case _:
                return []

    def reply(self, members: Mapping[str, object], body: bytes) -> list[StreamEvent]:
        """A whole response."""
        if "output" not in members and "status" not in members and (error := error_in(members)):
            return self.fail(event_failure(self.profile, error))
        try:
            raw = [bytes(item).decode() for item in msgspec.json.decode(body, type=_Output).output]
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raw = []
        return self._ending({"response": members}, raw)

    def _pieces(self, index: int | None, event: TextDelta | ReasoningDelta) -> list[StreamEvent]:
        if not event.text:
            return []
        self._written[index] = self._written.get(index, 0) + len(event.text)
        return [event]

    def _item(self, index: int | None, item: Mapping[str, object], raw: str) -> list[StreamEvent]:
        """A whole item: what of it has not come in pieces."""
        if index in self._closed and index is not None:
            return []
        self._closed.add(index)
        written = self._written.pop(index, 0)
        match as_text(item.get("type")):
            case "reasoning":
                text = "" if written else _summary(item)
                return [ReasoningDelta(text, raw or encode_text(item).decode())]
            case "function_call":
                call = self._placed(index, item)
                if index in self._repeated:
                    return []
                arguments = "" if written else call.arguments
                return [msgspec.structs.replace(call, arguments=arguments)]
            case "message":
                return [] if written else self._message(item)
            case _:
                return []

    def _placed(self, index: int | None, item: Mapping[str, object]) -> ToolCallDelta:
        """The call of an item, at the place where the call of that id stood first."""
        call = _call(index, item)
        if call.id is None:
            return call
        first = self._places.setdefault(call.id, index)
        if first != index:
            self._repeated.add(index)
        return msgspec.structs.replace(call, index=first)

    def _message(self, item: Mapping[str, object]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for part in map(as_object, as_list(item.get("content"))):
            refused = as_text(part.get("refusal"))
            self.refusal = self.refusal or bool(refused)
            if text := refused or as_text(part.get("text")):
                events.append(TextDelta(text))
        return events

    def _ending(self, members: Mapping[str, object], raw: Sequence[str]) -> list[StreamEvent]:
        response = as_object(members.get("response"))
        self.usage = read_usage(members, self.profile.usage) or self.usage
        if error := response.get("error"):
            return self.fail(event_failure(self.profile, error))
        events: list[StreamEvent] = []
        placed = None not in self._closed and None not in self._written
        for index, item in enumerate(map(as_object, as_list(response.get("output")))):
            if placed and index not in self._closed:
                events += self._item(index, item, raw[index] if index < len(raw) else "")
        status = as_text(response.get("status"))
        if status == "failed":
            return self.fail(event_failure(self.profile, {}))
        why = as_text(as_object(response.get("incomplete_details")).get("reason"))
        self.reason = why or status or None
        self.begun = self.begun or bool(events)
        return [*events, *self.end(done=True)]


def _call(index: int | None, item: Mapping[str, object]) -> ToolCallDelta:
    id_, name = as_text(item.get("call_id")) or None, as_text(item.get("name")) or None
    return ToolCallDelta(index=index, id=id_, name=name, arguments=as_text(item.get("arguments")))


def _summary(item: Mapping[str, object]) -> str:
    parts = as_list(item.get("summary")) or as_list(item.get("content"))
    return "\n\n".join(filter(None, (as_text(as_object(part).get("text")) for part in parts)))


def _raw_item(data: str) -> str:
    try:
        return bytes(msgspec.json.decode(data, type=_Item).item).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""


def _raw_outputs(data: str) -> list[str]:
    try:
        found = msgspec.json.decode(data, type=_Response).response.output
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []
    return [bytes(item).decode() for item in found]
