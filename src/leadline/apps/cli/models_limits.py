"""`leadline models limits`: how many calls a model may be asked for, as configured and as learned; and setting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, Quit, refusing
from leadline.apps.cli.running import booted
from leadline.apps.cli.streams import document, say
from leadline.apps.sdk.app import Leadline
from leadline.apps.sdk.models_file import ModelsFile
from leadline.core.llm.limits import Bucket, RateLimits
from leadline.core.spend.shared import SharedLines, SharedLinesUnusable, SharedState

if TYPE_CHECKING:
    from leadline.apps.cli.parser import Given
    from leadline.core.spend.limiter_config import LineConfig

Table = dict[str, object]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list."""

    model: str
    """`provider/name`, or `provider/*` where a row stands for all of a provider."""
    max: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    active: int = 0
    """Calls that processes of this home have under way."""
    waiting: int = 0
    """Processes that wait for others."""
    requests: int = 0
    """Calls of the last minute."""
    tokens: int = 0
    """Tokens of the last minute."""
    paused_s: float | None = None
    ceiling: int | None = None
    """Calls that may be under way at once, as learned from refusals."""
    learned: RateLimits | None = None
    """What the provider said last; the seconds until reset count from now."""
    learned_ago_s: float | None = None


def run_limits(given: Given) -> Exit:
    """Write down the limits of a model, take that back, or tell what holds.

    Raises:
        Quit: what was said makes no limit, or the composition cannot be used; nothing was written.
    """
    said = _said(given)
    if given.model_id is not None and (said or given.unset):
        with refusing():
            _write(given.model_id, said)
    elif said or given.unset:
        raise Quit(Exit.USAGE, "name the model whose limits are meant: leadline models limits PROVIDER/NAME")
    rows, problem = anyio.run(_known, tuple(given.patch), given.model_id)
    if given.as_json:
        document(msgspec.json.encode(rows))
    elif rows:
        document(_table(rows))
    else:
        what = given.model_id or "any model"
        say(
            f"leadline: nothing limits {what}, and nothing was learned; "
            "to set a limit: leadline models limits PROVIDER/NAME --max N"
        )
    if problem:
        say(f"leadline: {problem}")
    return Exit.DONE


def _said(given: Given) -> Table:
    numbers = {
        "max": given.most_at_once,
        "requests_per_minute": given.requests_per_minute,
        "tokens_per_minute": given.tokens_per_minute,
    }
    said: Table = {name: number for name, number in numbers.items() if number is not None}
    if said and given.unset:
        raise Quit(Exit.USAGE, "--unset stands alone: it takes back what was said before")
    return said


def _write(model: str, said: Table) -> None:
    """Put `said` in the place of what was written down for `model`; without anything, take that back."""
    file = ModelsFile.of()
    config = file.read("limiter")
    rows = tuple(cast("Sequence[Mapping[str, object]]", config.get("limits") or ()))
    others = [row for row in rows if row.get("model") != model]
    if not said and len(others) == len(rows):
        raise Quit(Exit.USAGE, f"no limit was written down for {model!r}; see: leadline models limits")
    limits = [*others, {"model": model, **said}] if said else others
    file.write({**config, "limits": limits} if limits else {}, "limiter")


async def _known(patches: tuple[Path, ...], only: str | None) -> tuple[list[Limits], str]:
    """The lines of the list, or those of one model; and why what processes share cannot be told."""
    from leadline.core.spend.limiter import Limiter

    async with booted(Leadline(profile="headless", patches=patches)) as app:
        limiter, shared = app.ctx.find(Limiter), app.ctx.find(SharedLines)
        configured = {row.model: row for row in limiter.limits} if limiter is not None else {}
        states: Sequence[SharedState] = ()
        problem = ""
        try:
            states = shared.states() if shared is not None else ()
        except SharedLinesUnusable as error:
            problem = str(error)
    by_model = {state.model: state for state in states}
    models = sorted({*configured, *by_model}) if only is None else [only]
    rows = [
        _row(model, configured.get(model) or configured.get(_all_of(model)), by_model.get(model))
        for model in models
    ]
    return [row for row in rows if row != Limits(model=row.model)], problem


def _all_of(model: str) -> str:
    return f"{model.partition('/')[0]}/*"


def _row(model: str, row: LineConfig | None, state: SharedState | None) -> Limits:
    limits = Limits(
        model=model,
        max=row.max if row else None,
        requests_per_minute=row.requests_per_minute if row else None,
        tokens_per_minute=row.tokens_per_minute if row else None,
    )
    if state is None:
        return limits
    return msgspec.structs.replace(
        limits,
        active=state.active,
        waiting=state.waiting,
        requests=state.requests,
        tokens=state.tokens,
        paused_s=state.paused_s,
        ceiling=state.ceiling,
        learned=state.learned,
        learned_ago_s=state.learned_ago_s,
    )


def _table(rows: Sequence[Limits]) -> str:
    from leadline.apps.cli.widths import Column, table, terminal_columns

    return table(
        [
            Column("MODEL", [row.model for row in rows]),
            Column("AT ONCE", [_of(row.active, row.max) for row in rows], right=True),
            Column("CALLS/MIN", [_of(row.requests, row.requests_per_minute) for row in rows], right=True),
            Column("TOKENS/MIN", [_of(row.tokens, row.tokens_per_minute) for row in rows], right=True),
            Column("LEARNED", [_learned(row) for row in rows], drop=1),
        ],
        terminal_columns(),
    )


def _of(used: int, limit: int | None) -> str:
    return f"{used:,} of {limit:,}" if limit is not None else f"{used:,}"


def _learned(row: Limits) -> str:
    from leadline.core.llm.retry import duration

    said: list[str] = []
    if row.paused_s is not None:
        said.append(f"paused for {duration(row.paused_s)}")
    if row.ceiling is not None:
        said.append(f"{row.ceiling} at once after refusals")
    if row.learned is not None and row.learned_ago_s is not None:
        said += [
            f"{_left(bucket)} {what}, {duration(row.learned_ago_s)} ago"
            for what, bucket in (("calls", row.learned.requests), ("tokens", row.learned.tokens))
            if bucket is not None
        ]
    return "; ".join(said)


def _left(bucket: Bucket) -> str:
    if bucket.remaining is None:
        return f"limit of {bucket.limit:,}" if bucket.limit is not None else "some"
    return f"{bucket.remaining:,} left" + (f" of {bucket.limit:,}" if bucket.limit is not None else "")
