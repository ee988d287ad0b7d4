"""Blobs as files: `<root>/<first two hex digits>/<sha256>`, each with one byte in front that says how it is stored."""

from __future__ import annotations

import os
import secrets
import zlib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from leadline.capabilities.persistence.providers.log_file import sync_directory
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.session.blobs import Blobs, is_hash, sha256_hex
from leadline.core.session.errors import BlobDamaged, BlobMissing, BlobWriteFailed
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

_PLAIN = b"\x00"
_ZLIB = b"\x01"
_LEVEL = 2
_WORTH = 0.9
"""Compressed bytes are kept where they are at most this share of the plain ones."""


class FileBlobs(Blobs):
    """The default store: a directory of files, compressed where that helps."""

    def __init__(self, root: Path, *, level: int = _LEVEL) -> None:
        """`level` is zlib's, 0 for none."""
        self._root = root
        self._level = level

    def put(self, data: bytes, *, synced: bool = False) -> str:
        name = sha256_hex(data)
        path = self._path(name)
        if self._intact(path, name):
            if synced:
                self._sync(path)
            return name
        temporary = path.with_name(f".{name[:16]}.{secrets.token_hex(4)}.new")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._write(temporary, self._packed(data), synced)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            if synced:
                sync_directory(path.parent)
        except OSError as error:
            raise _failed(path, error) from error
        return name

    def _intact(self, path: Path, name: str) -> bool:
        """Whether the bytes are stored already and whole; what is damaged is stored anew."""
        if not path.is_file():
            return False
        try:
            self.get(name)
        except (BlobMissing, BlobDamaged):
            return False
        return True

    def _packed(self, data: bytes) -> bytes:
        if self._level:
            packed = zlib.compress(data, self._level)
            if len(packed) <= len(data) * _WORTH:
                return _ZLIB + packed
        return _PLAIN + data

    def _write(self, path: Path, content: bytes, synced: bool) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            if synced:
                os.fsync(file.fileno())

    def _sync(self, path: Path) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
            sync_directory(path.parent)
        except OSError as error:
            raise _failed(path, error) from error

    def get(self, sha256: str) -> bytes:
        path = self._path(sha256)
        try:
            stored = path.read_bytes()
        except FileNotFoundError:
            raise BlobMissing(
                f"blob {sha256} is not in {self._root}; it was deleted, or never stored here"
            ) from None
        except OSError as error:
            raise BlobDamaged(f"blob {sha256} ({path}) cannot be read: {error.strerror or error}") from error
        data = _unpacked(stored)
        if data is None or sha256_hex(data) != sha256:
            raise BlobDamaged(
                f"blob {sha256} ({path}) does not have its hash any more; restore the file, or store the bytes again"
            )
        return data

    def has(self, sha256: str) -> bool:
        return is_hash(sha256) and self._path(sha256).is_file()

    def _path(self, sha256: str) -> Path:
        if not is_hash(sha256):
            raise BlobMissing(f"{sha256!r} is not the name of a blob; it has to be 64 hex digits")
        return self._root / sha256[:2] / sha256


def _unpacked(stored: bytes) -> bytes | None:
    if stored[:1] == _PLAIN:
        return stored[1:]
    if stored[:1] != _ZLIB:
        return None
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(stored[1:]) + unpacker.flush()
    except zlib.error:
        return None
    return data if unpacker.eof and not unpacker.unused_data else None


def _failed(path: Path, error: OSError) -> BlobWriteFailed:
    return BlobWriteFailed(
        f"cannot store blob {path}: {error.strerror or error}; free space or make the directory writable, then try again"
    )


class BlobFilesConfig(BaseModel):
    """Configuration of the store of blob files."""

    model_config = ConfigDict(extra="forbid")

    root: Path | None = None
    """Directory of the blobs; without it `blobs` in the home directory."""

    level: int = Field(default=_LEVEL, ge=0, le=9)
    """zlib level, 0 for no compression."""


def start(ctx: Context, root: Path | None, level: int = _LEVEL) -> None:
    """Provide the store from `ctx`."""
    ctx.provide(Blobs, FileBlobs(root or ctx.get(Home).blobs, level=level))


async def _apply(ctx: Context, config: BlobFilesConfig) -> None:
    start(ctx, config.root, config.level)


plugin: Plugin[BlobFilesConfig] = Plugin(
    "blob-files", _apply, config=ConfigParser(BlobFilesConfig), needs=(Home,), provides=(Blobs,)
)
