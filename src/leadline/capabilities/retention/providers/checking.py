"""Everything that is checked of an exported file before any of it is stored. The file may come from anybody."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from leadline.capabilities.retention.providers import container, manifest
from leadline.capabilities.retention.providers.container import Damaged, Member, NotOfThisForm
from leadline.capabilities.retention.providers.manifest import (
    MAX_BLOB_BYTES,
    MAX_MANIFEST_BYTES,
    BesidePlace,
    BlobPlace,
    Manifest,
    SessionMember,
)
from leadline.capabilities.retention.providers.scan import LogCheck, SessionIds
from leadline.capabilities.retention.seam import ImportRefused, NotAnExport
from leadline.core.session.codec import Header

_NEXT = "Ask for the file again from whoever exported it; nothing of it was stored."
_TOLD = 20
"""Most problems of one file that are told."""


@dataclass(frozen=True)
class Incoming:
    """A file that keeps every rule."""

    manifest: Manifest
    members: dict[str, Member]
    headers: dict[str, Header]
    """By session id."""
    problems: tuple[str, ...]
    """What is wrong with logs that were exported as they stood."""

    @property
    def in_order(self) -> list[SessionMember]:
        """The sessions in the order in which they have to be stored: the root last."""
        root = self.manifest.root
        return sorted(
            self.manifest.sessions,
            key=lambda one: (one.id == root, -self.headers[one.id].depth, one.id),
        )


def check(file: BinaryIO, path: Path) -> Incoming:
    """Read the whole file `path`, open as `file`, and hold it to every rule.

    Raises:
        NotAnExport, ImportRefused: as they say.
    """
    try:
        members = {one.name: one for one in container.read(file)}
        found = _manifest(file, path, members)
        problems = list(_differences(found, members))
        if not problems:
            return _contents(file, path, found, members)
    except NotOfThisForm as error:
        raise NotAnExport(path, str(error)) from error
    except Damaged as error:
        first = container.first_name(file)
        if first and not first.startswith((manifest.NAME, *manifest.FOLDERS)):
            cause = f"it begins with {first[:60]}; if it is a bundle, `leadline verify` checks it"
            raise NotAnExport(path, cause) from error
        raise ImportRefused(path, [str(error)], _NEXT) from error
    raise ImportRefused(path, problems[:_TOLD], _NEXT)


def read_all(file: BinaryIO, member: Member) -> bytes:
    """A member in one piece.

    Raises:
        Damaged: the file became shorter meanwhile.
    """
    return b"".join(container.content(file, member))


def _manifest(file: BinaryIO, path: Path, members: dict[str, Member]) -> Manifest:
    member = members.get(manifest.NAME)
    if member is None:
        raise NotAnExport(path, f"it has no {manifest.NAME}")
    if member.size > MAX_MANIFEST_BYTES:
        raise Damaged(f"its manifest has {member.size} bytes, more than {MAX_MANIFEST_BYTES}")
    found = manifest.decoded(read_all(file, member))
    if isinstance(found, str):
        raise NotAnExport(path, found)
    return found


def _differences(found: Manifest, members: dict[str, Member]) -> Iterator[str]:
    """Where the manifest and the members do not say the same."""
    listed: dict[str, int] = {}
    claims = [
        *((manifest.session_name(one.id), one.bytes) for one in found.sessions),
        *((manifest.beside_name(one.session, one.name), one.bytes) for one in found.beside),
        *((manifest.blob_name(one.sha256), one.bytes) for one in found.blobs),
    ]
    for name, size in claims:
        if name in listed:
            yield f"the manifest lists {name[:100]!r} twice"
        listed[name] = size
    for name, member in members.items():
        if name == manifest.NAME:
            continue
        place = manifest.place_of(name)
        if place is None:
            yield f"an export has no member {name!r}"
        elif name not in listed:
            yield f"the manifest does not list {name}"
        elif listed[name] != member.size:
            yield f"the manifest says that {name} has {listed[name]} bytes; it has {member.size}"
        if isinstance(place, BlobPlace) and member.size > MAX_BLOB_BYTES:
            yield f"{name} has {member.size} bytes, more than the {MAX_BLOB_BYTES} that a blob may have"
    for name in listed:
        if name not in members:
            yield f"{name[:100]!r} is listed and not there"
    yield from _odd_ids(found, members)


def _odd_ids(found: Manifest, members: dict[str, Member]) -> Iterator[str]:
    ids = [one.id for one in found.sessions]
    if found.root not in ids:
        yield f"its root {found.root[:100]!r} is not among its sessions"
    if len({one.casefold() for one in ids}) < len(ids):
        yield "two of its sessions have the same id but for capital letters"
    beside: dict[str, int] = {}
    for name, member in members.items():
        place = manifest.place_of(name)
        if isinstance(place, BesidePlace):
            beside[place.session] = beside.get(place.session, 0) + member.size
            if place.session not in ids:
                yield f"{name} stands beside a session that is not in the file"
    for session_id, size in beside.items():
        if size > MAX_BLOB_BYTES:
            yield f"{size} bytes stand beside session {session_id}, more than {MAX_BLOB_BYTES}"


def _contents(file: BinaryIO, path: Path, found: Manifest, members: dict[str, Member]) -> Incoming:
    refused: list[str] = []
    told: list[str] = []
    headers: dict[str, Header] = {}
    named: set[str] = set()
    for one in found.sessions:
        log = _followed(file, members[manifest.session_name(one.id)])
        refused += _log_differences(one, log)
        told += [f"session {one.id}, {problem}" for problem in log.problems]
        if log.header is not None:
            headers[one.id] = log.header
            if log.header.forked_at is not None and one.id == found.root:
                named = _named(file, members[manifest.session_name(one.id)], {it.id for it in found.sessions})
    sums = {
        **{manifest.beside_name(one.session, one.name): one.sha256 for one in found.beside},
        **{manifest.blob_name(one.sha256): one.sha256 for one in found.blobs},
    }
    for name, sha256 in sums.items():
        digest = hashlib.sha256()
        for chunk in container.content(file, members[name]):
            digest.update(chunk)
        if digest.hexdigest() != sha256:
            refused.append(f"the bytes of {name} do not have the hash that they are listed under")
    if not refused:
        refused += _odd_links(found.root, headers, named - {found.root})
    if refused:
        raise ImportRefused(path, refused[:_TOLD], _NEXT)
    return Incoming(found, members, headers, tuple(told[:_TOLD]))


def _followed(file: BinaryIO, member: Member) -> LogCheck:
    log = LogCheck()
    for chunk in container.content(file, member):
        log.feed(chunk)
    log.end()
    return log


def _named(file: BinaryIO, member: Member, wanted: set[str]) -> set[str]:
    ids = SessionIds(wanted)
    for chunk in container.content(file, member):
        ids.feed(chunk)
    return ids.found


def _log_differences(listed: SessionMember, log: LogCheck) -> Iterator[str]:
    """What forbids taking in a log."""
    who = f"session {listed.id}"
    header = log.header
    if log.newer_format is not None:
        yield f"{who} needs a version of Leadline that reads format {log.newer_format} or later"
    elif header is None:
        yield f"{who} has no header that can be used"
    elif header.id != listed.id:
        yield f"the header of {who} says that it is session {header.id[:100]!r}"
    elif (header.parent, header.kind) != (listed.parent, listed.kind):
        yield f"the header of {who} is not the one that the manifest tells of"
    if log.sha256 != listed.sha256:
        yield f"the log of {who} does not have the hash that it is listed under"
    elif (log.events, log.digest) != (listed.events, listed.digest):
        yield f"the chain of {who} does not end where the manifest says"
    elif listed.sound and log.problems:
        yield f"the chain of {who} is broken: {log.problems[0]}"


def _odd_links(root: str, headers: dict[str, Header], named: set[str]) -> Iterator[str]:
    """Sessions that do not belong to the family of `root`; `named`: those that its log names, if it is a fork."""
    if headers[root].parent in headers:
        yield f"its root {root} says that it was made for session {headers[root].parent}, which is in the file"
    reached: set[str] = set()
    pending = [root]
    children: dict[str | None, list[str]] = {}
    for session_id, header in headers.items():
        children.setdefault(header.parent, []).append(session_id)
        if header.forked_at is not None and session_id != root:
            yield f"session {session_id} is a fork, and not the root"
    pending += [one for one in named if headers[one].parent not in headers]
    for one in pending:
        reached.add(one)
        pending += [child for child in children.get(one, ()) if child not in reached]
    for session_id in sorted(headers.keys() - reached):
        parent = headers[session_id].parent
        yield f"session {session_id} was made for {parent!r}, which is not of the family of {root}"
