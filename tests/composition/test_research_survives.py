"""A run goes on after whatever stopped it: the same report, no logged answer paid for twice. `bench/faults.py` is the long version."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline.testing.faults import crashes, find_work, record, spread, survive
from leadline.testing.faults.bills import check_bill
from leadline.testing.faults.kills import kill, killed, let_be, together
from leadline.testing.faults.refusals import endure, refusals
from leadline.testing.faults.run_commands import RunCommands
from leadline.testing.provider_server.server import ProviderServer
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus
from tests.composition.works import HERE

pytestmark = pytest.mark.anyio

WORKS = "tests.composition.works"
STORES = ("files", "database")
KILLS = 4


@pytest.mark.parametrize("store", [*STORES, "jumping", "stopped"])
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


@pytest.mark.parametrize("patch", [(), (HERE / "sqlite_store.yml",)], ids=STORES)
async def test_a_run_whose_process_is_killed_again_and_again_ends_with_the_same_report(
    tmp_path: Path, patch: tuple[Path, ...]
) -> None:
    known = topics(3)
    write_corpus(tmp_path / "share", known)
    async with ProviderServer(ScriptedResearcher(known), strict=True) as server:
        runs = RunCommands(tmp_path / "whole", tmp_path / "share", server.base_url)
        whole = await let_be(runs.research(), env=runs.env)
        assert whole.code == 0, whole.err
        usual = len(server.bill)
    async with ProviderServer(ScriptedResearcher(known, delay_s=0.02), strict=True) as server:
        runs = RunCommands(tmp_path / "home", tmp_path / "share", server.base_url, patch)
        in_flight: set[str] = set()
        seen = 0

        async def two_calls_later(attempt: int) -> None:
            nonlocal seen
            while len(server.requests) < seen + 3:  # noqa: ASYNC110 - the process has no event to wait for
                await anyio.sleep(0.003)
            seen = len(server.requests)

        async def next_one(attempt: int) -> list[str]:
            in_flight.update((await runs.asked()).in_flight)
            return await runs.next()

        found = await killed(next_one, KILLS, two_calls_later, env=runs.env)
        bill = server.by_key()
    assert found.kills == KILLS
    assert found.last.code == 0, found.last.err
    assert found.last.out == whole.out
    assert len(bill) == usual
    assert {key for key, calls in bill.items() if calls.charged > 1} <= in_flight
    assert {calls.bodies for calls in bill.values()} == {1}
    run = await runs.found()
    assert run is not None
    proved = await let_be(runs.audit(run), env=runs.env)
    assert proved.code == 0, proved.err


async def test_of_many_processes_that_go_on_with_one_run_one_drives_it(tmp_path: Path) -> None:
    known = topics(3)
    write_corpus(tmp_path / "share", known)
    async with ProviderServer(ScriptedResearcher(known, delay_s=0.05), strict=True) as server:
        runs = RunCommands(tmp_path / "home", tmp_path / "share", server.base_url)

        async def mid_way(attempt: int) -> None:
            while len(server.requests) < 5:  # noqa: ASYNC110 - the process has no event to wait for
                await anyio.sleep(0.003)

        assert await kill(runs.research(), mid_way, env=runs.env) is None
        run = await runs.found()
        assert run is not None
        before = await runs.asked()
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
