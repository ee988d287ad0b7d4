"""Tool calls read from the text of a model that has no others. The syntax is specified in ``docs/text-tools.md``.

A call is a block at the end of an answer, between tags that carry the key of the conversation:

    <call-KEY read>
    {"source": "d-0123456789"}
    </call-KEY>

Nothing is repaired: what is not such a block is text, and where a model seems to have meant a call, it is told
what was wrong. Reading is a pure function of the whole answer; the stream shows what cannot be part of a block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from leadline.core.llm.stream import Finish, StreamEvent, TextDelta, ToolCallDelta

Fault: TypeAlias = Literal["inline", "fenced", "unclosed", "followed", "tag"]
"""Why a block is no call: it begins within a line, stands in a code fence, has no closing tag, has text behind it,
or its opening tag names no tool."""

_FIRST_INDEX = 1000
"""Indexes of calls that were read here begin with it: those of the provider's own calls begin with 0."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
LINE = 200
"""A line is looked at so far to see whether it opens or closes a code fence."""
SPACE = 200
"""So much white space before a block is no part of the text, and is held back while a block may follow."""
INDENT = 8
"""So many blanks may stand before a tag that begins a line."""
_UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class TextCall:
    """One call as the model wrote it."""

    name: str
    arguments: str
    """What stands between the tags: JSON if the model wrote JSON."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a whole answer holds."""

    end: int
    """Where the text that is not a call ends."""
    calls: tuple[TextCall, ...] = ()
    fault: Fault | None = None
    """Why there are no calls where the model seems to have meant one."""


@dataclass(frozen=True)
class Syntax:
    """The tags of one conversation."""

    key: str

    @cached_property
    def tag(self) -> str:
        """How every opening tag begins."""
        return f"<call-{self.key}"

    @cached_property
    def close(self) -> str:
        """The closing tag of a call."""
        return f"</call-{self.key}>"

    @cached_property
    def opening(self) -> re.Pattern[str]:
        """A whole opening tag."""
        return re.compile(rf"{re.escape(self.tag)}[ \t]+([A-Za-z0-9_.:-]{{1,128}})[ \t]*>")

    def call(self, name: str, arguments: str) -> str:
        """A call as the model has to write it."""
        return f"{self.tag} {name}>\n{arguments}\n{self.close}"

    def result(self, name: str, content: str, *, is_error: bool) -> str:
        """A result as the model gets it; nothing in it can look like a tag."""
        mark = " error" if is_error else ""
        return f"<result-{self.key} {name}{mark}>\n{self.told(content)}\n</result-{self.key}>"

    def told(self, text: str) -> str:
        """`text` without anything that looks like a tag of this conversation: its bracket becomes another sign."""
        return self._tags.sub(lambda found: "‹" + found.group()[1:], text) if self.key in text else text

    @cached_property
    def _tags(self) -> re.Pattern[str]:
        return re.compile(rf"<(?=/?(?:call|result)-{re.escape(self.key)})")

    def read(self, text: str) -> Reading:
        """What a whole answer that ended properly holds."""
        start = self._block(text)
        if start is None:
            return Reading(len(text), (), self._meant(text))
        calls, at = list[TextCall](), start
        while at < len(text):
            found = self.opening.match(text, at)
            if found is None:
                fault: Fault = "tag" if text.startswith(self.tag, at) else "followed"
                return Reading(len(text), (), fault)
            call = self._closed(found[1], text, found.end())
            if call is None:
                return Reading(len(text), (), "unclosed")
            calls.append(call[0])
            at = _past_space(text, call[1])
        return Reading(_before_space(text, start), tuple(calls))

    def read_cut(self, text: str) -> Reading:
        """What an answer that was cut off holds: the names of its calls, whole ones and the last, and what it had."""
        start = self._block(text)
        if start is None:
            return Reading(len(text))
        calls, at = list[TextCall](), start
        while at < len(text) and text.startswith(self.tag[: len(text) - at], at):
            found = self.opening.match(text, at)
            if found is None:
                calls.append(TextCall(_UNNAMED, ""))
                break
            call = self._closed(found[1], text, found.end())
            if call is None:
                calls.append(TextCall(found[1], text[found.end() :].strip()))
                break
            calls.append(call[0])
            at = _past_space(text, call[1])
        return Reading(_before_space(text, start), tuple(calls))

    def _closed(self, name: str, text: str, at: int) -> tuple[TextCall, int] | None:
        """The call whose opening tag ends at `at`, and where its closing tag ends; None where it has none.

        A closing tag within a JSON string is part of the string. Where there is no JSON, the first one counts,
        and what stands before it is handed on as it is: whoever runs the call says what is wrong with it.
        """
        begin = _past_space(text, at)
        end = _json_end(text, begin)
        if end is not None:
            after = _past_space(text, end)
            if text.startswith(self.close, after):
                return TextCall(name, text[begin:end]), after + len(self.close)
        close = text.find(self.close, begin if end is None else end)
        if close < 0:
            return None
        return TextCall(name, text[begin:close].strip()), close + len(self.close)

    def _block(self, text: str) -> int | None:
        """Where the first tag stands that begins a line and is in no code fence, behind all that is only thought."""
        if self.tag not in text:
            return None
        fence, found, at = CodeFence(), None, 0
        while at < len(text):
            end = text.find("\n", at)
            line = text[at:] if end < 0 else text[at:end]
            start = len(line) - len(line.lstrip(" \t"))
            if ends_thought(line[-LINE:]):
                fence, found = CodeFence(), None
            elif found is not None:
                pass
            elif not fence.inside and start <= INDENT and line.startswith(self.tag, start):
                found = at + start
            else:
                fence.line(line)
            at += len(line) + 1
        return found

    def _meant(self, text: str) -> Fault | None:
        """Why a tag at the end of the answer is no call; None where none is, or one is only quoted."""
        at = text.rfind(self.tag)
        if at < 0:
            return None
        line = text.rfind("\n", 0, at) + 1
        fenced = not text[line:at].strip()
        close = text.find(self.close, at)
        if close < 0:
            return "fenced" if fenced else "inline"
        rest = text[close + len(self.close) :].strip()
        if rest.strip("`~.\"'*) \n"):
            return None
        return "fenced" if fenced else "inline"


class CodeFence:
    """Whether a line stands in a Markdown code fence."""

    def __init__(self) -> None:
        self._open = ""

    @property
    def inside(self) -> bool:
        """Whether the next line does."""
        return bool(self._open)

    def line(self, line: str) -> None:
        """Go on by one line, without its end."""
        found = _FENCE.match(line, 0, LINE)
        if found is None:
            return
        mark, rest = found[1], line[found.end() : LINE]
        if not self._open:
            self._open = "" if mark[0] == "`" and "`" in rest else mark
        elif mark.startswith(self._open) and not rest.strip():
            self._open = ""


def ends_thought(line: str) -> bool:
    """Whether the lines up to this one are thought that a server left in the text; with or without its beginning."""
    return line.rstrip().endswith("</think>")


def _before_space(text: str, end: int) -> int:
    """Where the white space before `end` begins; of more than `SPACE` characters, so many count."""
    begin = max(0, end - SPACE)
    return begin + len(text[begin:end].rstrip())


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse)


def _json_end(text: str, at: int) -> int | None:
    """Where the JSON value that begins at `at` ends; None where there is none."""
    try:
        return _JSON.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return None


class TextCallReader:
    """Passes stream events on: text as it comes, blocks as calls once the answer has ended."""

    def __init__(self, syntax: Syntax, correction: Callable[[Fault], str]) -> None:
        """`correction` says what a model is told that wrote a block wrongly."""
        self._syntax = syntax
        self._correction = correction
        self._parts: list[str] = []
        self._passed = 0
        """How many characters were passed on."""
        self._held = ""
        """What came behind them."""
        self._line = ""
        """The beginning of the line that has not ended."""
        self._tail = ""
        """And its latest end."""
        self._fence = CodeFence()
        self._block = False
        """Whether a tag has come that begins a block."""

    def feed(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """The events that may be passed on now."""
        if isinstance(event, TextDelta):
            if passed := self._text(event.text):
                yield TextDelta(passed)
        elif isinstance(event, Finish):
            yield from self._settled(event)
        else:
            yield event

    def _text(self, text: str) -> str:
        """What can be shown of the text so far, and was not."""
        self._parts.append(text)
        if self._block:
            return ""
        at = len(self._held)
        self._held += text
        begin = at
        while not self._block:
            end = self._held.find("\n", at)
            piece = self._held[at : None if end < 0 else end]
            self._line, self._tail = (self._line + piece)[:LINE], (self._tail + piece)[-LINE:]
            if self._tag() == "whole":
                self._block = True
            elif end < 0:
                break
            else:
                self._fence.line(self._line)
                if ends_thought(self._tail):
                    self._fence = CodeFence()
                self._line = self._tail = ""
                begin = at = end + 1
        # A line that is the beginning of a tag so far was held from its first character on.
        open_line = self._held.rfind("\n", 0, begin) + 1 if self._tag() else len(self._held)
        safe = _before_space(self._held, open_line)
        passed, self._held = self._held[:safe], self._held[safe:]
        self._passed += safe
        return passed

    def _tag(self) -> Literal["whole", "part"] | None:
        """Whether the line that has not ended begins with a tag, or may yet."""
        if self._fence.inside:
            return None
        tag, begun = self._syntax.tag, self._line.lstrip(" \t")
        if len(self._line) - len(begun) > INDENT:
            return None
        if begun.startswith(tag):
            return "whole"
        return "part" if begun and tag.startswith(begun) else None

    def _settled(self, finish: Finish) -> Iterator[StreamEvent]:
        whole = "".join(self._parts)
        done = finish.state == "done"
        reading = self._syntax.read(whole) if done else self._syntax.read_cut(whole)
        if rest := whole[self._passed : reading.end]:
            yield TextDelta(rest)
        for index, call in enumerate(reading.calls, _FIRST_INDEX):
            yield ToolCallDelta(index=index, name=call.name, arguments=call.arguments)
        if reading.fault is None:
            yield finish
        else:
            yield msgspec.structs.replace(
                finish, leaked_call=True, correction=self._correction(reading.fault)
            )
