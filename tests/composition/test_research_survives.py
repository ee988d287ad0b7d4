"""A run goes on after whatever stopped it: the same report, no logged answer paid for twice. `bench/faults.py` is the long version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from leadline.apps.sdk.app import Leadline
from leadline.core.session.store import SessionStore
from leadline.testing.faults import crashes, find_work, record, spread, survive
from leadline.testing.faults.bills import Asked, asked_in, check_bill
from leadline.testing.faults.kills import kill, killed, let_be, together
from leadline.testing.faults.refusals import endure, refusals
from leadline.testing.faults.research_work import QUESTION
from leadline.testing.provider_server.server import ProviderServer
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus
from tests.composition.cli import PROGRAM

pytestmark = pytest.mark.anyio

WORKS = "tests.composition.works"
STORES = ("files", "database")


@pytest.mark.parametrize("store", [*STORES, "jumping"])
async def test_a_run_comes_to_the_same_report_after_any_crash(tmp_path: Path, store: str) -> None:
    name = f"{WORKS}:{store}"
    journal = record(name, tmp_path / "whole")
    found = await survive(find_work(name), journal, tmp_path, spread(crashes(journal), 16))
    assert found.tried == 16
    assert found.ok, found


@pytest.mark.parametrize("store", STORES)
async def test_a_run_on_a_disk_that_refuses_goes_on_when_it_is_well_again(tmp_path: Path, store: str) -> None:
    work = find_work(f"{WORKS}:{store}")
    found, outcome = await refusals(work, tmp_path / "whole")
    endured = await endure(work, tmp_path, spread(found, 12), outcome)
    assert endured.tried == 12
    assert endured.ok, endured


class Runs:
    """The commands that begin a run and go on with it, against one provider."""

    def __init__(self, home: Path, corpus: Path, server: ProviderServer, options: Sequence[str] = ()) -> None:
        self.env = {"LEADLINE_HOME": str(home)}
        self._home = home
        self._corpus = corpus
        self._options = ["--model", "local/fake", "--base-url", server.base_url, *options]

    def research(self) -> list[str]:
        return [
            str(PROGRAM),
            "research",
            QUESTION,
            "--corpus",
            str(self._corpus),
            "--breadth",
            "broad",
            *self._options,
        ]

    def resume(self, run: str) -> list[str]:
        return [str(PROGRAM), "resume", run, *self._options]

    def next(self, attempt: int) -> list[str]:
        """Begin; once there is a run that began, go on with it."""
        run = self.found()
        return self.resume(run) if run else self.research()

    def found(self) -> str | None:
        for log in sorted((self._home / "sessions").glob("*.jsonl")):
            lines = log.read_bytes().splitlines()
            if b'"kind":"research"' in lines[0] and any(b'"research/started"' in line for line in lines[1:]):
                return log.stem
        return None


async def test_a_run_whose_process_is_killed_again_and_again_ends_with_the_same_report(
    tmp_path: Path,
) -> None:
    known = topics(3)
    write_corpus(tmp_path / "share", known)
    async with ProviderServer(ScriptedResearcher(known), strict=True) as server:
        whole = await let_be(
            Runs(tmp_path / "whole", tmp_path / "share", server).research(),
            env={"LEADLINE_HOME": str(tmp_path / "whole")},
        )
        assert whole.code == 0, whole.err
        usual = len(server.bill)
    async with ProviderServer(ScriptedResearcher(known, delay_s=0.02), strict=True) as server:
        runs = Runs(tmp_path / "home", tmp_path / "share", server)
        seen = 0

        async def two_calls_later(attempt: int) -> None:
            nonlocal seen
            while len(server.requests) < seen + 3:  # noqa: ASYNC110 - the process has no event to wait for
                await anyio.sleep(0.003)
            seen = len(server.requests)

        found = await killed(runs.next, 5, two_calls_later, env=runs.env)
        keys = Counter(charge.idempotency_key for charge in server.bill)
    assert found.kills == 5
    assert found.last.code == 0, found.last.err
    assert found.last.out == whole.out
    assert len(keys) == usual
    assert sum(keys.values()) - usual <= 5 * 3, "more was paid for again than can have been in flight"
    assert runs.found() is not None
    shown = await let_be([str(PROGRAM), "audit", str(runs.found())], env=runs.env)
    assert shown.code == 0, shown.err


async def test_of_many_processes_that_go_on_with_one_run_one_drives_it(tmp_path: Path) -> None:
    known = topics(3)
    write_corpus(tmp_path / "share", known)
    async with ProviderServer(ScriptedResearcher(known, delay_s=0.05), strict=True) as server:
        runs = Runs(tmp_path / "home", tmp_path / "share", server)

        async def mid_way(attempt: int) -> None:
            while len(server.requests) < 5:  # noqa: ASYNC110 - as above
                await anyio.sleep(0.003)

        assert await kill(runs.research(), mid_way, env=runs.env) is None
        run = runs.found()
        assert run is not None
        before = await asked(tmp_path / "home")
        charged = [charge.idempotency_key or "" for charge in server.bill]
        ended = await together([runs.resume(run)] * 4, env=runs.env)
        after = [charge.idempotency_key or "" for charge in server.bill[len(charged) :]]
    check_bill(before, charged, after)
    drivers = [one for one in ended if one.code == 0]
    assert len(drivers) == 1, ended
    assert drivers[0].out.startswith(b"# Reservoirs")
    for one in ended:
        if one.code:
            assert not one.out
            assert "is being written" in one.err or "is complete" in one.err, one.err


async def asked(home: Path) -> Asked:
    """What the logs in a home tell of calls to models."""
    async with Leadline(home=home) as app:
        return await asked_in(app.ctx.get(SessionStore))
