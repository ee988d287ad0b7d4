"""Every row of every shipped profile has the manners that the kernel's checks ask of a plugin.

The tests are made from the profiles: a row that is added is tested without a change here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.apps.sdk.composition import PROFILES, Options, composed
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.llm.adapter import Models
from leadline.core.llm.request import ModelRef
from leadline.core.session.blobs import Blobs
from leadline.core.session.codec import Header
from leadline.core.session.store import SessionStore
from leadline.core.tools.registry import ToolRegistry
from leadline.kernel.context import Context
from leadline.kernel.loader.discover import import_plugin
from leadline.kernel.loader.document import Ref
from leadline.kernel.loader.interpolate import environment, plain
from leadline.kernel.plugin import Mountable
from leadline.kernel.services import Service
from leadline.testing.conformance.kernel import (
    Mounting,
    check_any_mount_order,
    check_disposer_isolation,
    check_leaves_no_trace,
    check_provider_exchange_under_load,
)

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class ShippedRow:
    """A row of a profile, ready to be mounted."""

    profile: str
    id: str
    plugin: Mountable
    config: object

    @property
    def mounting(self) -> Mounting:
        return self.plugin, self.config

    def uses(self, other: ShippedRow) -> bool:
        return bool({*self.plugin.needs, *self.plugin.wants} & {*other.plugin.provides})


def rows_of(profile: str) -> list[ShippedRow]:
    """The rows of a profile without anything that the user of this machine added."""

    def nothing(ref: Ref) -> object:
        raise KeyError(ref.service)

    options = Options(profile=profile, home=Path("/nonexistent"))
    return [
        # The path of the home is that of the test, by the environment.
        ShippedRow(
            profile,
            row.id,
            import_plugin(row.plugin),
            None if row.id == "home" else plain(row.config, environment(), nothing),
        )
        for row in composed(options).enabled()
        if row.plugin
    ]


def below(row: ShippedRow) -> list[ShippedRow]:
    """What `row` stands on in its profile, directly or not, providers first."""
    rows, found = rows_of(row.profile), list[ShippedRow]()

    def visit(one: ShippedRow) -> None:
        for other in rows:
            if one.uses(other) and other not in found and other.id != one.id:
                visit(other)
                found.append(other)

    visit(row)
    return found


ROWS = {row.id: row for profile in PROFILES for row in rows_of(profile)}
"""Each shipped row in the largest profile that has it."""

each_row = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


@each_row
async def test_a_shipped_plugin_leaves_no_trace(home: Path, row: ShippedRow) -> None:
    await check_leaves_no_trace(*row.mounting, providers=[one.mounting for one in below(row)])


@each_row
async def test_a_failing_disposer_stops_no_other_of_a_shipped_plugin(home: Path, row: ShippedRow) -> None:
    await check_disposer_isolation(*row.mounting, providers=[one.mounting for one in below(row)])


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_profile_is_the_same_in_whatever_order_its_rows_are_mounted(home: Path, profile: str) -> None:
    await check_any_mount_order([row.mounting for row in rows_of(profile)])


async def use_agents(agents: Service) -> None:
    assert isinstance(agents, Agents)
    agent = await agents.create(AgentSpec(model=ModelRef("local", "any")))
    await agent.dispose()


async def use_sessions(store: Service) -> None:
    assert isinstance(store, SessionStore)
    session = await store.create(Header(id=Ids().new("s"), kind="agent", created=0.0))
    await session.close()
    await store.delete(session.id)


async def use_blobs(blobs: Service) -> None:
    assert isinstance(blobs, Blobs)
    assert blobs.get(blobs.put(b"text")) == b"text"


async def use_small(service: Service) -> None:
    match service:
        case Clock():
            assert service.now() > 0
        case Ids():
            assert service.new("x")
        case Models():
            assert service.default
        case ToolRegistry():
            assert service.view(None) is not None
        case _:
            raise AssertionError(service)


USES: Mapping[str, Callable[[Service], Awaitable[None]]] = {
    "agents": use_agents,
    "sessions": use_sessions,
    "blobs": use_blobs,
    "clock": use_small,
    "ids": use_small,
    "models": use_small,
    "tools": use_small,
}
"""What a caller does with a service. One that is not listed is asked for, and that is all."""

PAIRS = [
    pytest.param(row, other, id=f"{row.id}-{other.id}")
    for row in ROWS.values()
    for other in below(row)
    if row.uses(other)
]


@pytest.mark.parametrize(("row", "provider"), PAIRS)
async def test_a_shipped_plugin_survives_the_exchange_of_what_it_needs(
    home: Path, row: ShippedRow, provider: ShippedRow
) -> None:
    async def load(ctx: Context) -> None:
        for definition in row.plugin.provides:
            service = ctx.get(definition)
            await USES[definition.service_key](service) if definition.service_key in USES else None

    rest = [one.mounting for one in below(row) if one.id != provider.id]
    await check_provider_exchange_under_load(
        *row.mounting, exchanged=provider.mounting, load=load, providers=rest, rounds=3
    )


def test_every_profile_that_ships_is_tested() -> None:
    files = {path.stem for path in (Path(__file__).parents[2] / "src/leadline/profiles").glob("*.yml")}
    named = {layer for layers in PROFILES.values() for layer in layers}
    assert files == named
    assert {row.id for profile in PROFILES for row in rows_of(profile)} == set(ROWS)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
