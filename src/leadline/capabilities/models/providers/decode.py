"""Chat-completions replies as stream events: a state machine with one end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from leadline.capabilities.models.providers.failures import event_failure
from leadline.capabilities.models.providers.lookup import (
    JsonReader,
    as_count,
    as_list,
    as_object,
    as_text,
    at,
    first_count,
)
from leadline.capabilities.models.providers.profiles import Profile, UsagePlaces
from leadline.core.llm.failure import LlmFailure, Stop, Wait
from leadline.core.llm.stream import (
    Finish,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageReport,
)
from leadline.core.llm.usage import Usage

DONE = "[DONE]"


class ChatDecoder:
    """Feed it the data of server-sent events; it yields deltas and, once, the end.

    After the `Finish` it yields nothing. Deltas behind the provider's finish reason are dropped;
    usage and errors behind it count.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._reader = JsonReader()
        self._usage_roots = frozenset(path.partition(".")[0] for path in profile.usage.paths)
        self._reason: str | None = None
        self._refusal = False
        self._usage: Usage | None = None
        self._begun = False
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the `Finish` has been given."""
        return self._ended

    @property
    def finish_seen(self) -> bool:
        """Whether the provider has said why it ends, so that little can be missing."""
        return self._reason is not None

    def feed(self, data: str, event: str = "message") -> list[StreamEvent]:
        """The events of one server-sent event, given its data and its type."""
        if self._ended or not data.strip():
            return []
        if data.strip() == DONE:
            return self._end(done=True)
        try:
            chunk = self._reader.read(data)
        except ValueError:
            return self._fail(_malformed(f"the stream holds an event that is not JSON: {data[:80]!r}"))
        if event == "error":
            return self._fail(event_failure(self._profile, as_object(chunk).get("error") or chunk))
        return self._chunk(chunk)

    def whole(self, body: bytes) -> list[StreamEvent]:
        """The events of a reply that came in one piece, the end included."""
        try:
            reply = self._reader.read(body)
        except ValueError:
            return self._fail(_malformed("the reply is not JSON"))
        members = as_object(reply)
        if "choices" not in members and (as_text(members.get("message")) or as_text(members.get("detail"))):
            return self._fail(event_failure(self._profile, members))
        events = self._chunk(reply)
        return events if self._ended else [*events, *self._end(done=True)]

    def close(self) -> list[StreamEvent]:
        """The end, when the connection has ended properly."""
        return [] if self._ended else self._end(done=False)

    def cut(self, failure: LlmFailure) -> list[StreamEvent]:
        """The end, when the connection was lost or given up."""
        if self._ended:
            return []
        if self._reason is not None and not self._profile.stream_end.done_required:
            return self._finish(self._reason)
        return self._fail(failure, "incomplete" if self._begun else "error")

    def _chunk(self, chunk: object) -> list[StreamEvent]:
        members = as_object(chunk)
        if not members:
            return self._fail(_malformed("the stream holds an event that is not an object, or an empty one"))
        choices = as_list(members.get("choices"))
        choice = as_object(choices[0] if choices else None)
        error = members.get("error") or choice.get("error")
        if members.get("object") == "error":
            error = error or members
        if error:
            return self._fail(event_failure(self._profile, error))
        if not self._usage_roots.isdisjoint(members):
            self._usage = read_usage(members, self._profile.usage) or self._usage
        if not choice or self._reason is not None:
            return []
        delta = as_object(choice.get("delta")) or as_object(choice.get("message"))
        events = self._delta(delta)
        self._begun = self._begun or bool(events)
        self._reason = as_text(choice.get("finish_reason")) or None
        return events

    def _delta(self, delta: Mapping[str, object]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for name in self._profile.reasoning_fields:
            if text := as_text(delta.get(name)):
                events.append(ReasoningDelta(text))
                break
        content = delta.get("content")
        if content:
            events += _content(content)
        if refusal := as_text(delta.get("refusal")):
            self._refusal = True
            events.append(TextDelta(refusal))
        calls = as_list(delta.get("tool_calls"))
        if not calls and (function := as_object(delta.get("function_call"))):
            calls = [{"function": function}]
        for position, call in enumerate(calls):
            events.append(_fragment(as_object(call), position if len(calls) > 1 else None))
        return events

    def _end(self, *, done: bool) -> list[StreamEvent]:
        rule, reason = self._profile.stream_end, self._reason
        if reason is None and not self._begun and self._usage is None:
            return self._fail(Wait("EMPTY_RESPONSE", "the provider ended the stream without saying anything"))
        if rule.done_required and not done:
            return self._fail(Wait("STREAM_CLOSED", "the stream ended without its end mark"), "incomplete")
        if reason is None and rule.finish_required:
            return self._fail(Wait("STREAM_CLOSED", "the stream ended without a finish reason"), "incomplete")
        return self._finish(reason)

    def _finish(self, reason: str | None) -> list[StreamEvent]:
        words = self._profile.finish
        if self._refusal or reason in words.refused:
            return self._last(Finish("refused", None, reason))
        if reason is None or reason in words.done:
            return self._last(Finish("done", None, reason))
        if reason in words.length:
            return self._last(Finish("length", None, reason))
        if reason in words.error:
            return self._fail(Wait("SERVER", f"the provider broke off the answer ({reason})"), detail=reason)
        step = f"add {reason!r} to one of the lists under settings.finish of this provider"
        unknown = Stop(
            "UNSUPPORTED", f"the provider ended the answer with an unknown word, {reason!r}", None, step
        )
        return self._fail(unknown, detail=reason)

    def _fail(
        self, failure: LlmFailure, state: str = "error", *, detail: str | None = None
    ) -> list[StreamEvent]:
        return self._last(Finish("incomplete" if state == "incomplete" else "error", failure, detail))

    def _last(self, finish: Finish) -> list[StreamEvent]:
        self._ended = True
        return [finish] if self._usage is None else [UsageReport(self._usage), finish]


def _malformed(message: str) -> Wait:
    return Wait("MALFORMED_RESPONSE", message)


def _content(content: object) -> Iterable[StreamEvent]:
    if isinstance(content, str):
        if content:
            yield TextDelta(content)
        return
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
