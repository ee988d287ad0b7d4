"""`leadline models list|test`: which models can be used here, what is missing, and whether one answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, refusing
from leadline.apps.cli.running import booted
from leadline.apps.cli.streams import document, say
from leadline.apps.sdk.app import AgentReply, Leadline
from leadline.capabilities.models.seam import Found, ModelCatalogue, ProviderFacts
from leadline.core.llm.adapter import ModelInfo, Models
from leadline.core.llm.failure import Wait
from leadline.core.llm.request import ModelRef

if TYPE_CHECKING:
    from leadline.apps.cli.parser import Given

PROBE_S = 1.5
"""How long a server of this machine has to answer."""

_TEST_S = 60.0
_TASK = "Call the tool `confirm` once with the word ready. Then answer with the one word OK."


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list."""

    model: str
    """`provider/name`."""
    provider: str
    profile: str | None
    key: str
    """Where the key comes from: `configuration`, `environment`, `keyring`, `file`, `missing` or `none` (none needed)."""
    usable: bool
    default: bool
    roles: tuple[str, ...]
    source: str
    """`embedded`, `added`, `shipped` or `discovered`."""
    context_window: int | None = None
    max_output: int | None = None
    tools: bool = True
    origin: str = ""
    """Where the facts about it come from."""
    tried: str | None = None
    """Date on which its profile was tried live; null: constructed from what the provider publishes."""


@dataclass(frozen=True)
class _Known:
    rows: tuple[Listed, ...]
    providers: tuple[ProviderFacts, ...]
    found: tuple[Found, ...]


def run_list(given: Given) -> Exit:
    """Print the models that can be used.

    Raises:
        Quit: the composition cannot be used.
    """
    known = anyio.run(_known, tuple(given.patch), given.discover)
    rows = [row for row in known.rows if row.usable or row.default or row.roles or given.all_of_them]
    if given.as_json:
        document(msgspec.json.encode(rows))
    else:
        document(_table(rows))
        _tell_rest(known, rows)
    return Exit.DONE


async def _known(patches: tuple[Path, ...], discover: bool) -> _Known:
    async with booted(Leadline(profile="headless", patches=patches)) as app:
        models, catalogue = app.ctx.get(Models), app.ctx.find(ModelCatalogue)
        with refusing():
            named = [catalogue.provider(name) for name in catalogue.names] if catalogue else []
            providers = tuple(one for one in named if one is not None)
            found = tuple(await catalogue.discover(PROBE_S)) if catalogue and discover else ()
            rows = _rows(models, providers, found)
        return _Known(tuple(rows), providers, found)


def _rows(models: Models, providers: Sequence[ProviderFacts], found: Sequence[Found]) -> list[Listed]:
    used = _used(models)
    rows: dict[str, Listed] = {}
    for one in providers:
        for info in one.models:
            source = "added" if info.model in one.added else "shipped"
            rows[f"{one.name}/{info.model}"] = _row(one, info, source, used)
    by_name = {one.name: one for one in providers}
    for server in found:
        for model in server.models:
            key = f"{server.provider}/{model}"
            if key not in rows:
                info = models.adapter(server.provider).info(model)
                rows[key] = _row(by_name[server.provider], info, "discovered", used)
    for key in used:
        if key not in rows:
            ref = ModelRef.parse(key)
            info = models.adapter(ref.provider).info(ref.model)
            facts = by_name.get(ref.provider)
            rows[key] = _row(facts, info, "added", used) if facts else _embedded(key, info, used)
    for name in models.providers:
        if name not in by_name and not any(row.provider == name for row in rows.values()):
            rows[f"{name}/{name}"] = _embedded(f"{name}/{name}", models.adapter(name).info(name), used)
    order = {"embedded": 0, "added": 1, "discovered": 2, "shipped": 3}
    return sorted(rows.values(), key=lambda row: (not row.default, order[row.source], row.model))


def _used(models: Models) -> dict[str, list[str]]:
    """Model to what it is used for."""
    used: dict[str, list[str]] = {str(models.default): ["default"]}
    for role, ref in models.roles.items():
        used.setdefault(str(ref), []).append(role)
    return used


def _row(facts: ProviderFacts, info: ModelInfo, source: str, used: dict[str, list[str]]) -> Listed:
    name = f"{facts.name}/{info.model}"
    uses = used.get(name, [])
    return Listed(
        model=name,
        provider=facts.name,
        profile=facts.profile,
        key=facts.key.source,
        usable=facts.usable,
        default="default" in uses,
        roles=tuple(use for use in uses if use != "default"),
        source=source,
        context_window=info.context_window,
        max_output=info.max_output,
        tools=info.tools,
        origin=info.origin,
        tried=facts.tried,
    )


def _embedded(name: str, info: ModelInfo, used: dict[str, list[str]]) -> Listed:
    uses = used.get(name, [])
    return Listed(
        model=name,
        provider=name.partition("/")[0],
        profile=None,
        key="none",
        usable=True,
        default="default" in uses,
        roles=tuple(use for use in uses if use != "default"),
        source="embedded",
        context_window=info.context_window,
        max_output=info.max_output,
        tools=info.tools,
        origin=info.origin,
    )


def _table(rows: Sequence[Listed]) -> str:
    from leadline.apps.cli.widths import Column, table, terminal_columns

    uses = [", ".join((["default"] if row.default else []) + list(row.roles)) for row in rows]
    return table(
        [
            Column("MODEL", [row.model for row in rows]),
            Column("USED FOR", uses),
            Column("KEY", [row.key for row in rows]),
            Column("WINDOW", [str(row.context_window or "") for row in rows], right=True, drop=2),
            Column("OUTPUT", [str(row.max_output or "") for row in rows], right=True, drop=3),
            Column("FROM", [row.source for row in rows], drop=1),
        ],
        terminal_columns(),
    )


def _tell_rest(known: _Known, rows: Sequence[Listed]) -> None:
    """What is not in the list, and what would bring it there."""
    for server in known.found:
        what = f"{len(server.models)} model(s)" if server.models else server.problem
        say(f"leadline: {server.provider} at {server.base_url}: {what}")
    for one in known.providers:
        if one.key.problem is not None:
            say(f"leadline: {one.key.problem}")
            break
    lacking = [one.name for one in known.providers if one.key.source == "missing"]
    if lacking:
        say(f"leadline: without a key: {', '.join(lacking)}; store one with: leadline login PROVIDER")
    if all(row.source == "embedded" for row in rows):
        say(
            "leadline: the embedded model answers by extraction, without key and network. A model that writes: "
            "leadline models add PROVIDER/NAME --default"
        )


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """How a test of a model went."""

    model: str
    answered: bool
    called_tool: bool
    text: str
    seconds: float
    tokens: int | None
    """Tokens that it said it used; null: it said nothing."""
    session: str
    """Its log."""
    problem: str | None = None


def run_test(given: Given) -> Exit:
    """Ask a model once and print how it went; exit code 1 where it did not answer or called no tool.

    Raises:
        Quit: the model is not there; nothing was asked.
    """
    tested = anyio.run(_tested, given)
    if given.as_json:
        document(msgspec.json.encode(tested))
    else:
        document(_told(tested))
    if tested.answered and not tested.called_tool:
        say(f"leadline: {_NO_CALL.format(model=tested.model)}")
    return Exit.DONE if tested.answered and tested.called_tool else Exit.FAILED


_NO_CALL = (
    "a run needs calls of tools: start the server with tools, or say that the model cannot call any, so that it "
    "writes them as text: leadline models add {model} --no-tools"
)


def _told(tested: Tested) -> str:
    if not tested.answered:
        return f"{tested.model} did not answer: {tested.problem}"
    calls = "calls tools" if tested.called_tool else "did not call the tool that it was asked to call"
    used = (
        "says nothing of its usage"
        if tested.tokens is None
        else f"reports its usage ({tested.tokens} tokens)"
    )
    return f"{tested.model} answers ({tested.seconds:.1f} s), {calls}, {used}"


async def _tested(given: Given) -> Tested:
    app = Leadline(
        profile="headless", patches=tuple(given.patch), model=given.model_id, base_url=given.base_url
    )
    calls: list[str] = []

    @app.tool(side_effects=())
    def confirm(word: str) -> str:  # pyright: ignore[reportUnusedFunction] - the agent calls it
        """Confirm that you can call tools.

        Args:
            word: the word that you were told
        """
        calls.append(word)
        return "confirmed"

    async with booted(app):
        models = app.ctx.get(Models)
        with refusing():
            _, ref = models.resolve()
        began = anyio.current_time()
        reply: AgentReply | None = None
        session = ""
        limit = given.timeout or _TEST_S
        with anyio.move_on_after(limit):
            async with app.open_agent(label=f"test of {ref}") as agent:
                session = agent.id
                from leadline.apps.sdk.app import take_turn

                reply = await take_turn(agent, _TASK)
        seconds = anyio.current_time() - began
        problem = f"no answer within {limit:g} s" if reply is None else _problem(reply)
        tokens = await _tokens(app, session)
        return Tested(
            model=str(ref),
            answered=problem is None,
            called_tool=bool(calls),
            text=reply.text if reply else "",
            seconds=round(seconds, 3),
            tokens=tokens,
            session=session,
            problem=problem,
        )


def _problem(reply: AgentReply) -> str | None:
    if reply.completed:
        return None
    failure = reply.end.failure
    if failure is None:
        return reply.end.error or f"the turn ended {reply.end.reason}"
    step = None if isinstance(failure, Wait) else failure.next_step
    return f"{failure.message.removesuffix('.')}; {step}" if step else failure.message


async def _tokens(app: Leadline, session: str) -> int | None:
    from leadline.core.session.events import AssistantSaid

    if not session:
        return None
    log = await app.session(session)
    total: int | None = None
    for one in log.since(0):
        if one.type == AssistantSaid.TYPE and (usage := one.as_(AssistantSaid).usage) is not None:
            parts = (usage.input, usage.cached_input, usage.cache_write, usage.output, usage.reasoning)
            if any(part is not None for part in parts):
                total = (total or 0) + sum(part or 0 for part in parts)
    return total
