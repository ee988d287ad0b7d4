"""The program in odd places: what it finds in its home, where it is started, what it is asked to keep."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from leadline.apps.sdk.app import Leadline, take_turn
from leadline.core.agent.agents import Agents
from leadline.core.session.errors import SessionError
from leadline.core.session.store import SessionEntry, SessionStore
from leadline.testing.provider_server import ProviderServer
from tests.composition.cli import QUESTION, program, provider

pytestmark = pytest.mark.anyio


async def new_session(home: Path, task: str = "hello") -> str:
    async with (
        ProviderServer(["hello there"]) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        return (await app.agent(task)).session


async def resumed(home: Path, session_id: str) -> str:
    """What the model answers in a further turn."""
    async with (
        ProviderServer(["resumed"], strict=True) as server,
        Leadline(profile="headless", model="local/m", base_url=server.base_url, home=home) as app,
    ):
        agent = await app.ctx.get(Agents).resume(session_id)
        return (await take_turn(agent, "hi")).text


async def listed(home: Path) -> dict[str, SessionEntry]:
    async with Leadline(profile="base", home=home) as app:
        return {entry.id: entry for entry in await app.ctx.get(SessionStore).list()}


def _nothing(path: Path) -> None:
    path.write_bytes(b"")


def _zeros(path: Path) -> None:
    path.write_bytes(b"\0" * 100_000)


def _other_json(path: Path) -> None:
    path.write_bytes(b"[1,2]\n")


def _endless_header(path: Path) -> None:
    path.write_bytes(
        b'{"format":1,"id":"odd","kind":"agent","created":1.0,"label":"' + b"x" * 50_000 + b'"}\n'
    )


def _future(path: Path) -> None:
    path.write_bytes(b'{"format":99,"id":"odd","new":{"y":1}}\n{"zz":1}\n')


def _pipe_as_lock(path: Path) -> None:
    os.mkfifo(path.with_suffix(".lock"))
    path.write_bytes(b"")


def _pipe_beside(path: Path) -> None:
    os.mkfifo(path.with_name("odd.damaged-1"))
    path.write_bytes(b"")


ODD: list[Callable[[Path], None]] = [
    _nothing,
    _zeros,
    _other_json,
    _endless_header,
    _future,
    _pipe_as_lock,
    _pipe_beside,
    Path.mkdir,
    os.mkfifo,
    lambda path: path.symlink_to(path.name),
    lambda path: path.symlink_to("nowhere"),
    lambda path: path.symlink_to("/dev/zero"),
]


@pytest.mark.case("S02")
@pytest.mark.case("S33")
@pytest.mark.parametrize("make", ODD, ids=lambda make: getattr(make, "__name__", "link"))
async def test_a_session_that_is_none_is_told_and_keeps_nobody_waiting(
    home: Path, make: Callable[[Path], None]
) -> None:
    good = await new_session(home)
    make(home / "sessions" / "odd.jsonl")
    with anyio.fail_after(30):
        entries = await listed(home)
        assert (entries[good].status, entries["odd"].status) == ("finished", "unreadable")
        assert entries["odd"].reason
        with pytest.raises(SessionError):
            await resumed(home, "odd")
        async with Leadline(profile="base", home=home) as app:
            try:
                session = await app.session("odd")
                assert session.problems or not session.logged
            except SessionError:
                pass
        assert await resumed(home, good) == "resumed"


@pytest.mark.case("S02")
@pytest.mark.parametrize("task", ["x" * 20_000, "\n\t" * 9_000 + "end", "\x01" * 5_000, "中" * 2_500_000])
async def test_a_session_with_a_long_task_is_listed_and_goes_on(home: Path, task: str) -> None:
    session = await new_session(home, task)
    entry = (await listed(home))[session]
    assert (entry.status, len(entry.label) <= 200, "\n" in entry.label) == ("finished", True, False)
    assert await resumed(home, session) == "resumed"


async def test_a_line_that_no_log_can_hold_and_half_a_character_are_moved_away(home: Path) -> None:
    session = await new_session(home)
    log = home / "sessions" / f"{session}.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"v":1,"seq":999,"x":"' + b"y" * 9_000_000 + b'"}\n' + "é".encode()[:1])
    assert await resumed(home, session) == "resumed"
    assert log.read_bytes().startswith(whole)
    assert log.with_name(f"{session}.damaged-1").stat().st_size > 9_000_000


@pytest.mark.parametrize(
    "name", ["with space", "中文", "new\nline", "-dash", "%s{0}", os.fsdecode(b"\xff\xfe")]
)
def test_a_home_and_a_working_folder_of_any_name_do(tmp_path: Path, corpus: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    env = {"LEADLINE_HOME": str(folder / "home")}
    with provider(["hello ✓"]) as model:
        ended = program("agent", "hi", "--json", *model, env=env, cwd=folder)
    assert ended.code == 0, ended.err
    shown = program("show", ended.json["session"], "--json", env=env, cwd=folder)
    assert Path(shown.json["header"]["cwd"]).parent == tmp_path
    ended = program("research", QUESTION, "--corpus", corpus, env=env, cwd=folder)
    assert ended.code == 0, ended.err


def test_an_agent_runs_where_its_working_folder_was_removed(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    env = {"LEADLINE_HOME": str(tmp_path / "home")}
    with provider(["hello"]) as model:
        ended = program("agent", "hi", "--json", *model, env=env, cwd=gone, preexec_fn=gone.rmdir)
    assert (ended.code, ended.json["text"]) == (0, "hello")


@pytest.mark.case("L02")
@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONIOENCODING": "gbk:strict"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda env: json.dumps(env),
)
def test_any_text_comes_through_any_code_page(home: Path, env: dict[str, str]) -> None:
    with provider(["✓ 中 \N{PILE OF POO}"]) as model:
        ended = program("agent", "✓ 中", *model, env=env)
    assert (ended.code, ended.out.decode()) == (0, "✓ 中 \N{PILE OF POO}\n")
    (log,) = (home / "sessions").glob("*.jsonl")
    assert "✓ 中" in log.read_text(encoding="utf-8")
