"""Tool calls that a model writes as text, and the scraps of tags it leaves beside real ones.

A filter between a provider's decoder and everyone else. Text is passed on as it comes, except for
the end of it that may still turn out to be a tag; what that is, is settled when the stream ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

import msgspec

from leadline.core.llm.stream import Finish, StreamEvent, TextDelta, ToolCallDelta

_SCRAPS = frozenset("<>/| \t\r\n")


@dataclass(frozen=True, slots=True)
class LeakRules:
    """What counts as a leak; a provider's data."""

    tags: tuple[tuple[str, str], ...] = (("<tool_call>", "</tool_call>"),)
    """Pairs of opening and closing tags; a closing tag may be empty."""
    parse: bool = False
    """Whether a leaked call becomes a real one."""
    tools: frozenset[str] = frozenset()
    """Names of the tools on offer; without any, text passes untouched."""


class LeakFilter:
    """Passes stream events on, holding back text that may be a tag of a tool call."""

    def __init__(self, rules: LeakRules) -> None:
        self._rules = rules
        self._marks = _marks_of(rules.tags)
        self._starts = _starts_of(self._marks)
        self._held = ""
        self._calls = False
        self._bare: list[str] | None = []
        """The whole text so far while it may be one bare call; None once it cannot be."""
        self._opened = False
        """Whether that text has begun, and so with a brace."""

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """The events that may be passed on now."""
        if not self._rules.tools or not self._marks:
            return [event]
        if isinstance(event, TextDelta):
            return self._text(event.text)
        if isinstance(event, ToolCallDelta) and not self._calls:
            self._calls = True
            return [*_texts(self._without_residue()), event]
        return [*self._settle(event)] if isinstance(event, Finish) else [event]

    def _text(self, text: str) -> list[StreamEvent]:
        self._held += text
        if self._bare is not None:
            self._bare.append(text)
            if not self._opened and (begun := text.lstrip()):
                self._opened = begun.startswith("{")
                self._bare = self._bare if self._opened else None
        if self._calls:
            return []
        safe = self._safe()
        passed, self._held = self._held[:safe], self._held[safe:]
        return [TextDelta(passed)] if passed else []

    def _safe(self) -> int:
        """How much of the held text can be neither a leak nor a scrap."""
        held = self._held
        if self._starts.isdisjoint(held):
            return _before_scraps(held, len(held))
        for opening, _ in self._rules.tags:
            at = held.find(opening)
            while at >= 0:
                after = held[at + len(opening) :].lstrip()
                if not after or after[0] in "{[<" or opening.endswith("="):
                    return _before_scraps(held, at)
                at = held.find(opening, at + 1)
        end = len(held) - self._partial(held)
        while end:
            mark = next((mark for mark in self._marks if held.endswith(mark, 0, end)), None)
            if mark is None and held[end - 1] not in _SCRAPS:
                break
            end -= len(mark or " ")
        return end

    @cached_property
    def _runs(self) -> re.Pattern[str]:
        """Runs of marks and scraps. Made when needed: most streams hold no tag."""
        marks = "|".join(map(re.escape, self._marks))
        return re.compile(rf"(?:{marks}|[<>/|\s])+")

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(mark[:size] for mark in self._marks for size in range(1, len(mark)))

    def _partial(self, text: str) -> int:
        """Length of the longest end of ``text`` that a mark begins with."""
        longest = len(self._marks[0]) - 1
        ends = (text[at:] for at in range(max(0, len(text) - longest), len(text)) if text[at] in self._starts)
        return max((len(end) for end in ends if end in self._prefixes), default=0)

    def _without_residue(self) -> str:
        """The held text without the tags that stand beside real calls."""
        held, self._held = self._held, ""
        if self._starts.isdisjoint(held):
            return held
        leak = _find_leak(held, self._rules)
        if leak is not None:
            held = held[: leak.start]
        if not any(mark in held for mark in self._marks) and not self._partial(held) > 1:
            return held
        cut = held[: len(held) - self._partial(held)]

        def kept(run: re.Match[str]) -> str:
            if not any(mark in run.group() for mark in self._marks):
                return run.group()
            return " " if run.start() and run.end() < len(cut) else ""

        rest = self._runs.sub(kept, cut)
        return "" if _only_scraps(rest) else rest

    def _settle(self, finish: Finish) -> Iterable[StreamEvent]:
        if self._calls:
            rest = self._without_residue()
            yield from _texts("" if _only_scraps(rest) else rest)
            yield finish
            return
        held, self._held = self._held, ""
        leak = _find_leak(held, self._rules) if finish.state == "done" else None
        if leak is None:
            yield from _texts(held)
            bare = (
                finish.state == "done"
                and self._bare is not None
                and _is_bare("".join(self._bare), self._rules)
            )
            yield msgspec.structs.replace(finish, leaked_call=True) if bare else finish
        elif self._rules.parse and leak.calls:
            yield from _texts(held[: leak.start])
            for index, (name, arguments) in enumerate(leak.calls):
                yield ToolCallDelta(index=index, name=name, arguments=arguments)
            yield finish
        else:
            yield from _texts(held)
            yield msgspec.structs.replace(finish, leaked_call=True)


@lru_cache(maxsize=16)
def _marks_of(tags: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Every tag once, the longest first."""
    return tuple(sorted({tag for pair in tags for tag in pair if tag}, key=len, reverse=True))


@lru_cache(maxsize=16)
def _starts_of(marks: tuple[str, ...]) -> frozenset[str]:
    return frozenset(mark[0] for mark in marks)


@dataclass(frozen=True, slots=True)
class _Leak:
    start: int
    calls: tuple[tuple[str, str], ...]
    """Names and arguments; empty where the text is not strict JSON."""


def _find_leak(text: str, rules: LeakRules) -> _Leak | None:
    """The leaked calls at the end of ``text``."""
    starts = [at for opening, _ in rules.tags if (at := text.find(opening)) >= 0]
    if not starts:
        return None
    start = min(starts)
    rest, calls = text[start:], list[tuple[str, str]]()
    while pair := next((pair for pair in rules.tags if rest.startswith(pair[0])), None):
        rest = rest[len(pair[0]) :].lstrip()
        try:
            value, end = _JSON.raw_decode(rest)
        except (ValueError, RecursionError):
            return _Leak(start, ()) if _names_a_tool(pair[0][-1] + rest, pair[1], rules) else None
        found = _calls_in(value, rules)
        if found is None:
            return None
        calls += found
        rest = rest[end:].lstrip().removeprefix(pair[1]).lstrip()
    return _Leak(_before_scraps(text, start), tuple(calls)) if calls and _only_scraps(rest) else None


def _names_a_tool(text: str, closing: str, rules: LeakRules) -> bool:
    """Whether ``text`` is a call that is not JSON, up to its end."""
    body, _, rest = text.partition(closing) if closing else (text, "", "")
    names = any(re.search(rf"[\"'=>｜.]\s*{re.escape(tool)}\b", body) for tool in rules.tools)
    return names and _only_scraps(rest)


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


_JSON = json.JSONDecoder(parse_constant=_refuse)


def _calls_in(value: object, rules: LeakRules) -> list[tuple[str, str]] | None:
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    calls = [_call(item, rules) for item in items]
    return [call for call in calls if call is not None] if calls and None not in calls else None


def _call(value: object, rules: LeakRules) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    members = cast("Mapping[str, object]", value)
    name = members.get("name")
    if not isinstance(name, str) or name not in rules.tools:
        return None
    arguments = members.get("arguments", members.get("parameters", {}))
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _is_bare(text: str, rules: LeakRules) -> bool:
    """Whether the whole answer is one call written as a JSON object, and nothing else."""
    try:
        value = cast("object", _JSON.decode(text))
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    members = cast("Mapping[str, object]", value)
    wanted = set(members) in ({"name", "arguments"}, {"name", "parameters"})
    return wanted and _call(members, rules) is not None


def _before_scraps(text: str, end: int) -> int:
    while end and text[end - 1] in _SCRAPS:
        end -= 1
    return end


def _only_scraps(text: str) -> bool:
    return all(char in _SCRAPS for char in text)


def _texts(text: str) -> Iterable[TextDelta]:
    if text:
        yield TextDelta(text)
