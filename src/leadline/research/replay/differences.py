"""Where two requests, or two reports, differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from leadline.core.llm.messages import (
    AssistantMessage,
    ImageRef,
    Message,
    Reasoning,
    Text,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import LlmRequest
from leadline.core.session.codec import canonical

_RANDOM = re.compile(r"data-[0-9a-f]{16,}(?:-\d+)?|\bm-[0-9a-f]{16}\b")
"""Delimiters of fences, and ids of messages in texts that name them: they say nothing about what was asked."""
_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 400


@dataclass(frozen=True, kw_only=True)
class PartDifference:
    """One part of a request that is not what was recorded."""

    part: str
    """`model`, `parameters`, `purpose`, `system`, `tools`, or `message N` with N from 1."""
    was: str
    """As recorded; empty where there was none."""
    now: str
    """As it is asked now; empty where there is none."""

    def shown(self) -> tuple[str, ...]:
        """The lines that differ, as a unified diff without its head; cut where it is long."""
        lines = _changed_lines(self.was, self.now)
        cut = tuple(_short(line) for line in lines[:_SHOWN_LINES])
        return (*cut, f"... {len(lines) - _SHOWN_LINES} more lines") if len(lines) > _SHOWN_LINES else cut


def request_differences(was: LlmRequest, now: LlmRequest) -> tuple[PartDifference, ...]:
    """Every part of `now` that differs from `was` for a model. Ids of messages and delimiters of fences do not count."""
    return tuple(
        PartDifference(part=part, was=one, now=other)
        for part, one, other in _parts(was, now)
        if one != other and _RANDOM.sub("", one) != _RANDOM.sub("", other)
    )


def _parts(was: LlmRequest, now: LlmRequest) -> Iterator[tuple[str, str, str]]:
    yield "model", str(was.config.model), str(now.config.model)
    yield "parameters", _parameters(was), _parameters(now)
    yield "purpose", _purpose(was), _purpose(now)
    yield "system", was.system, now.system
    yield "tools", "\n".join(_tools(was)), "\n".join(_tools(now))
    one, other = tuple(was.conversation), tuple(now.conversation)
    for at in range(max(len(one), len(other))):
        yield f"message {at + 1}", _message(one, at), _message(other, at)


def _parameters(request: LlmRequest) -> str:
    config = msgspec.to_builtins(request.config)
    return "\n".join(f"{key} {value}" for key, value in sorted(config.items()) if key != "model")


def _purpose(request: LlmRequest) -> str:
    return f"{request.purpose.name}\n{canonical(request.purpose.data).decode()}"


def _tools(request: LlmRequest) -> Iterator[str]:
    for tool in request.tools:
        yield f"{tool.name}: {tool.description}"
        yield canonical(tool.parameters).decode()


def _message(messages: Sequence[Message], at: int) -> str:
    if at >= len(messages):
        return ""
    match messages[at]:
        case UserMessage() as said:
            return "\n".join(("user:", *(_part(part) for part in said.content)))
        case AssistantMessage() as said:
            parts = [_part(part) for part in said.content if isinstance(part, Text | Reasoning)]
            calls = [f"call {one.id} {one.name} {one.arguments}" for one in said.tool_calls]
            return "\n".join(("assistant:", *parts, *calls))
        case ToolMessage() as said:
            return f"result of {said.name} ({said.call_id}){', an error' if said.is_error else ''}:\n{said.content}"


def _part(part: Text | Reasoning | ImageRef) -> str:
    return f"image {part.blob}" if isinstance(part, ImageRef) else part.text


def _changed_lines(was: str, now: str) -> list[str]:
    found = difflib.unified_diff(was.splitlines(), now.splitlines(), lineterm="", n=0)
    return [line for line in list(found)[2:] if not line.startswith("@@")]


def _short(line: str) -> str:
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."


def text_difference(was: str, now: str, was_name: str, now_name: str) -> str:
    """The unified diff of two texts, ending with a line break; empty where they are equal byte for byte."""
    if was == now:
        return ""
    lines = difflib.unified_diff(
        was.splitlines(keepends=True), now.splitlines(keepends=True), was_name, now_name
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ no line break at the end\n" for line in lines
    )
