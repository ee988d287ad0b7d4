"""Chat-completions replies as stream events: a state machine with one end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from leadline.capabilities.models.providers.ending import ReplyDecoder, error_in
from leadline.capabilities.models.providers.failures import event_failure
from leadline.capabilities.models.providers.profiles import Profile, UsagePlaces
from leadline.capabilities.models.providers.provider_json import (
    as_count,
    as_list,
    as_object,
    as_text,
    at,
    first_count,
)
from leadline.core.llm.stream import ReasoningDelta, StreamEvent, TextDelta, ToolCallDelta
from leadline.core.llm.usage import Usage
from leadline.core.llm.wire import encode_text


class ChatDecoder(ReplyDecoder):
    """Chat completions. Deltas behind the finish reason are dropped; usage and errors behind it count."""

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._details = _Details()
        self._choice: int | None = None
        self._usage_roots = _roots(profile.usage.paths)

    def reply(self, members: Mapping[str, object], body: bytes) -> list[StreamEvent]:
        """A completion in one piece has the members of a chunk."""
        if "choices" not in members and (error := error_in(members)):
            return self.fail(event_failure(self.profile, error))
        return self.chunk(members, "")

    def chunk(self, members: Mapping[str, object], data: str) -> list[StreamEvent]:
        """One chunk."""
        choice = self._chosen(as_list(members.get("choices")))
        error = members.get("error") or choice.get("error")
        if members.get("object") == "error":
            error = error or members
        if error:
            return self.fail(event_failure(self.profile, error))
        if not self._usage_roots.isdisjoint(members):
            self.usage = read_usage(members, self.profile.usage) or self.usage
        if not choice or self.reason is not None:
            return []
        events = self._delta(as_object(choice.get("delta")) or as_object(choice.get("message")))
        self.reason = as_text(choice.get("finish_reason")) or None
        # An answer that was cut off may hold half a block, which would be refused.
        whole = self.reason in self.profile.finish.done
        if whole and (state := self._details.state()) is not None:
            events.append(ReasoningDelta("", state))
        return events

    def _chosen(self, choices: Sequence[object]) -> Mapping[str, object]:
        """Of several answers, for which nobody asked, the one that came first."""
        for choice in map(as_object, choices):
            place = choice.get("index")
            if self._choice is None and isinstance(place, int):
                self._choice = place
            if place in (None, self._choice):
                return choice
        return as_object(choices[0]) if choices and self._choice is None else {}

    def _delta(self, delta: Mapping[str, object]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if not delta:
            return events
        for name in self.profile.reasoning_fields:
            if name in delta and (text := as_text(delta[name])):
                events.append(ReasoningDelta(text))
                break
        if self.profile.reasoning_details_field:
            self._details.add(as_list(delta.get(self.profile.reasoning_details_field)))
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                events.append(TextDelta(content))
        elif content:
            events += _content(content)
        if "refusal" in delta and (refusal := as_text(delta["refusal"])):
            self.refusal = True
            events.append(TextDelta(refusal))
        calls = as_list(delta.get("tool_calls"))
        if not calls and "function_call" in delta and (function := as_object(delta["function_call"])):
            calls = [{"function": function}]
        for position, call in enumerate(calls):
            events.append(_fragment(as_object(call), position if len(calls) > 1 else None))
        return events


class _Details:
    """Blocks of reasoning that come in pieces: those of one place and kind are one block.

    Texts are put together, of everything else the last that is there counts. They are complete when the answer is.
    """

    _TEXTS = ("text", "summary", "data")

    def __init__(self) -> None:
        self._blocks: list[dict[str, object]] = []

    def add(self, pieces: Iterable[object]) -> None:
        for piece in map(as_object, pieces):
            last = self._blocks[-1] if self._blocks else None
            if last is None or not _continues(last, piece):
                self._blocks.append(dict(piece))
                continue
            for key, value in piece.items():
                if key in self._TEXTS and isinstance(value, str):
                    last[key] = as_text(last.get(key)) + value
                elif value is not None:
                    last[key] = value

    def state(self) -> str | None:
        """The blocks as one text; None where there are none."""
        return encode_text(self._blocks).decode() if self._blocks else None


def _continues(block: Mapping[str, object], piece: Mapping[str, object]) -> bool:
    """Whether a piece belongs to a block: it stands at the same place and contradicts it in nothing."""
    if piece.get("index") is None or piece.get("index") != block.get("index"):
        return False
    same = (piece.get(key) is None or block.get(key) in (None, piece.get(key)) for key in ("type", "id"))
    return all(same)


@lru_cache(maxsize=32)
def _roots(paths: tuple[str, ...]) -> frozenset[str]:
    """The members of a chunk in which usage may stand."""
    return frozenset(path.partition(".")[0] for path in paths)


def _content(content: object) -> Iterable[StreamEvent]:
    for item in as_list(content) or [content]:
        part = {"text": item} if isinstance(item, str) else as_object(item)
        if text := as_text(part.get("text")):
            yield TextDelta(text)
        thought = part.get("thinking")
        words = as_text(thought) or "".join(
            as_text(as_object(piece).get("text")) for piece in as_list(thought)
        )
        if words:
            yield ReasoningDelta(words)


def _fragment(call: Mapping[str, object], position: int | None) -> ToolCallDelta:
    function = as_object(call.get("function"))
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    return ToolCallDelta(
        index=as_count(call.get("index")),
        position=position,
        id=as_text(call.get("id")) or None,
        name=as_text(function.get("name")) or None,
        arguments=arguments or "",
    )


def read_usage(chunk: Mapping[str, object], places: UsagePlaces) -> Usage | None:
    """The usage in a chunk as disjoint buckets; None when there is none."""
    found = next((as_object(value) for path in places.paths if (value := at(chunk, path))), None)
    if not found:
        return None
    prompt, completion = as_count(at(found, places.prompt)), as_count(at(found, places.completion))
    if prompt is None and completion is None:
        return None
    cached = first_count(found, places.cached)
    written = first_count(found, places.cache_write)
    reasoning = first_count(found, places.reasoning)
    within = reasoning if places.reasoning_in_output else None
    return Usage(
        input=_less(prompt, cached, written) if places.cached_in_prompt else prompt,
        cached_input=cached,
        cache_write=written,
        output=_less(completion, within),
        reasoning=reasoning,
    )


def _less(whole: int | None, *parts: int | None) -> int | None:
    return None if whole is None else max(0, whole - sum(part or 0 for part in parts))
