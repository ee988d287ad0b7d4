"""Two real processes of one home directory stand in one line before a model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest

from tests.composition.cli import Command

MODEL = "bench/model"

PROGRAM = """
import os, sys, anyio
from pathlib import Path
from leadline.apps.sdk.app import Leadline
from leadline.core.spend.limiter import Limiter, Permit
from leadline.core.spend.lines import Ask

name, patch, log = sys.argv[1], Path(sys.argv[2]), os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
calls = 0

def say(what):
    print(what, flush=True)

async def call(limiter, hold_s):
    found = await limiter.admit(Ask("bench/model", 10), lambda waiting: say(f"waits for {waiting.why}"))
    assert isinstance(found, Permit), found
    os.write(log, f"+{name}\\n".encode())
    await anyio.sleep(hold_s)
    os.write(log, f"-{name}\\n".encode())
    found.done(10)

async def main():
    async with Leadline(profile="headless", patches=(patch,)) as app:
        limiter = app.ctx.get(Limiter)
        say("ready")
        assert sys.stdin.readline()
        await work(limiter)
        assert limiter.problem is None, limiter.problem
        say("done")
"""

HOLD_FOR_EVER = """
async def work(limiter):
    found = await limiter.admit(Ask("bench/model"))
    assert isinstance(found, Permit)
    say("held")
    await anyio.sleep_forever()
"""

MANY = """
async def work(limiter):
    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(call, limiter, 0.002)
"""


class Processes:
    """Programs of one home, each with its own name in the log that all write."""

    def __init__(self, folder: Path, limits: Sequence[dict[str, object]]) -> None:
        self.patch = folder / "limits.yml"
        self.patch.write_text(
            json.dumps([{"id": "limiter", "merge": {"limits": list(limits)}}]), encoding="utf-8"
        )
        self.log = folder / "calls.log"
        self.running: list[subprocess.Popen[str]] = []

    def start(self, name: str, work: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", f"{PROGRAM}{work}\nanyio.run(main)", name, str(self.patch), str(self.log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        assert _line(process) == "ready"
        return process

    def calls(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines()


@contextmanager
def processes(folder: Path, *limits: dict[str, object]) -> Generator[Processes]:
    made = Processes(folder, limits)
    try:
        yield made
    finally:
        for process in made.running:
            process.kill()
            process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _done(process: subprocess.Popen[str]) -> bool:
    """Whether it comes to its end, whatever it waits for before."""
    said = _line(process)
    while said.startswith("waits"):
        said = _line(process)
    return said == "done"


def _go(*started: subprocess.Popen[str]) -> None:
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


@pytest.mark.parametrize("most", [1, 3])
def test_calls_of_two_processes_together_are_never_more_than_may(
    home: Path, tmp_path: Path, most: int
) -> None:
    with processes(tmp_path, {"model": MODEL, "max": most}) as made:
        a, b = made.start("a", MANY), made.start("b", MANY)
        _go(a, b)
        assert _done(a)
        assert _done(b)
        calls = made.calls()
    under_way, reached = 0, 0
    for call in calls:
        under_way += 1 if call[0] == "+" else -1
        reached = max(reached, under_way)
    assert (len(calls), under_way) == (48, 0)
    assert reached <= most


def test_two_processes_that_want_much_are_served_in_turn(home: Path, tmp_path: Path) -> None:
    with processes(tmp_path, {"model": MODEL, "max": 1}) as made:
        holder, a, b = made.start("holder", HOLD_FOR_EVER), made.start("a", MANY), made.start("b", MANY)
        _go(holder)
        assert _line(holder) == "held"
        _go(a, b)
        for process in (a, b):
            assert _line(process) == "waits for slots"
        holder.kill()
        assert _done(a)
        assert _done(b)
        begun = "".join(call[1] for call in made.calls() if call[0] == "+")
    while_both_wait = begun[: min(begun.rindex("a"), begun.rindex("b"))]
    runs = [len([*run]) for _, run in groupby(while_both_wait)]
    assert max(runs) <= 3, f"one process holds up the other: {begun}"


def test_a_process_that_is_killed_while_it_holds_the_only_place_frees_it(home: Path, tmp_path: Path) -> None:
    with processes(tmp_path, {"model": MODEL, "max": 1}) as made:
        holder, other = made.start("holder", HOLD_FOR_EVER), made.start("other", MANY)
        _go(holder)
        assert _line(holder) == "held"
        _go(other)
        assert _line(other) == "waits for slots"
        holder.kill()
        assert _done(other)
        assert made.calls().count("+other") == 12


def test_the_minute_is_that_of_both_processes(home: Path, tmp_path: Path) -> None:
    with processes(tmp_path, {"model": MODEL, "requests_per_minute": 14}) as made:
        a, b = made.start("a", MANY), made.start("b", MANY)
        _go(a)
        assert _line(a) == "done"
        _go(b)
        assert _line(b) == "waits for requests"
        while len(made.calls()) < 28:
            assert b.poll() is None
        assert made.calls().count("+b") == 2


def test_what_processes_share_is_shown_from_outside(home: Path, tmp_path: Path, command: Command) -> None:
    with processes(tmp_path, {"model": MODEL, "max": 2}) as made:
        holder = made.start("holder", HOLD_FOR_EVER)
        _go(holder)
        assert _line(holder) == "held"
        ended = command("models", "limits", "--json", "--patch", made.patch)
        assert ended.code == 0, ended.err
        (row,) = ended.json
        assert (row["model"], row["max"], row["active"], row["requests"]) == (MODEL, 2, 1, 1)
