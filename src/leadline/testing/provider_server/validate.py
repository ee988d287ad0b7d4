"""The checks of a strict provider: what it would refuse in a request body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, cast

ReasoningRule: TypeAlias = Literal["any", "reject", "require", "require_with_tools"]

_KEYS = frozenset(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "stop",
        "seed",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "reasoning_effort",
        "thinking",
    ]
)


def refusal(body: Mapping[str, object], reasoning: ReasoningRule = "any") -> str | None:
    """Why a strict provider refuses ``body``; None when it does not."""
    unknown = sorted(set(body) - _KEYS)
    if unknown:
        return f"unknown keys: {', '.join(unknown)}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model is missing"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is missing or empty"
    pending: list[str] = []
    for at, message in enumerate(cast("list[object]", messages)):
        if not isinstance(message, dict):
            return f"messages[{at}] is not an object"
        known = cast("Mapping[str, object]", message)
        problem = _content(known) or _pairing(known, pending) or _reasoning(known, reasoning)
        if problem:
            return f"messages[{at}]: {problem}"
    return f"call {pending[0]} has no result" if pending else None


def _calls(message: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    return cast("Sequence[Mapping[str, object]]", message.get("tool_calls") or ())


def _content(message: Mapping[str, object]) -> str | None:
    role, content = message.get("role"), message.get("content")
    if role not in ("system", "user", "assistant", "tool"):
        return f"unknown role {role!r}"
    if "tool_calls" in message and not message["tool_calls"]:
        return "tool_calls is empty"
    if not content and not (role == "assistant" and _calls(message)) and role != "tool":
        return "content is empty"
    for part in cast("list[Mapping[str, object]]", content) if isinstance(content, list) else ():
        if part.get("type") == "text" and not part.get("text"):
            return "a content part is empty"
    return None


def _pairing(message: Mapping[str, object], pending: list[str]) -> str | None:
    if message.get("role") == "tool":
        call = message.get("tool_call_id")
        if call not in pending:
            return f"tool_call_id {call!r} answers no open call"
        pending.remove(str(call))
        return None
    if pending:
        return f"call {pending[0]} has no result before this message"
    for call in _calls(message):
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(call.get("id"), str):
            return "a tool call has no id or no function"
        if not isinstance(cast("Mapping[str, object]", function).get("arguments"), str):
            return "arguments of a tool call are not a string"
        pending.append(str(call["id"]))
    return f"a call id stands twice in {pending}" if len(set(pending)) != len(pending) else None


def _reasoning(message: Mapping[str, object], rule: ReasoningRule) -> str | None:
    if message.get("role") != "assistant" or rule == "any":
        return None
    there = bool(message.get("reasoning_content"))
    if rule == "reject" and there:
        return "reasoning_content must not be passed back"
    wanted = rule == "require" or (rule == "require_with_tools" and bool(_calls(message)))
    return "reasoning_content must be passed back" if wanted and not there else None
