"""What every store of blobs promises, as checks that any store can run.

    @pytest.mark.parametrize("check", CHECKS, ids=name_of)
    def test_my_store_keeps_the_promise(check, tmp_path):
        check(BlobBench(lambda: MyBlobs(tmp_path), set_used))

A check gets a bench: `open` gives the same storage, empty at first, as often as it is called, and each call
stands for another process; `set_used` makes it look as if a blob had been used last at some time. A check
raises AssertionError where a promise is not kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from leadline.core.session.blobs import Blobs, sha256_hex
from leadline.core.session.errors import BlobMissing

LONG_AGO = 1_000_000.0
"""A time, in seconds since 1970, before every blob that a check stores."""

FOR_EVER = 1e12
"""A time after all of them."""

_TEXT = b"The channel was sounded at nine fathoms. " * 50


@dataclass(frozen=True)
class BlobBench:
    """The storage that a check works on."""

    open: Callable[[], Blobs]
    set_used: Callable[[str, float], None]
    """Called with a hash and a time in seconds since 1970."""


Check: TypeAlias = Callable[[BlobBench], None]
E = TypeVar("E", bound=Exception)


def refused(kind: type[E], doing: Callable[[], object]) -> E:
    """The error that `doing` raises, which has to be a `kind`."""
    try:
        doing()
    except kind as error:
        return error
    raise AssertionError(f"it was not refused with {kind.__name__}")


def bytes_come_back_under_their_hash(bench: BlobBench) -> None:
    for data in (b"", b"\x00", b"x", _TEXT):
        for synced in (False, True):
            name = bench.open().put(data, synced=synced)
            assert name == sha256_hex(data)
            assert bench.open().get(name) == data and bench.open().has(name)


def what_is_not_stored_is_told(bench: BlobBench) -> None:
    blobs = bench.open()
    for name in ("0" * 64, "", "../../etc/passwd", "A" * 64, "0" * 63):
        assert not blobs.has(name)
        refused(BlobMissing, lambda name=name: blobs.get(name))


def each_blob_is_listed_once(bench: BlobBench) -> None:
    assert list(bench.open().entries()) == []
    names = {bench.open().put(data) for data in (b"a", b"b", b"a", _TEXT)}
    found = list(bench.open().entries())
    assert sorted(one.sha256 for one in found) == sorted(names)
    assert all(one.size >= 1 and one.used > LONG_AGO for one in found)


def a_removed_blob_is_gone_and_may_come_again(bench: BlobBench) -> None:
    blobs = bench.open()
    name, other = blobs.put(_TEXT), blobs.put(b"other")
    assert bench.open().remove(name, unused_since=FOR_EVER)
    assert not blobs.has(name) and [one.sha256 for one in blobs.entries()] == [other]
    refused(BlobMissing, lambda: blobs.get(name))
    assert bench.open().remove(name, unused_since=FOR_EVER), "what is not there is gone"
    assert blobs.put(_TEXT) == name and bench.open().get(name) == _TEXT
    refused(BlobMissing, lambda: blobs.remove("../x", unused_since=FOR_EVER))


def a_blob_that_was_used_since_stays(bench: BlobBench) -> None:
    name = bench.open().put(_TEXT)
    assert not bench.open().remove(name, unused_since=LONG_AGO)
    assert bench.open().get(name) == _TEXT
    assert [one.sha256 for one in bench.open().entries()] == [name]


def to_store_again_or_to_ask_is_to_use(bench: BlobBench) -> None:
    name = bench.open().put(_TEXT)
    for use in (lambda: bench.open().put(_TEXT), lambda: bench.open().has(name)):
        bench.set_used(name, LONG_AGO)
        assert [one.used for one in bench.open().entries()] == [LONG_AGO]
        use()
        assert not bench.open().remove(name, unused_since=LONG_AGO + 1)
    bench.set_used(name, LONG_AGO)
    bench.open().get(name)
    assert bench.open().remove(name, unused_since=LONG_AGO + 1), "to read is not to use"


def what_is_used_meanwhile_is_never_lost(bench: BlobBench) -> None:
    """One process stores the same old bytes again and again while another removes what is old."""
    stop = threading.Event()
    name = sha256_hex(_TEXT)

    def collect() -> None:
        blobs = bench.open()
        while not stop.is_set():
            blobs.remove(name, unused_since=LONG_AGO + 1)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        blobs = bench.open()
        for number in range(300):
            blobs.put(_TEXT)
            assert blobs.get(name) == _TEXT, "it was stored again, and is gone"
            with suppress(FileNotFoundError):
                bench.set_used(name, LONG_AGO)
            if number % 2 and blobs.has(name):
                assert blobs.get(name) == _TEXT, "it was told to be there, and is gone"
    finally:
        stop.set()
        thread.join()


CHECKS: tuple[Check, ...] = (
    bytes_come_back_under_their_hash,
    what_is_not_stored_is_told,
    each_blob_is_listed_once,
    a_removed_blob_is_gone_and_may_come_again,
    a_blob_that_was_used_since_stays,
    to_store_again_or_to_ask_is_to_use,
    what_is_used_meanwhile_is_never_lost,
)
"""Every promise of the seam."""


def name_of(check: Check) -> str:
    """A check's name, for the ids of a parametrised test."""
    return getattr(check, "__name__", str(check))
