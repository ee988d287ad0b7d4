"""Blobs as files: `<root>/<first two hex digits>/<sha256>`, each with one byte in front that says how it is stored.

The time of a file says when its blob was last used. To remove one, it is given another name first and its
time is looked at then: whoever used it before that is seen, and whoever comes later finds no file under the
old name and stores the bytes anew. Until it is gone it can be read under the new name, so that a process that
dies in between loses nothing.
"""

from __future__ import annotations

import os
import re
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from leadline.capabilities.persistence.providers.log_file import sync_directory
from leadline.core.config import ConfigParser
from leadline.core.home import Home
from leadline.core.session.blobs import Blobs, Leftovers, StoredBlob, is_hash, sha256_hex
from leadline.core.session.errors import BlobDamaged, BlobListFailed, BlobMissing, BlobWriteFailed
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin

_SHARD = re.compile(r"[0-9a-f]{2}")
_CONDEMNED = ".condemned"
_UNFINISHED = ".new"
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
        temporary = path.with_name(f".{name[:16]}.{secrets.token_hex(4)}{_UNFINISHED}")
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
        if not _touch(path):
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
        data = _unpacked(self._stored(path, sha256))
        if data is None or sha256_hex(data) != sha256:
            raise BlobDamaged(
                f"blob {sha256} ({path}) does not have its hash any more; restore the file, or store the bytes again"
            )
        return data

    def _stored(self, path: Path, sha256: str) -> bytes:
        # Again under its name at last: it may have got it back after the first look.
        for place in (path, _condemned(path), path):
            try:
                return place.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise BlobDamaged(
                    f"blob {sha256} ({place}) cannot be read: {error.strerror or error}"
                ) from error
        raise BlobMissing(f"blob {sha256} is not in {self._root}; it was deleted, or never stored here")

    def has(self, sha256: str) -> bool:
        return is_hash(sha256) and _touch(self._path(sha256))

    def entries(self) -> Iterator[StoredBlob]:
        for shard in self._shards():
            found = {one.name: one for one in _listed(shard)}
            for name in sorted(found):
                plain = name.removeprefix(".").removesuffix(_CONDEMNED)
                if not is_hash(plain) or plain[:2] != shard.name or (name != plain and plain in found):
                    continue
                try:
                    stat = found[name].stat(follow_symlinks=False)
                except OSError:  # gone meanwhile, or not to be told apart from that
                    continue
                yield StoredBlob(plain, stat.st_size, stat.st_mtime)

    def remove(self, sha256: str, *, unused_since: float) -> bool:
        path = self._path(sha256)
        condemned = _condemned(path)
        try:
            try:
                if path.stat().st_mtime >= unused_since:
                    return False
                path.replace(condemned)
            except FileNotFoundError:
                pass  # condemned by a process that died, or not there at all
            try:
                if condemned.stat().st_mtime >= unused_since:
                    condemned.replace(path)
                    return False
                condemned.unlink()
            except FileNotFoundError:
                pass  # somebody else removes the same blob
        except OSError as error:
            raise BlobWriteFailed(
                f"cannot remove blob {path}: {error.strerror or error}; make its directory writable, then try again"
            ) from error
        return not path.exists()

    def leftovers(self, *, before: float, remove: bool) -> Leftovers:
        files = size = 0
        for shard in self._shards():
            for one in _listed(shard):
                if not (one.name.startswith(".") and one.name.endswith(_UNFINISHED)):
                    continue
                try:
                    stat = one.stat(follow_symlinks=False)
                    if stat.st_mtime >= before:
                        continue
                    if remove:
                        Path(one.path).unlink()
                except OSError:  # gone meanwhile, or not ours to remove: no blob in either case
                    continue
                files += 1
                size += stat.st_size
        return Leftovers(files, size)

    def _shards(self) -> list[Path]:
        try:
            return sorted(one for one in self._root.iterdir() if _SHARD.fullmatch(one.name) and one.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unlistable(self._root, error) from error

    def _path(self, sha256: str) -> Path:
        if not is_hash(sha256):
            raise BlobMissing(f"{sha256!r} is not the name of a blob; it has to be 64 hex digits")
        return self._root / sha256[:2] / sha256


def _condemned(path: Path) -> Path:
    """Where a blob lies while it is being removed."""
    return path.with_name(f".{path.name}{_CONDEMNED}")


def _touch(path: Path) -> bool:
    """Note that the blob is used now; whether there is a file of that name."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:  # a store that may only be read has nobody who removes anything
        return path.is_file()
    return True


def _listed(shard: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(shard) as found:
            return [one for one in found if one.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unlistable(shard, error) from error


def _unlistable(path: Path, error: OSError) -> BlobListFailed:
    return BlobListFailed(
        f"cannot list the blobs in {path}: {error.strerror or error}; make the directory readable"
    )


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
