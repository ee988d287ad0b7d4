"""The seam of blob stores: bytes that events refer to by their hash."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod

from leadline.kernel.services import Service

_HASH = re.compile(r"[0-9a-f]{64}")


class Blobs(Service, key="blobs"):
    """Bytes by their sha256. The same bytes are stored once, whoever stores them and how often.

    Calls work in the calling thread and may be made from any: hand large bytes to a worker thread.
    """

    @abstractmethod
    def put(self, data: bytes, *, synced: bool = False) -> str:
        """Store `data` and return its sha256 in hex.

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
        """Whether something is stored under the hash; does not check it."""


def sha256_hex(data: bytes) -> str:
    """The name of `data` in a blob store."""
    return hashlib.sha256(data).hexdigest()


def is_hash(text: str) -> bool:
    """Whether `text` can be the name of a blob."""
    return _HASH.fullmatch(text) is not None
