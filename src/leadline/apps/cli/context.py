"""`leadline context`: what fills the window of the next request, as a table and a bar; and making room in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, refusing
from leadline.apps.cli.running import booted
from leadline.apps.cli.streams import document, say, visible
from leadline.apps.cli.widths import Column, shortened, table, terminal_columns
from leadline.apps.sdk.app import Leadline
from leadline.apps.sdk.windows import WindowView
from leadline.core.session.events import WindowChanged
from leadline.window.breakdown import Breakdown, Change, Part

_MARKS = "█▓▒░#=+*%@"
"""One for each part in the bar and in the table; the last for all others."""
_FREE = "·"
_BAR = 60
"""Columns of the bar where there is no terminal."""
_LISTED = 12
"""Most things to recall, and changes, that are listed for a person."""


@dataclass(frozen=True, kw_only=True)
class ContextCommand:
    """The command as it was typed; an option that was left out is None."""

    id: str
    as_json: bool
    compact: bool
    undo: int | None
    """A negative one: the latest change."""
    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


def run_context(command: ContextCommand) -> Exit:
    """Print what fills the window, after changing it where that was asked for.

    Raises:
        Quit: there is no session of that id, it cannot be changed, or the composition cannot be used.
    """
    view = anyio.run(_viewed, command)
    for one in (view.own, *view.below):
        for problem in one.problems:
            say(f"leadline: {one.id}: {problem}")
    if command.as_json:
        document(msgspec.json.encode({**_plain(view.own), "below": [_plain(one) for one in view.below]}))
    else:
        document(visible(_told(view, terminal_columns())))
    return Exit.DONE


async def _viewed(command: ContextCommand) -> WindowView:
    app = Leadline(
        profile=command.profile or "research",
        patches=command.patches,
        model=command.model,
        base_url=command.base_url,
    )
    async with booted(app):
        with refusing():
            session_id = await app.sessions.resolve(command.id)
        if command.undo is not None:
            with refusing():
                changed = await app.undo_compaction(session_id, command.undo if command.undo >= 0 else None)
            _tell("undone", changed)
        if command.compact:
            _tell("compacted", await app.compact(session_id))
        with refusing():
            return await app.context(session_id)


def _tell(what: str, changed: WindowChanged) -> None:
    say(f"leadline: {what}: from about {changed.before:,} to about {changed.after:,} tokens")


# --- as JSON ---


def _plain(one: Breakdown) -> dict[str, object]:
    return {
        **msgspec.to_builtins(one),
        "share": _share(one.tokens, one.window),
        "compactions": one.compactions,
    }


def _share(tokens: int, window: int | None) -> float | None:
    return round(tokens / window, 4) if window else None


# --- for a person ---


def _told(view: WindowView, width: int | None) -> str:
    own = view.own
    lines = [_head(own, width)]
    if not own.model and view.below:
        lines.append("It makes no requests itself; these do:")
    else:
        lines += _body(own, width)
    for one in view.below:
        lines += ["", _head(one, width), *_body(one, width)]
    return "\n".join(lines)


def _head(one: Breakdown, width: int | None) -> str:
    line = " ".join(f"{one.id} {one.kind} {one.label}".split())
    return line if width is None else shortened(line, width)


def _body(one: Breakdown, width: int | None) -> list[str]:
    lines = [_sum(one), _reported(one)]
    if one.parts:
        lines += ["", _bar(one, width), "", _table(one, width)]
    if one.waiting.messages:
        lines += [
            "",
            f"{_counted(one.waiting.messages, 'prompt')} in the inbox come on top: {one.waiting.tokens:,} tokens",
        ]
    lines += _changes(one.changes)
    lines += _recallable(one)
    return [
        line if width is None or "\n" in line else shortened(line, width)
        for line in lines
        if line is not None
    ]


def _sum(one: Breakdown) -> str:
    if not one.model:
        return "no request was made yet"
    if one.window is None and one.model.partition("/")[0] == "extractive":
        return f"{one.model}: about {one.tokens:,} tokens; it takes any number"
    if one.window is None:
        return (
            f"{one.model}: about {one.tokens:,} tokens; how many it takes is not known "
            f"(leadline models add {one.model} --context-window N)"
        )
    share = f"{100 * one.tokens / one.window:.0f} %"
    over = f", {one.tokens - one.window:,} too many" if one.tokens > one.window else ""
    return f"{one.model}: about {one.tokens:,} of {one.window:,} tokens ({share}{over})"


def _reported(one: Breakdown) -> str | None:
    if one.reported is None:
        return "the provider reported no size of a prompt" if one.model else None
    estimate = f", estimated at {one.estimated:,}" if one.estimated is not None else ""
    return f"the latest prompt had {one.reported:,} tokens as reported{estimate}"


def _mark(at: int) -> str:
    return _MARKS[min(at, len(_MARKS) - 1)]


def _bar(one: Breakdown, width: int | None) -> str:
    """A row of marks, each part as long as its share of the window, or of the whole where that is not known."""
    columns = (_BAR if width is None else min(width, 100)) - 2
    whole = max(one.tokens, one.window or 0, 1)
    ends = [0]
    total = 0
    for part in one.parts:
        total += part.tokens
        ends.append(round(columns * total / whole))
    filled = "".join(_mark(at) * (end - start) for at, (start, end) in enumerate(pairwise(ends)))
    return f"[{filled}{_FREE * (columns - len(filled))}]"


def _table(one: Breakdown, width: int | None) -> str:
    rows: list[tuple[str, Part]] = [(_mark(at), part) for at, part in enumerate(one.parts)]
    if one.window is not None and one.window > one.tokens:
        rows.append((_FREE, Part("free", one.window - one.tokens)))
    base = one.window or one.tokens or 1
    return table(
        [
            Column("", [mark for mark, _ in rows]),
            Column("TOKENS", [f"{part.tokens:,}" for _, part in rows], right=True),
            Column("SHARE", [f"{100 * part.tokens / base:.1f} %" for _, part in rows], right=True, drop=1),
            Column("MESSAGES", [str(part.messages or "") for _, part in rows], right=True, drop=2),
            Column("PART", [part.what for _, part in rows]),
        ],
        width,
    )


def _changes(changes: Sequence[Change]) -> list[str]:
    made = [one for one in changes if one.cause != "undo"]
    if not made:
        return []
    standing = [one for one in made if one.stands]
    compactions = sum(one.cause == "compact" for one in standing)
    lines = [
        "",
        f"made smaller {_counted(len(standing), 'time')}, by a summary {_counted(compactions, 'time')}:",
    ]
    if len(made) > _LISTED:
        lines.append(f"  the latest {_LISTED}; --json has all")
    for one in made[-_LISTED:]:
        state = "" if one.stands else ", undone"
        lines.append(f"  event {one.seq}: {one.cause}, from {one.before:,} to {one.after:,} tokens{state}")
    return lines


def _recallable(one: Breakdown) -> list[str]:
    found = one.recallable
    if not found:
        return []
    lines = ["", f"the model can recall {_counted(len(found), 'thing')} that it does not see, or not whole:"]
    lines += [f"  {item.id}: {item.what}" for item in found[-_LISTED:]]
    if len(found) > _LISTED:
        lines.insert(2, f"  the latest {_LISTED}; --json has all")
    return lines


def _counted(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"
