"""Killed at any step, an operation is completed by doing it again, and nothing is lost in between."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from leadline.capabilities.retention.seam import CollectRefused, ExportRefused, ImportRefused
from leadline.core.session.blobs import sha256_hex
from leadline.core.session.errors import BlobWriteFailed, SessionWriteFailed
from leadline.core.session.log import Session

from .conftest import DAY, Opener, Place

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).with_name("process_that_is_killed.py")
FAMILY = {"r", "c1", "c2", "g"}


async def killed(place_root: Path, store: str, step: int, operation: str, argument: str = "") -> bool:
    """Run the operation in a process that kills itself at `step`; False when it was through before that."""
    command = [sys.executable, str(PROGRAM), str(place_root), store, str(step), operation, argument]
    done = await anyio.run_process(command, check=False, stderr=subprocess.PIPE)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode != 0


def names_in(folder: Path) -> set[str]:
    """Names of all that lies in a folder."""
    return {one.name for one in folder.iterdir()}


async def sound(place: Place, ids: set[str]) -> None:
    """Every session of `ids` loads without a problem."""
    for one in ids:
        assert not (await place.store.read(one)).problems


@pytest.fixture
async def exported(opened: Opener, tmp_path: Path) -> Path:
    """A file with a family."""
    async with opened("source") as source:
        await source.family()
        await source.retention.export("r", tmp_path / "file")
    return tmp_path / "file"


async def test_an_import_that_was_killed_is_completed_by_another_or_taken_back_by_a_collection(
    opened: Opener, tmp_path: Path, exported: Path, store_kind: str
) -> None:
    seen: set[int] = set()
    step = 0
    while True:
        step += 1
        name = f"home{step}"
        if not await killed(tmp_path / name, store_kind, step, "import", str(exported)):
            break
        async with opened(name) as place:
            here = await place.ids()
            seen.add(len(here))
            assert "r" not in here or here == FAMILY, "the root comes last"
            await sound(place, here)
            trial = await place.retention.collect(dry_run=True)
            assert len(trial.notes) == (len(here) if "r" not in here else 0) and await place.ids() == here
            if step % 2:
                report = await place.retention.import_(exported)
                assert set(report.present) == here and await place.ids() == FAMILY
                await sound(place, FAMILY)
                assert all(place.blobs.has(sha256_hex(it)) for it in (b"root blob", b"grand blob"))
            await place.retention.collect()
            left = FAMILY if step % 2 or "r" in here else set()
            assert await place.ids() == left and list((place.root / "imports").glob("*.json")) == []
            place.age_blobs(2 * DAY)
            last = await place.retention.collect()
            assert last.needed == (5 if left else 0) and not last.notes
    assert seen == {0, 1, 2, 3, 4}


async def test_a_delete_that_was_killed_is_completed_by_another(
    opened: Opener, tmp_path: Path, store_kind: str
) -> None:
    for step in (1, 2, 4, 5, 7, 8):
        name = f"home{step}"
        async with opened(name) as place:
            await place.family()
        assert await killed(tmp_path / name, store_kind, step, "delete", "r")
        async with opened(name) as place:
            here = await place.ids()
            await sound(place, here)
            assert "r" in here or here == set(), "the root goes last"
            if here:
                await place.retention.delete("r")
            assert await place.ids() == set()


async def test_an_archive_that_was_killed_is_completed_by_another(
    opened: Opener, tmp_path: Path, store_kind: str
) -> None:
    for step in (1, 2, 4, 5, 7, 8):
        name = f"home{step}"
        async with opened(name) as place:
            await place.family()
        assert await killed(tmp_path / name, store_kind, step, "archive", "r")
        async with opened(name) as place:
            await sound(place, {"r", "c1", "c2", "g"})
            await place.retention.archive("r")
            assert all(one.archived for one in await place.store.list())
            await sound(place, {"r", "c1", "c2", "g"})


async def test_a_collection_that_was_killed_is_completed_by_another(
    opened: Opener, tmp_path: Path, store_kind: str
) -> None:
    for step in (1, 2, 4, 6):
        name = f"home{step}"
        async with opened(name) as place:
            await place.family()
            lost = [place.blobs.put(f"lost {number}".encode()) for number in range(3)]
            place.age_blobs(2 * DAY)
        assert await killed(tmp_path / name, store_kind, step, "collect")
        async with opened(name) as place:
            await place.retention.collect()
            assert {one.sha256 for one in place.blobs.entries()}.isdisjoint(lost)
            assert len(list(place.blobs.entries())) == 5


@pytest.mark.parametrize("at", [1, 2, 4])
async def test_an_import_for_which_there_is_no_room_is_taken_back(
    opened: Opener, exported: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("there") as there:
        add_raw = there.store.add_raw
        calls: list[int] = []

        async def full(*args: object, **named: object) -> object:
            calls.append(1)
            if len(calls) == at:
                raise SessionWriteFailed("r", "no space left on device", "free space")
            return await add_raw(*args, **named)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(there.store, "add_raw", full)
            with pytest.raises(SessionWriteFailed):
                await there.retention.import_(exported)
        assert await there.ids() == set() and list((there.root / "imports").glob("*.json")) == []
        assert len((await there.retention.import_(exported)).added) == 4


async def test_a_blob_for_which_there_is_no_room_stops_an_import_before_any_session(
    opened: Opener, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("there") as there:

        def full(data: bytes, *, synced: bool = False) -> str:
            raise BlobWriteFailed("no space left on device")

        monkeypatch.setattr(there.blobs, "put", full)
        with pytest.raises(BlobWriteFailed):
            await there.retention.import_(exported)
        assert await there.ids() == set()


async def test_an_import_that_is_cancelled_is_taken_back(
    opened: Opener, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("there") as there:
        add_raw = there.store.add_raw
        with anyio.CancelScope() as scope:

            async def cancelling(*args: object, **named: object) -> object:
                done = await add_raw(*args, **named)  # type: ignore[arg-type]
                scope.cancel()
                return done

            monkeypatch.setattr(there.store, "add_raw", cancelling)
            await there.retention.import_(exported)
        assert scope.cancelled_caught and await there.ids() == set()


async def test_a_file_that_changes_while_it_is_stored_is_refused(
    opened: Opener, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("there") as there:
        add_raw = there.store.add_raw

        def alter() -> None:
            exported.write_bytes(exported.read_bytes().replace(b"Nine", b"Four"))

        async def altered(*args: object, **named: object) -> object:
            alter()
            return await add_raw(*args, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(there.store, "add_raw", altered)
        with pytest.raises(ImportRefused, match="changed while it was read"):
            await there.retention.import_(exported)
        assert await there.ids() == set()


async def test_an_export_overwrites_nothing_and_leaves_nothing_half(place: Place, tmp_path: Path) -> None:
    await place.family()
    (tmp_path / "there").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (tmp_path / "there", tmp_path / "link", tmp_path / "none" / "x", tmp_path / "there" / "x"):
        with pytest.raises(ExportRefused):
            await place.retention.export("r", path)
    assert (tmp_path / "there").read_text() == "precious"
    assert names_in(tmp_path) == {"there", "link", "here"}


async def test_an_export_for_which_there_is_no_room_leaves_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leadline.capabilities.retention.providers import container

    await place.family()
    monkeypatch.setattr(container, "MAX_BYTES", 2000)
    with pytest.raises(ExportRefused, match="at most 2000 bytes"):
        await place.retention.export("r", tmp_path / "file")
    assert names_in(tmp_path) == {"here"}


async def test_an_import_and_a_collection_take_turns(
    opened: Opener, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an import has stored is named by nothing until its sessions are there."""
    async with opened("there") as there, opened("there") as other:
        add_raw = there.store.add_raw
        refused: list[str] = []

        async def collecting(*args: object, **named: object) -> object:
            try:
                await other.retention.collect(grace_s=0)
            except CollectRefused as error:
                refused.append(str(error))
            return await add_raw(*args, **named)  # type: ignore[arg-type]

        async def no_time(seconds: float) -> None:
            await anyio.lowlevel.checkpoint()

        monkeypatch.setattr(there.store, "add_raw", collecting)
        monkeypatch.setattr(other.clock, "sleep", no_time)
        report = await there.retention.import_(exported)
        assert len(refused) == len(report.added) == 4 and "import is under way" in refused[0]
        assert (await other.retention.collect(grace_s=0)).blobs == ()


async def test_what_could_not_be_taken_back_is_taken_back_later(
    opened: Opener, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("there") as there, opened("there") as other:
        add_raw = there.store.add_raw
        held: list[Session] = []

        async def holding(*args: object, **named: object) -> object:
            if held:
                raise SessionWriteFailed("r", "no space left on device", "free space")
            entry = await add_raw(*args, **named)  # type: ignore[arg-type]
            held.append(await other.store.open(entry.id))
            return entry

        with monkeypatch.context() as patch:
            patch.setattr(there.store, "add_raw", holding)
            with pytest.raises(SessionWriteFailed) as caught:
                await there.retention.import_(exported)
        assert "could not be taken back" in caught.value.__notes__[0]
        await held[0].close()
        assert await there.ids() == {held[0].id}
        await there.retention.collect()
        assert await there.ids() == set()
