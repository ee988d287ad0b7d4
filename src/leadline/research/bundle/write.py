"""Writing a bundle: everything in it is made again from the ledger and the snapshots."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from leadline.research.bundle.archive import pack
from leadline.research.bundle.ledger_lines import join_lines, read_events
from leadline.research.bundle.manifest import (
    FORMAT,
    FORMAT_VERSION,
    LEDGER,
    MANIFEST,
    REPORT_HTML,
    REPORT_MD,
    RESULT,
    Manifest,
    root_of,
    snapshot_name,
    table_of,
)
from leadline.research.ledger.ledger import Ledger
from leadline.research.report.build import result_of
from leadline.research.report.html import render_html


def write_bundle(path: Path, lines: Iterable[bytes], texts: Mapping[str, str], *, tool_version: str) -> str:
    """Write the bundle of a run that has ended; returns its digest, the sha256 of the whole file.

    Args:
        path: where to; replaced as a whole or not at all.
        lines: those of the run's log, as `ledger_lines.bundled` gives them.
        texts: snapshot texts by sha256; those that the ledger names go into the bundle.
        tool_version: version of this program.

    Raises:
        ResultNotEnded: the lines hold no Ended event.
        BundleTooLarge: the snapshots are beyond the limit of a bundle.
        OSError: the file cannot be written; nothing is left behind.
    """
    members = bundle_members(lines, texts, tool_version=tool_version)
    digest = hashlib.sha256()
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as out:
            for piece in pack(members):
                digest.update(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def bundle_members(
    lines: Iterable[bytes], texts: Mapping[str, str], *, tool_version: str
) -> dict[str, bytes]:
    """The members of the bundle by name, the manifest included.

    Raises:
        ResultNotEnded: the lines hold no Ended event.
    """
    ledger_member = join_lines(lines)
    events, _ = read_events(ledger_member)
    ledger = Ledger.of(events)
    members = {LEDGER: ledger_member, **rendered_members(ledger, texts)}
    for sha in sorted(named_snapshots(ledger)):
        if sha in texts:
            members[snapshot_name(sha)] = texts[sha].encode("utf-8", "surrogatepass")
    members[MANIFEST] = _manifest(ledger, members, tool_version).to_json()
    return members


def rendered_members(ledger: Ledger, texts: Mapping[str, str]) -> dict[str, bytes]:
    """The members that follow from ledger and snapshots alone.

    Raises:
        ResultNotEnded: the run has not ended.
    """
    result = result_of(ledger, texts)
    return {
        RESULT: result.to_json() + b"\n",
        REPORT_MD: result.report.encode(),
        REPORT_HTML: render_html(result, ledger.draft).encode(),
    }


def named_snapshots(ledger: Ledger) -> frozenset[str]:
    """Hashes of the snapshots that belong into the bundle: of every quote, and of every source that was read."""
    quoted = {quote.snapshot for quote in ledger.quotes.values()}
    read = {ledger.sources[one.source].snapshot for one in ledger.reads if one.source in ledger.sources}
    return frozenset(sha for sha in quoted | read if sha)


def _manifest(ledger: Ledger, members: Mapping[str, bytes], tool_version: str) -> Manifest:
    table = table_of(members)
    started, ended = ledger.started, ledger.ended
    return Manifest(
        format=FORMAT,
        version=FORMAT_VERSION,
        run=started.run if started else "",
        status=ended.status if ended else "",
        checks_version=started.checks_version if started else "",
        tool_version=tool_version,
        members=table,
        root=root_of(table),
    )
