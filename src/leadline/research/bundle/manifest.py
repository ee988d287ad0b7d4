"""The manifest of a bundle: what is in it, under which versions it was made, and the hash of every member."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

FORMAT = "leadline-bundle"
FORMAT_VERSION = 2
"""The format that is written: its ledger is the whole chain of the run's log."""

READ_VERSIONS = (1, 2)
"""Formats that are re-checked. In 1, lines of the log that are no facts of the run were left out without a trace."""

MANIFEST = "manifest.json"
REPORT_MD = "report.md"
REPORT_HTML = "report.html"
RESULT = "result.json"
LEDGER = "ledger.jsonl"
SNAPSHOTS = "snapshots/"


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One member beside the manifest."""

    sha256: str
    size: int
    """In bytes."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the bundle says of itself."""

    format: str
    version: int
    run: str
    status: str
    checks_version: str
    tool_version: str
    members: dict[str, Member]
    root: str
    """sha256 over the sorted lines `<sha256>  <size>  <name>` of the members."""

    def to_json(self) -> bytes:
        """Readable, and the same bytes every time."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=2) + b"\n"


def table_of(members: Mapping[str, bytes]) -> dict[str, Member]:
    """The member table of these members, the manifest left out."""
    return {
        name: Member(sha256=hashlib.sha256(members[name]).hexdigest(), size=len(members[name]))
        for name in sorted(members)
        if name != MANIFEST
    }


def root_of(table: Mapping[str, Member]) -> str:
    """The root hash of a member table."""
    lines = (f"{table[name].sha256}  {table[name].size}  {name}\n" for name in sorted(table))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def snapshot_name(text_sha256: str) -> str:
    """The member that holds a snapshot."""
    return f"{SNAPSHOTS}{text_sha256}.txt"
