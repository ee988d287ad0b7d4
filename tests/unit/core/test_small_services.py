"""Clock, ids, home and the parser of plugin configs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from leadline.core import clock as clock_module
from leadline.core import home as home_module
from leadline.core import ids as ids_module
from leadline.core.clock import Clock
from leadline.core.config import ConfigParser
from leadline.core.home import Home, HomeUnusable
from leadline.core.ids import Ids
from leadline.kernel.context import Kernel
from leadline.kernel.errors import ConfigError


class Limits(BaseModel):
    model_config = ConfigDict(extra="forbid")

    retries: int = 3
    timeout_s: float = Field(description="seconds before giving up")


class Search(BaseModel):
    model_config = ConfigDict(extra="forbid")

    vendor: str
    limits: Limits | None = None
    nested: Limits = Limits(timeout_s=1)


def test_ids_are_random_hex_behind_their_prefix() -> None:
    ids = Ids()
    made = {ids.new("s") for _ in range(1000)}
    assert len(made) == 1000
    assert all(it.startswith("s-") and len(it) == 18 and int(it[2:], 16) >= 0 for it in made)
    assert len(ids.token(3)) == 6


def test_a_good_mapping_becomes_the_model() -> None:
    parser = ConfigParser(Search)
    assert parser.model is Search
    assert parser({"vendor": "x", "nested": {"timeout_s": 2}}).nested.timeout_s == 2


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"vendr": "x", "vendor": "x"}, "unknown key 'vendr'; did you mean 'vendor'?"),
        ({}, "'vendor' is missing; add it (str)"),
        ({"vendor": 3}, "'vendor' cannot be 3: Input should be a valid string"),
        (
            {"vendor": "x", "nested": {"timeouts": 1}},
            "unknown key 'nested.timeouts'; did you mean 'timeout_s'?",
        ),
        (
            {"vendor": "x", "nested": {}},
            "'nested.timeout_s' is missing; add it (float: seconds before giving up)",
        ),
        ({"vendor": "x", "nested": {"timeout_s": 1, "retries": "many"}}, "'nested.retries' cannot be 'many'"),
    ],
)
def test_a_bad_mapping_is_told_by_key_and_expectation(raw: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        ConfigParser(Search)(raw)
    assert told in str(error.value)


def test_every_bad_value_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        ConfigParser(Search)({"nested": {"retries": []}, "extra": 1})
    assert all(key in str(error.value) for key in ("vendor", "nested.timeout_s", "nested.retries", "extra"))


def test_home_is_named_by_the_environment_or_lies_in_the_users_home(tmp_path: Path) -> None:
    assert Home.default({"LEADLINE_HOME": str(tmp_path)}).path == tmp_path
    assert Home.default({}).path == Path.home() / ".leadline"
    assert Home.default({"LEADLINE_HOME": ""}).path == Path.home() / ".leadline"


def test_directories_in_home_are_for_their_owner_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    assert not home.sessions.exists()
    made = home.make("corpora", "c-1")
    assert made == home.corpora / "c-1"
    for path in (home.path, home.corpora, made):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_made_is_told_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(HomeUnusable, match="LEADLINE_HOME"):
        Home(tmp_path / "file").make("sessions")


@pytest.mark.anyio
async def test_the_small_services_mount_and_leave_no_trace(tmp_path: Path) -> None:
    async with Kernel() as kernel:
        before = kernel.snapshot()
        fibers = [
            await kernel.root.mount(clock_module.plugin),
            await kernel.root.mount(ids_module.plugin),
            await kernel.root.mount(home_module.plugin, {"path": str(tmp_path / "home")}),
        ]
        assert kernel.root.get(Home).sessions.is_dir()
        assert kernel.root.get(Clock).now() > 0
        assert kernel.root.get(Ids).new("x") != kernel.root.get(Ids).new("x")
        for fiber in reversed(fibers):
            await fiber.dispose()
        assert kernel.snapshot() == before


@pytest.mark.anyio
async def test_the_clock_returns_at_once_from_a_sleep_of_nothing() -> None:
    await Clock().sleep(-1)
    assert Clock().monotonic() <= Clock().monotonic()
