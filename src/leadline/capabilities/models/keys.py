"""Keys that `leadline login` stored: in the keyring of the system, else in a file that its owner alone may read.

One file in the home directory says which provider's key is where. A key never stands in an error, a
representation or a log.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from leadline.capabilities.models.seam import KeyStoreError

FILE = "credentials.json"
Place = Literal["keyring", "file"]
_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700
_VERSION = 1


class Keyring(Protocol):
    """What is used of the package `keyring`."""

    def get_password(self, service_name: str, username: str) -> str | None: ...
    def set_password(self, service_name: str, username: str, password: str) -> None: ...
    def delete_password(self, service_name: str, username: str) -> None: ...


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key and where it is stored."""

    place: Place
    key: str = field(repr=False)


class KeyStore:
    """The stored keys of one home directory. Nothing is read before it is asked for."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / FILE
        self._read: tuple[tuple[int, int], Mapping[str, str | None]] | None = None
        self._from_keyring: dict[str, str] = {}

    @property
    def path(self) -> Path:
        """The file; it need not be there."""
        return self._path

    def get(self, provider: str) -> StoredKey | None:
        """The stored key of a provider.

        Raises:
            KeyStoreError: the file or the keyring cannot be used.
        """
        entries = self._entries()
        if provider not in entries:
            return None
        key = entries[provider]
        if key is not None:
            return StoredKey("file", key)
        if provider not in self._from_keyring:
            found = self._ask_keyring(provider)
            if not found:
                raise KeyStoreError(
                    f"the key of {provider} is no longer in the keyring; store it again: leadline login {provider}"
                )
            self._from_keyring[provider] = found
        return StoredKey("keyring", self._from_keyring[provider])

    def put(self, provider: str, key: str, place: Place | None = None) -> Place:
        """Store a key, in `place` or in the keyring where there is one; returns where it is now.

        Raises:
            KeyStoreError: it could not be stored; what was there before is there still.
        """
        entries = dict(self._entries())
        ring = None if place == "file" else _keyring()
        if ring is None and place == "keyring":
            raise KeyStoreError(
                "there is no keyring to use here; install leadline[keyring] and a backend, or leave --store out"
            )
        if ring is not None:
            try:
                ring.set_password(self._service, provider, key)
            except Exception as error:  # noqa: BLE001 - backends fail in ways of their own, and may tell the key
                if place == "keyring":
                    raise KeyStoreError(f"the keyring took no key: {type(error).__name__}") from None
                ring = None
        entries[provider] = None if ring is not None else key
        self._write(entries)
        self._from_keyring.pop(provider, None)
        return "keyring" if ring is not None else "file"

    def remove(self, provider: str) -> bool:
        """Forget the key of a provider; whether there was one.

        Raises:
            KeyStoreError: it could not be removed.
        """
        entries = dict(self._entries())
        if provider not in entries:
            return False
        if entries.pop(provider) is None and (ring := _keyring()) is not None:
            try:
                ring.delete_password(self._service, provider)
            except Exception as error:  # noqa: BLE001 - any backend; what is gone already is as wanted
                if type(error).__name__ != "PasswordDeleteError":
                    raise KeyStoreError(
                        f"the keyring did not remove the key: {type(error).__name__}"
                    ) from None
        self._from_keyring.pop(provider, None)
        self._write(entries)
        return True

    @property
    def _service(self) -> str:
        return f"leadline {self._home}"

    def _ask_keyring(self, provider: str) -> str | None:
        ring = _keyring()
        if ring is None:
            raise KeyStoreError(
                f"the key of {provider} is in a keyring that cannot be used here; store it again: leadline login {provider}"
            )
        try:
            return ring.get_password(self._service, provider)
        except Exception as error:  # noqa: BLE001 - backends fail in ways of their own
            raise KeyStoreError(f"the keyring did not answer: {type(error).__name__}") from None

    def _entries(self) -> Mapping[str, str | None]:
        """Provider to key; None: it is in the keyring."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - at each call of a model, and `Path.stat` takes twice as long
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise KeyStoreError(f"cannot read {self.path}: {error.strerror or error}") from None
        if os.name == "posix" and stat.S_IMODE(found.st_mode) & 0o077:
            raise KeyStoreError(
                f"{self.path} can be read by others and is not used; run: chmod 600 {self.path}"
            )
        mark = (found.st_mtime_ns, found.st_ino)
        if self._read is None or self._read[0] != mark:
            self._read = mark, self._parsed()
            self._from_keyring.clear()
        return self._read[1]

    def _parsed(self) -> Mapping[str, str | None]:
        # The text of a parser's complaint could hold a piece of a key, so that none is passed on.
        try:
            raw: object = json.loads(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise KeyStoreError(f"cannot read {self.path}: {error.strerror or error}") from None
        except ValueError:
            raw = None
        table = cast("dict[str, object]", raw) if isinstance(raw, dict) else {}
        keys = table.get("keys")
        if table.get("version") != _VERSION or not isinstance(keys, dict):
            raise KeyStoreError(
                f"{self.path} is damaged or of another version; remove it and log in again: leadline login PROVIDER"
            )
        return {
            str(name): key if isinstance(key, str) else None
            for name, key in cast("dict[object, object]", keys).items()
        }

    def _write(self, entries: Mapping[str, str | None]) -> None:
        text = json.dumps({"version": _VERSION, "keys": dict(sorted(entries.items()))}, indent=1)
        try:
            self._home.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            write_private(self.path, text)
        except OSError as error:
            raise KeyStoreError(f"cannot write {self.path}: {error.strerror or error}") from None
        self._read = None


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone may read: all of it, safe from a power cut, or nothing.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    import tempfile  # noqa: PLC0415  needed only where something is written

    # mkstemp makes it with mode 0600, so that there is no moment in which others could open it.
    number, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    made = Path(name)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        made.chmod(_PRIVATE_FILE)
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _keyring() -> Keyring | None:
    """The keyring of the system, where the package is installed and has something to keep keys in."""
    try:
        module = import_module("keyring")
        backend: object = module.get_keyring()
        usable = float(getattr(backend, "priority", 1)) > 0
    except Exception:  # noqa: BLE001 - an optional package, whose backends fail in ways of their own
        return None
    return cast("Keyring", module) if usable else None
