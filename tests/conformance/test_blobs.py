"""The stores of blobs that ship keep what the seam promises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leadline.capabilities.persistence.providers.blob_files import FileBlobs
from leadline.testing.conformance.blobs import CHECKS, BlobBench, Check, name_of
from leadline.testing.sessions import MemoryBlobs


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_the_store_of_files_keeps_the_promise(check: Check, tmp_path: Path) -> None:
    def set_used(name: str, when: float) -> None:
        os.utime(tmp_path / "blobs" / name[:2] / name, (when, when))

    check(BlobBench(lambda: FileBlobs(tmp_path / "blobs"), set_used))


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_the_store_in_memory_keeps_the_promise(check: Check) -> None:
    blobs = MemoryBlobs()

    def set_used(name: str, when: float) -> None:
        if name in blobs.stored:
            blobs.used[name] = when

    check(BlobBench(lambda: blobs, set_used))
