"""`leadline sessions list|search|fork|rename` and `leadline runs list`: find what is stored, and go on from it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from leadline.apps.cli.exits import Exit, Quit
from leadline.apps.cli.running import from_store
from leadline.apps.cli.streams import document, say, visible
from leadline.apps.cli.widths import Column, columns_of, shortened, table, terminal_columns
from leadline.core.clock import Clock
from leadline.core.session.events import TurnEnd
from leadline.core.spend.money import money, shown

if TYPE_CHECKING:
    from leadline.apps.cli.parser import Given
    from leadline.apps.sdk.app import Leadline
    from leadline.apps.sdk.sessions import SessionFilters
    from leadline.capabilities.session_index.seam import Hit, Page, Summary

_PAGE = 50
_HITS = 20
_INDENT = "    "


def run_list(given: Given, *, runs: bool) -> Exit:
    """Print one page of the list of sessions, or of runs.

    Raises:
        Quit: a filter, the limit or the cursor makes no sense.
    """
    page = from_store(lambda app: _listed(app, given, runs=runs))
    if given.as_json:
        document(msgspec.json.encode([msgspec.to_builtins(one) for one in page.items]))
    elif page.items:
        document(_table(page.items, runs=runs, children=not runs and given.children))
    else:
        say(f"leadline: {_nothing(given, runs=runs)}")
    _tell_rest(page)
    return Exit.DONE


def _nothing(given: Given, *, runs: bool) -> str:
    asked = [given.status or None, given.since, given.until, given.title_has, given.words_in]
    asked += [given.corpus_has, given.model, given.min_cost, given.max_cost, given.cursor]
    if not runs:
        asked += [given.kind, given.parent]
    if any(one is not None for one in asked):
        return "nothing that is stored is like that"
    what = "run" if runs else "session or run"
    return f'no {what} is stored yet; begin with: leadline research "your question" --corpus FOLDER'


async def _listed(app: Leadline, given: Given, *, runs: bool) -> Page[Summary]:
    now = app.ctx.get(Clock).now()
    filters: SessionFilters = {
        "kind": "research" if runs else given.kind,
        "status": given.status,
        "since": given.since.iso(now) if given.since else None,
        "until": given.until.iso(now) if given.until else None,
        "title": given.title_has,
        "corpus": given.corpus_has,
        "model": given.model,
        "min_cost": given.min_cost,
        "max_cost": given.max_cost,
        "text": given.words_in,
        "parent": None if runs else given.parent,
        "roots_only": not (runs or given.children),
        "limit": _PAGE if given.limit is None else given.limit,
        "cursor": given.cursor,
    }
    return await app.sessions.list(**filters)


def _table(found: Sequence[Summary], *, runs: bool, children: bool) -> str:
    columns = [
        Column("ID", [one.id for one in found]),
        Column("STATUS", [one.status for one in found]),
        Column("CREATED", [_minute(one.created_at) for one in found], drop=2),
        Column("CALLS", [str(one.calls) if one.calls else "" for one in found], right=True, drop=4),
        Column("COST", [_cost(one) for one in found], right=True, drop=3),
    ]
    if children:
        columns.insert(1, Column("PARENT", [one.parent or "" for one in found], drop=1))
    if runs:
        columns.append(Column("CORPUS", [shortened(", ".join(one.corpora), 24) for one in found], drop=5))
    else:
        columns.insert(1, Column("KIND", [one.kind for one in found], drop=3))
    return table([*columns, Column("TITLE", [_title(one) for one in found])], terminal_columns())


def _title(one: Summary) -> str:
    shown = one.title or one.question or one.reason
    return f"fork: {shown}" if one.parent and not one.depth else shown


def _minute(iso: str) -> str:
    return iso[:16].replace("T", " ")


def _cost(one: Summary) -> str:
    if one.cost is None:
        return "" if one.cost_at_least is None else f"≥ {shown(money(one.cost_at_least))}"
    return shown(money(one.cost)) if one.currency in (None, "USD") else f"{one.cost:.4g} {one.currency}"


def _tell_rest(page: Page[Summary] | Page[Hit]) -> None:
    if page.cursor:
        say(f"leadline: there is more; the next page: --cursor {page.cursor}")


def run_search(given: Given) -> Exit:
    """Print the sessions in which words stand, each with the place.

    Raises:
        Quit: there is no word, or the limit or the cursor makes no sense.
    """
    words = " ".join(given.words)
    limit = _HITS if given.limit is None else given.limit
    page = from_store(
        lambda app: app.sessions.search(words, kind=given.kind, limit=limit, cursor=given.cursor)
    )
    if given.as_json:
        document(msgspec.json.encode([_plain(hit) for hit in page.items]))
    elif page.items:
        document(_found(page.items))
    else:
        say(f"leadline: nothing that is stored holds {words!r}")
    _tell_rest(page)
    return Exit.DONE


def _plain(hit: Hit) -> Mapping[str, object]:
    """A hit as one object: the session with, beside its own fields, where in it the words stand."""
    found = {"session": hit.session, "place": hit.place, "snippet": hit.snippet, "marks": hit.marks}
    return {**msgspec.to_builtins(hit.summary), **found}


def _found(hits: Sequence[Hit]) -> str:
    summaries = [hit.summary for hit in hits]
    width = terminal_columns()
    head, *lines = table(
        [
            Column("ID", [one.id for one in summaries]),
            Column("KIND", [one.kind for one in summaries], drop=2),
            Column("CREATED", [_minute(one.created_at) for one in summaries], drop=1),
            Column("TITLE", [_title(one) for one in summaries]),
        ],
        width,
    ).split("\n")
    told = [head]
    for hit, line in zip(hits, lines, strict=True):
        told += [line, _INDENT + _snippet(hit, None if width is None else width - len(_INDENT))]
    return "\n".join(told)


def _snippet(hit: Hit, width: int | None) -> str:
    """What stands around the words; on a terminal they are shown bold."""
    inside = f" of {hit.session}" if hit.session != hit.summary.id else ""
    lead = f"{hit.place}{inside}: "
    text = hit.snippet
    if width is not None and columns_of(lead) + columns_of(visible(text)) > width:
        text = shortened(text, max(1, width - columns_of(lead)))
    if not sys.stdout.isatty():
        return lead + visible(text)
    parts, at = [lead], 0
    for start, end in hit.marks:
        parts += [visible(text[at:start]), "\x1b[1m", visible(text[start:end]), "\x1b[0m"]
        at = end
    return "".join([*parts, visible(text[at:])])


def run_fork(given: Given) -> Exit:
    """Print the id of a new session that has the turns of another.

    Raises:
        Quit: there is no such session or turn, or it is a run.
    """

    async def work(app: Leadline) -> tuple[str, str, int]:
        source = await app.sessions.resolve(given.id)
        made = await app.sessions.fork(source, turn=given.turn, title=given.title_to)
        turns = [end.turn for end in (await app.sessions.read(made)).of(TurnEnd)]
        return source, made, max(turns, default=0)

    source, made, turns = from_store(work)
    if given.as_json:
        document(msgspec.json.encode({"id": made, "forked_from": source, "turns": turns}))
    else:
        document(made)
        say(f"forked from {source} after turn {turns}; go on with: leadline resume {made} TASK")
    return Exit.DONE


def run_rename(given: Given) -> Exit:
    """Give a session a title.

    Raises:
        Quit: there is no such session, somebody writes it now, or the title is blank.
    """
    title = " ".join(given.words)
    if not title.strip():
        raise Quit(Exit.USAGE, "title: it is blank. Say what to call the session.")
    renamed = from_store(lambda app: app.sessions.rename(given.id, title))
    if given.as_json:
        document(msgspec.json.encode(msgspec.to_builtins(renamed)))
    else:
        say(f"{renamed.id} is called “{renamed.title}” now")
    return Exit.DONE
