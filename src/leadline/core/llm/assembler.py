"""Stream events to one message: the only place where fragments become calls."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from leadline.core.llm.failure import Wait
from leadline.core.llm.limits import RateLimits
from leadline.core.llm.messages import AssistantContent, Reasoning, Text, ToolCall
from leadline.core.llm.stream import (
    Finish,
    LimitsReport,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from leadline.core.llm.usage import NOT_REPORTED, Usage


class Completion(msgspec.Struct, frozen=True):
    """What one attempt came to."""

    content: tuple[AssistantContent, ...]
    """Tool calls are in it only when the stream ended properly (``finish.state`` is ``done``)."""
    usage: Usage
    finish: Finish
    dropped_calls: tuple[ToolCall, ...] = ()
    """Calls of a stream that did not end properly; their arguments may be cut off."""
    limits: RateLimits | None = None
    """What the response said about rate limits."""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that may run."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        """The visible text."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def empty(self) -> bool:
        """Whether there is neither text nor a call."""
        return not self.tool_calls and not self.text.strip()


class _Call:
    __slots__ = ("arguments", "id", "index", "name", "position")

    def __init__(self, fragment: ToolCallDelta) -> None:
        self.id: str | None = None
        self.name: str | None = None
        self.index = fragment.index
        self.position = fragment.position
        self.arguments = ""
        self.take(fragment)

    def take(self, fragment: ToolCallDelta) -> None:
        self.id = fragment.id or self.id
        self.name = fragment.name or self.name
        self.arguments += fragment.arguments


class _Segment:
    __slots__ = ("opaque", "parts", "reasoning")

    def __init__(self, reasoning: bool) -> None:
        self.reasoning = reasoning
        self.parts: list[str] = []
        self.opaque: str | None = None


class Assembler:
    """Adds up the events of one attempt.

    A fragment belongs to the call with its id, else its index, else its position in the delta's
    array, else to the call that is open. Empty strings and None never overwrite anything; a name
    is assigned, not appended. Ids that the provider left out, or used before, are made from
    ``call_prefix`` and the call's place, so the same stream always gives the same ids.
    """

    def __init__(
        self,
        *,
        producer: str | None = None,
        call_prefix: str = "call",
        taken_ids: Container[str] = frozenset(),
    ) -> None:
        """Start an attempt.

        Args:
            producer: ``provider/model``, noted on the reasoning.
            call_prefix: start of ids that are made here; unique to the message.
            taken_ids: call ids the conversation has used already.
        """
        self._producer = producer
        self._call_prefix = call_prefix
        self._taken = taken_ids
        self._order: list[_Segment | _Call] = []
        self._calls: list[_Call] = []
        self._open: _Call | None = None
        self._usage = NOT_REPORTED
        self._limits: RateLimits | None = None
        self._finish: Finish | None = None

    def add(self, event: StreamEvent) -> None:
        """Take one event; anything after a `Finish` is ignored."""
        if self._finish is not None:
            return
        match event:
            case TextDelta(text):
                self._write(text, reasoning=False)
            case ReasoningDelta(text, opaque):
                self._write(text, reasoning=True, opaque=opaque)
            case ToolCallDelta():
                self._fragment(event)
            case UsageReport(usage):
                self._usage = usage
            case LimitsReport(limits):
                self._limits = limits
            case Finish():
                self._finish = event

    def completion(self) -> Completion:
        """What has been received so far; without a `Finish` it counts as incomplete."""
        finish = self._finish or Finish(
            "incomplete", Wait("STREAM_CLOSED", "the stream was left before its end")
        )
        ids = self._ids()
        nameless = [call for call in self._calls if call.name is None and call.arguments.strip()]
        if nameless and finish.state == "done":
            finish = Finish("error", Wait("MALFORMED_RESPONSE", "the model sent a tool call without a name"))
        content: list[AssistantContent] = []
        calls: list[ToolCall] = []
        for item in self._order:
            if isinstance(item, _Segment):
                content += self._segment(item)
            elif item.name is not None:
                call = ToolCall(ids[item], item.name, normal_arguments(item.arguments))
                calls.append(call)
                content.append(call)
        if finish.state == "done":
            return Completion(tuple(content), self._usage, finish, limits=self._limits)
        kept = tuple(part for part in content if not isinstance(part, ToolCall))
        return Completion(_joined(kept), self._usage, finish, tuple(calls), self._limits)

    def _write(self, text: str, *, reasoning: bool, opaque: str | None = None) -> None:
        if not text and opaque is None:
            return
        last = self._order[-1] if self._order else None
        if not isinstance(last, _Segment) or last.reasoning != reasoning or last.opaque is not None:
            last = _Segment(reasoning)
            self._order.append(last)
        last.parts.append(text)
        last.opaque = opaque

    def _segment(self, segment: _Segment) -> tuple[AssistantContent, ...]:
        text = "".join(segment.parts)
        if segment.reasoning:
            return (Reasoning(text, segment.opaque, self._producer),)
        return (Text(text),)

    def _fragment(self, fragment: ToolCallDelta) -> None:
        if fragment.id and fragment.arguments and any(_says_again(call, fragment) for call in self._calls):
            return
        call = self._owner(fragment)
        if call is None:
            if not (fragment.id or fragment.name or fragment.arguments):
                return
            call = _Call(fragment)
            self._calls.append(call)
            self._order.append(call)
        else:
            call.take(fragment)
            call.index = fragment.index if fragment.index is not None else call.index
        self._open = call

    def _owner(self, fragment: ToolCallDelta) -> _Call | None:
        """The call that ``fragment`` continues; None when it opens one."""
        if fragment.id:
            same = [call for call in self._calls if call.id == fragment.id]
            if same:
                return self._of_same_id(fragment, same)
        found = self._by_place(fragment)
        if found is None:
            return None
        if fragment.id and found.id and found.id != fragment.id:
            return None
        return None if _begins_another(found, fragment) else found

    def _of_same_id(self, fragment: ToolCallDelta, same: list[_Call]) -> _Call | None:
        placed = self._by_place(fragment)
        if placed is not None and placed in same:
            return None if _begins_another(placed, fragment) else placed
        latest = same[-1]
        elsewhere = fragment.index is not None and latest.index not in (None, fragment.index)
        apart = fragment.index is None and None not in (fragment.position, latest.position)
        if fragment.name and (elsewhere or apart) and placed is None:
            return None
        return None if _begins_another(latest, fragment) else latest

    def _by_place(self, fragment: ToolCallDelta) -> _Call | None:
        calls = reversed(self._calls)
        if fragment.index is not None:
            return next((call for call in calls if call.index == fragment.index), None)
        if fragment.position is not None:
            return next(
                (call for call in calls if call.index is None and call.position == fragment.position), None
            )
        late_id = self._open is not None and self._open.id is None and not fragment.name
        return self._open if late_id or not fragment.id else None

    def _ids(self) -> dict[_Call, str]:
        """A distinct id for every call: the provider's where it is usable."""
        ids: dict[_Call, str] = {}
        used: set[str] = set()
        for place, call in enumerate(self._calls):
            chosen = call.id
            if not chosen or chosen in used or chosen in self._taken:
                chosen = f"{self._call_prefix}-{place}"
            while chosen in used:
                chosen += "-"
            used.add(chosen)
            ids[call] = chosen
        return ids


def _says_again(call: _Call, fragment: ToolCallDelta) -> bool:
    """Whether `fragment` is a call that was told in parts, once more and whole, as some servers end a stream."""
    return (
        fragment.id == call.id
        and fragment.index is not None
        and fragment.index == call.index
        and fragment.name == call.name
        and fragment.arguments == call.arguments
        and _is_json(call.arguments)
    )


def _begins_another(call: _Call, fragment: ToolCallDelta) -> bool:
    """Whether ``fragment`` names a further call in the place of one that is complete."""
    if not fragment.name or call.name is None or not call.arguments.strip():
        return False
    if fragment.name == call.name and not fragment.arguments.lstrip().startswith("{"):
        return False
    return _is_json(call.arguments)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False
    return True


def normal_arguments(text: str) -> str:
    """``{}`` for the ways of saying that there are no arguments, else ``text`` as received."""
    return "{}" if text.strip() in ("", "null") else text


def _joined(content: tuple[AssistantContent, ...]) -> tuple[AssistantContent, ...]:
    """Neighbouring texts as one, once the calls between them are gone."""
    out: list[AssistantContent] = []
    for part in content:
        last = out[-1] if out else None
        if isinstance(part, Text) and isinstance(last, Text):
            out[-1] = Text(last.text + part.text)
        else:
            out.append(part)
    return tuple(out)
