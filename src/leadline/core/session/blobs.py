"""The seam of blob stores: bytes that events refer to by their hash."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.kernel.services import Service

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A blob as the list of a store has it."""

    sha256: str
    size: int
    """Bytes that it takes in the store."""
    used: float
    """When it was last stored, again or for the first time, or asked for with `has`; seconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What writers that died left behind: no blob, and never one."""

    files: int = 0
    bytes: int = 0


class Blobs(Service, key="blobs"):
    """Bytes by their sha256. The same bytes are stored once, whoever stores them and how often.

    Calls work in the calling thread and may be made from any: hand large bytes to a worker thread.
    `leadline.testing.conformance.blobs` holds the promises as checks.
    """

    @abstractmethod
    def put(self, data: bytes, *, synced: bool = False) -> str:
        """Store `data` and return its sha256 in hex. What is there already counts as used now.

        When it returns, the bytes survive the death of this process; with `synced`, a power cut.

        Raises:
            BlobWriteFailed: the disk refused.
        """

    @abstractmethod
    def get(self, sha256: str) -> bytes:
        """The bytes with that hash, checked against it.

        Raises:
            BlobMissing: nothing is stored under it.
            BlobDamaged: what is stored has another hash.
        """

    @abstractmethod
    def has(self, sha256: str) -> bool:
        """Whether something is stored under the hash, which counts as used now; does not check the bytes."""

    @abstractmethod
    def entries(self) -> Iterator[StoredBlob]:
        """Every blob, damaged ones too, each once, in any order. What comes or goes meanwhile may be missed.

        Raises:
            BlobListFailed: the store cannot be listed.
        """

    @abstractmethod
    def remove(self, sha256: str, *, unused_since: float) -> bool:
        """Remove a blob unless it was used at that time or later; whether it is gone.

        `unused_since` is in seconds since 1970, UTC. Safe beside other processes: a blob of which `put` or
        `has` told that it is there is not removed by a call that regards that use as recent.

        Raises:
            BlobWriteFailed: the disk refused; the blob is still there.
        """

    def leftovers(self, *, before: float, remove: bool) -> Leftovers:
        """What writers that died before that time (seconds since 1970, UTC) left; with `remove` it is gone.

        Raises:
            BlobListFailed: the store cannot be listed.
        """
        return Leftovers()


def sha256_hex(data: bytes) -> str:
    """The name of `data` in a blob store."""
    return hashlib.sha256(data).hexdigest()


def is_hash(text: str) -> bool:
    """Whether `text` can be the name of a blob."""
    return _HASH.fullmatch(text) is not None
