"""Plugins and patches that do what they should not: the program says which and why, and goes on or ends properly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.composition.cli import Command

PLUGINS = '''
import asyncio
import sys

import anyio

from leadline.core.agent.signals import TurnEnded
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service


class Thing(Service, key="thing"):
    """What some of them provide."""


class Fatal(BaseException):
    """Not an Exception."""


def _fail(error):
    raise error


async def _nothing(ctx, config):
    pass


async def _leaves(ctx, config):
    sys.exit(3)


async def _fatal(ctx, config):
    async with anyio.create_task_group() as group:
        group.start_soon(_fatally)


async def _fatally():
    raise Fatal("in a task")


async def _cancelled(ctx, config):
    raise asyncio.CancelledError


async def _itself(ctx, config):
    await ctx.mount(itself)


async def _undoes(ctx, config):
    ctx.defer("undo", lambda: sys.exit(5))


async def _undoes_later(ctx, config):
    async def undo():
        raise asyncio.CancelledError

    ctx.defer("undo", undo)


async def _listens(ctx, config):
    ctx.on(TurnEnded, lambda signal: sys.exit(7))


async def _works(ctx, config):
    async def work():
        sys.exit(4)

    ctx.spawn(work, name="work")


async def _late(ctx, config):
    async def provide():
        await anyio.sleep(0)
        ctx.provide(Thing, Thing())

    ctx.spawn(provide, name="late")


leaves = Plugin("leaves", _leaves)
fatal = Plugin("fatal", _fatal)
cancelled = Plugin("cancelled", _cancelled)
itself = Plugin("itself", _itself)
undoes = Plugin("undoes", _undoes)
undoes_later = Plugin("undoes-later", _undoes_later)
listens = Plugin("listens", _listens)
works = Plugin("works", _works)
late = Plugin("late", _late, provides=(Thing,))
later = Plugin("later", _late)
configured = Plugin("configured", _nothing, config=lambda raw: sys.exit(6))
'''


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "odd_plugins.py").write_text(PLUGINS)
    (folder / "odd_exit.py").write_text("import sys\nsys.exit(9)\n")
    (folder / "odd_fatal.py").write_text("class Fatal(BaseException):\n    pass\n\n\nraise Fatal('here')\n")
    monkeypatch.syspath_prepend(folder)
    yield
    for name in ("odd_plugins", "odd_exit", "odd_fatal"):
        sys.modules.pop(name, None)


def layer(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "layer.yml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("odd_plugins:leaves", "SystemExit: 3"),
        ("odd_plugins:fatal", "BaseExceptionGroup"),
        ("odd_plugins:cancelled", "CancelledError"),
        ("odd_plugins:configured", "SystemExit: 6"),
        ("odd_plugins:late", "declares that it provides 'thing' but did not"),
        ("odd_plugins:leave", "did you mean 'leaves'"),
        ("odd_exit:x", "cannot import odd_exit: SystemExit: 9"),
        ("odd_fatal:x", "cannot import odd_fatal: Fatal: here"),
    ],
)
@pytest.mark.parametrize("optional", [False, True])
def test_a_plugin_that_does_not_start_costs_the_program_only_where_it_must(
    command: Command, tmp_path: Path, target: str, told: str, optional: bool
) -> None:
    row = f"- {{id: odd, plugin: '{target}', optional: {str(optional).lower()}}}\n"
    ended = command("agent", "hi", "--patch", layer(tmp_path, row))
    assert ended.code == (0 if optional else 2)
    assert told in ended.complaint


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("undoes", "unloading odd"),
        ("undoes_later", "unloading odd"),
        ("listens", "listener of TurnEnded by odd: SystemExit: 7"),
        ("works", "task work: SystemExit: 4"),
        ("itself", "does a plugin mount itself?"),
    ],
)
def test_a_plugin_that_would_end_the_program_later_is_told_and_ends_alone(
    command: Command, tmp_path: Path, target: str, told: str
) -> None:
    row = f"- {{id: odd, plugin: 'odd_plugins:{target}'}}\n"
    ended = command("agent", "hi", "--patch", layer(tmp_path, row))
    assert (ended.code, b"No language model" in ended.out) == (0, True)
    assert told in ended.complaint


@pytest.mark.usefixtures("plugins")
def test_a_service_that_comes_late_and_undeclared_does_no_harm(command: Command, tmp_path: Path) -> None:
    ended = command("agent", "hi", "--patch", layer(tmp_path, "- {id: odd, plugin: 'odd_plugins:later'}\n"))
    assert (ended.code, ended.err) == (0, "")


BOMB = "- id: models\n  merge:\n    a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"    {name}: &{name} [{', '.join([f'*{below}'] * 9)}]\n" for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BOMB, "does an alias repeat itself?"),
        ("- &x {id: models, merge: {z: *x}}\n", "does an alias repeat itself?"),
        ("- *nobody\n", "undefined alias"),
        ("[" * 100_000, "nested too deeply"),
        ("- " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
        ("- {id: models, id: loop}\n", "'id' is there twice"),
        ("- id: models\n\tmerge: {}\n", "cannot start any token"),
        ("- {id: modles, merge: {}}\n", "did you mean 'models'?"),
        ("- {id: models, mege: {}}\n", "did you mean 'merge'?"),
        ("- {id: loop, merge: {max_steps: !!int abc}}\n", "cannot read 'abc'"),
        ("- {id: loop, merge: {max_seconds: !!float abc}}\n", "cannot read 'abc'"),
        ("- {id: loop, disabled: !!bool perhaps}\n", "cannot read 'perhaps'"),
        ("- {id: loop, merge: {max_steps: " + "9" * 5_000 + "}}\n", "cannot read '999"),
        ("- !!python/object/apply:os.system ['true']\n", "unknown tag"),
        ("- {id: models, merge: {}}\n---\n- {id: loop, merge: {}}\n", "another document"),
        ("- {id: a\0b}\n", "unacceptable character"),
    ],
)
def test_a_layer_that_cannot_be_used_is_told_with_its_line(
    command: Command, home: Path, tmp_path: Path, text: str, told: str
) -> None:
    path = layer(tmp_path, text)
    ended = command("agent", "hi", "--patch", path)
    assert (ended.code, ended.out) == (2, b"")
    assert told in ended.complaint
    assert f"{path.name}:" in ended.complaint
    assert list(home.rglob("*.jsonl")) == []
