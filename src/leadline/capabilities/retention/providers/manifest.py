"""What stands in an exported file beside the logs and blobs, and how its members are named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from leadline.core.session.blobs import is_hash
from leadline.core.session.codec import valid_id

NAME = "manifest.json"
FOLDERS = ("sessions/", "beside/", "blobs/")
FORM = "leadline-session"
VERSION = 1
"""The newest version of an exported file that this version reads, and the one that it writes."""

MAX_MANIFEST_BYTES = 32 << 20
MAX_BLOB_BYTES = 1 << 30
"""Ceiling on one blob, and on all that a session has beside its log: they are held in memory."""

_BESIDE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


class SessionMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log in the file."""

    id: str
    parent: str | None
    kind: str
    bytes: int
    sha256: str
    """Of the log's bytes."""
    events: int
    """Lines that continue the chain."""
    digest: str
    """The end of the chain."""
    sound: bool
    """Whether every line continues the chain."""


class BesideMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Damage that was moved out of a log."""

    session: str
    name: str
    bytes: int
    sha256: str


class BlobMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A blob that a log names."""

    sha256: str
    bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The list of everything in the file."""

    form: Literal["leadline-session"] = FORM
    version: int = VERSION
    root: str
    """Id of the session or run that was exported."""
    sessions: tuple[SessionMember, ...]
    beside: tuple[BesideMember, ...] = ()
    blobs: tuple[BlobMember, ...] = ()


class _VersionOnly(msgspec.Struct):
    form: str
    version: int


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """The name of a member that holds a log."""

    id: str


@dataclass(frozen=True, slots=True)
class BesidePlace:
    """The name of a member that holds something that stood beside a log."""

    session: str
    name: str


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """The name of a member that holds a blob."""

    sha256: str


Place: TypeAlias = SessionPlace | BesidePlace | BlobPlace


def session_name(session_id: str) -> str:
    """The member that holds the log of a session."""
    return f"sessions/{session_id}.jsonl"


def beside_name(session_id: str, name: str) -> str:
    """The member that holds what stands beside a log under `name`."""
    return f"beside/{session_id}/{name}"


def blob_name(sha256: str) -> str:
    """The member that holds a blob."""
    return f"blobs/{sha256}"


def can_stand_beside(name: str) -> bool:
    """Whether `name` is one that a store may give to what it keeps beside a log."""
    return _BESIDE.fullmatch(name) is not None


def place_of(name: str) -> Place | None:
    """What the member `name` holds; None where an export has no such member."""
    match name.split("/"):
        case ["sessions", file] if file.endswith(".jsonl") and valid_id(file.removesuffix(".jsonl")):
            return SessionPlace(file.removesuffix(".jsonl"))
        case ["beside", session, file] if valid_id(session) and can_stand_beside(file):
            return BesidePlace(session, file)
        case ["blobs", sha256] if is_hash(sha256):
            return BlobPlace(sha256)
        case _:
            return None


def encoded(manifest: Manifest) -> bytes:
    """The bytes of the manifest member."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def decoded(data: bytes) -> Manifest | str:
    """The manifest in `data`, or why there is none that this version can use."""
    try:
        asked = msgspec.json.decode(data, type=_VersionOnly)
        if asked.form != FORM:
            return f"it says that it is a {asked.form[:40]!r}"
        if asked.version > VERSION:
            return f"it needs a version of Leadline that reads exports of version {asked.version}"
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError) as error:
        return f"its manifest cannot be read: {error}"
