"""`leadline usage`: what a run or a session paid for, with all that it started, by purpose and model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from leadline.apps.cli.exits import Exit
from leadline.apps.cli.running import from_store
from leadline.apps.cli.streams import document, say
from leadline.apps.cli.widths import Column, table, terminal_columns
from leadline.core.spend.money import dollars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.apps.cli.parser import Given
    from leadline.apps.sdk.app import Leadline
    from leadline.core.session.spending import Spending

_NOT_REPORTED = "not reported"


def run_usage(given: Given) -> Exit:
    """Print a row for each purpose and model, and their sum. Works also while somebody writes the logs.

    Raises:
        Quit: there is no such session.
    """

    async def work(app: Leadline) -> tuple[str, tuple[Spending, ...]]:
        found = await app.sessions.resolve(given.id)
        return found, await app.sessions.usage(found, children=not given.own)

    found, rows = from_store(work)
    if given.as_json:
        document(
            msgspec.json.encode({"id": found, **_plain(_total(rows)), "by": [_plain(row) for row in rows]})
        )
    elif rows:
        document(_table(rows))
    else:
        say(f"leadline: nothing was paid for in {found}")
    _tell_unknown(rows)
    return Exit.DONE


def _total(rows: Sequence[Spending]) -> Spending:
    from leadline.core.session.spending import total

    return total(rows)


def _plain(row: Spending) -> dict[str, object]:
    """One row as an object; what is not known is absent, and never 0."""
    names = {"purpose": row.purpose, "model": row.what} if row.what else {}
    cost = row.paid
    known = {"cost": dollars(cost.known)} if cost.complete else {}
    if not cost.complete and cost.known:
        known = {"cost_at_least": dollars(cost.known)}
    counts = {"unpriced": row.unpriced, "unanswered": row.unanswered, "estimated_tokens": row.estimated}
    return {
        **names,
        "calls": row.calls,
        "tokens": msgspec.to_builtins(row.tokens),
        **known,
        **({"currency": "USD"} if known else {}),
        **{name: count for name, count in counts.items() if count},
    }


def _table(rows: Sequence[Spending]) -> str:
    shown = [*rows, _total(rows)] if len(rows) > 1 else [*rows]
    tokens = [row.tokens for row in shown]
    return table(
        [
            Column("PURPOSE", [row.purpose or "total" for row in shown]),
            Column("CALLS", [f"{row.calls:,}" for row in shown], right=True),
            Column("INPUT", [_count(one.input) for one in tokens], right=True, drop=1),
            Column("CACHED", [_count(one.cached_input) for one in tokens], right=True, drop=3),
            Column("WRITTEN", [_count(one.cache_write) for one in tokens], right=True, drop=4),
            Column("OUTPUT", [_count(one.output) for one in tokens], right=True, drop=1),
            Column("REASONING", [_count(one.reasoning) for one in tokens], right=True, drop=4),
            Column("COST", [str(row.paid) for row in shown], right=True),
            Column("MODEL", [row.what for row in shown]),
        ],
        terminal_columns(),
    )


def _count(tokens: int | None) -> str:
    return "" if tokens is None else f"{tokens:,}"


def _tell_unknown(rows: Sequence[Spending]) -> None:
    for row in rows:
        if row.unanswered:
            say(
                f"leadline: {_calls(row.unanswered)} of {row.what} for {row.purpose} may have been billed: "
                "how they ended is not in the log"
            )
        unpriced = row.unpriced - row.unanswered
        if unpriced > 0 and row.tokens.reported:
            say(
                f"leadline: what {_calls(unpriced)} of {row.what} cost is not known; to say it for those to come: "
                f"leadline models price {row.what} --input DOLLARS --output DOLLARS"
            )
        elif unpriced > 0:
            say(f"leadline: what {_calls(unpriced)} of {row.what} for {row.purpose} used was {_NOT_REPORTED}")


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count:,} calls"
