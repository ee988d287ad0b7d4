"""A run as it stands in the store: its ledger, its log lines and the texts that its quotes point into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import BlobDamaged, BlobMissing
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.kernel.errors import LeadlineError
from leadline.research.bundle.ledger_lines import bundled
from leadline.research.bundle.write import named_snapshots, write_bundle
from leadline.research.events import Drafted, RunUsage
from leadline.research.evidence.record import facts_of
from leadline.research.ledger.ledger import Ledger
from leadline.research.report.build import build_result, result_of
from leadline.research.report.evidence_list import evidence_list
from leadline.research.report.result import ResearchResult
from leadline.research.verify.judge import judge
from leadline.version import __version__


class NotARun(LeadlineError):
    """The session is not a run, so it has no report."""

    def __init__(self, session: Session) -> None:
        super().__init__(
            f"session {session.id} is of kind {session.header.kind!r}, not a research run; "
            f"`leadline show {session.id}` prints its transcript"
        )


@dataclass(frozen=True)
class StoredRun:
    """What is known of a run, whoever wrote it and whether or not it ended."""

    id: str
    ledger: Ledger
    lines: tuple[bytes, ...]
    """The log as a bundle has it: facts of the run as logged, of other lines the hash."""
    texts: Mapping[str, str] = field(repr=False)
    """Snapshot texts by sha256; those that the blob store has lost are absent."""

    @property
    def interrupted(self) -> bool:
        """Whether its log stops before its end."""
        return self.ledger.ended is None

    @property
    def complete(self) -> bool:
        """Whether it came to its end with nothing left to do."""
        return self.ledger.ended is not None and self.ledger.ended.status == "completed"

    def result(self) -> ResearchResult:
        """The result; of a run that did not end, what it had found, with status `cancelled` and the reason."""
        if not self.interrupted:
            return result_of(self.ledger, self.texts)
        ledger = self.ledger
        if ledger.draft is None and ledger.quotes:
            ledger.add(Drafted(report=evidence_list(ledger)))
        if ledger.draft is not None:
            for verdict in judge(ledger.draft, ledger, self.texts):
                if ledger.verdict(verdict.sentence) is None:
                    ledger.add(verdict)
        return build_result(
            ledger,
            self.texts,
            status="cancelled",
            usage=RunUsage(),
            metadata={},
            error="the run was interrupted before its end",
        )

    def write_bundle(self, path: Path) -> str:
        """Write the run into one file; returns the file's digest.

        Raises:
            ResultNotEnded: the run has no end yet.
            BundleTooLarge, OSError: the file cannot be written.
        """
        return write_bundle(path, self.lines, self.texts, tool_version=__version__)


async def load_run(store: SessionStore, blobs: Blobs, run_id: str) -> StoredRun:
    """The run with this id, whatever state its log is in.

    Raises:
        SessionNotFound: there is no session of that id.
        NotARun: the session is something else.
    """
    session = await store.read(run_id)
    if session.header.kind != "research":
        raise NotARun(session)
    ledger = Ledger.of(facts_of(session))
    return StoredRun(session.id, ledger, tuple(bundled(session.logged)), _texts(ledger, blobs))


def _texts(ledger: Ledger, blobs: Blobs) -> dict[str, str]:
    texts: dict[str, str] = {}
    for sha in sorted(named_snapshots(ledger)):
        try:
            texts[sha] = blobs.get(sha).decode("utf-8", "surrogatepass")
        except (BlobMissing, BlobDamaged):
            continue
    return texts
