"""The last part of every run: check each sentence, settle the status, write the end."""

from __future__ import annotations

from collections.abc import Callable

from leadline.capabilities.corpus.seam import Corpus
from leadline.research.engine.accounts import RunAccounts
from leadline.research.engine.usage import UsageCount
from leadline.research.events import BUDGET_REACHED, Drafted, Ended, Noted, RunStatus
from leadline.research.evidence.record import RunRecord
from leadline.research.methods.seam import MethodResult
from leadline.research.report.build import build_result, result_of
from leadline.research.report.evidence_list import evidence_list
from leadline.research.report.result import ResearchResult
from leadline.research.verify.judge import judge
from leadline.research.verify.registry import Checks


class Finisher:
    """Ends a run, once. Nothing that was found is dropped, however the run went."""

    def __init__(
        self,
        record: RunRecord,
        corpus: Corpus,
        checks: Checks,
        usage: UsageCount,
        now: Callable[[], str],
        accounts: RunAccounts,
    ) -> None:
        self._record = record
        self._corpus = corpus
        self._checks = checks
        self._usage = usage
        self._now = now
        self._accounts = accounts

    def finish(self, outcome: MethodResult | None, *, cancelled: str | None) -> ResearchResult:
        """Write the end and return the result, which is a fold of the log.

        Args:
            outcome: what the method returned; None when it was stopped before it could.
            cancelled: why the run was cancelled. A method that returned a report before is not undone by it.
        """
        written = self._record.ledger.draft is not None
        status, error = _settle(outcome, written, cancelled)
        over = self._accounts.told() if status in ("partial", "failed") else None
        if over is not None:
            self._record.append(Noted(text=over, of_end=True))
            error = f"{over.rstrip('.')}; {error}" if error else over.rstrip(".")
        self._list_evidence(status)
        texts = self._texts()
        self._judge(texts)
        ended = Ended(
            status=status,
            error=error,
            usage=self._usage.usage(round(self._accounts.run.seconds, 3)),
            ended_at=self._now(),
            metadata=self._metadata(over),
        )
        self._record.append(self._with_digest(ended, texts))
        return result_of(self._record.ledger, texts)

    def _metadata(self, over: str | None) -> dict[str, str | int | bool | None]:
        reached = self._accounts.reached
        return {BUDGET_REACHED: reached.ceiling} if over is not None and reached is not None else {}

    def _list_evidence(self, status: RunStatus) -> None:
        """A run with evidence and no report gets the evidence as its report."""
        ledger = self._record.ledger
        if ledger.draft is None and ledger.quotes:
            self._record.append(
                Noted(
                    text=f"The run ended {status} before a report was written; this is its evidence.",
                    of_end=True,
                )
            )
            self._record.append(Drafted(report=evidence_list(ledger), of_end=True))

    def _judge(self, texts: dict[str, str]) -> None:
        ledger = self._record.ledger
        if ledger.draft is None:
            return
        for verdict in judge(ledger.draft, ledger, texts, checks=self._checks.all):
            if (
                verdict.sentence not in ledger.verdicts
            ):  # a run that is taken up may have been given it before
                self._record.append(verdict)

    def _texts(self) -> dict[str, str]:
        """The snapshots that quotes point into, by hash."""
        ledger = self._record.ledger
        return {quote.snapshot: self._corpus.text(quote.source) for quote in ledger.quotes.values()}

    def _with_digest(self, ended: Ended, texts: dict[str, str]) -> Ended:
        result = build_result(
            self._record.ledger,
            texts,
            status=ended.status,
            usage=ended.usage,
            metadata=ended.metadata,
            error=ended.error,
            ended_at=ended.ended_at,
        )
        return Ended(
            status=ended.status,
            error=ended.error,
            usage=ended.usage,
            ended_at=ended.ended_at,
            metadata=ended.metadata,
            result_digest=result.digest,
        )


def _settle(
    outcome: MethodResult | None, written: bool, cancelled: str | None
) -> tuple[RunStatus, str | None]:
    if outcome is None or (cancelled is not None and not written):
        return "cancelled", cancelled
    return outcome.status, outcome.error
