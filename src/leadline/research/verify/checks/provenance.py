"""Check: every cited source was retrieved in this run, with an outcome that may be evidence."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.check import CheckResult, Cited, Sentence


class ProvenanceCheck:
    """Whether the evidence comes from documents that this run itself retrieved."""

    name = "provenance"
    version = 1
    establishes = (
        "A pass establishes that each cited quote was taken from a document which this run retrieved with the "
        "outcome ok or partial. It says nothing about whether the document is right or fit to be cited."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        unknown = [one for one in sentence.evidence if one not in ledger.quotes]
        if unknown:
            return CheckResult("fail", f"no quote on record with the id {', '.join(unknown)}")
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        for one in cited:
            if one.source is None:
                return CheckResult(
                    "fail", f"{one.quote.id}: the source {one.quote.source} was never retrieved"
                )
            if not ledger.usable(one.source.id):
                why = one.source.reason or "no text was had from it"
                return CheckResult(
                    "fail",
                    f"{one.quote.id}: reading {one.source.location} ended as {one.source.outcome} ({why})",
                )
            if one.source.snapshot != one.quote.snapshot:
                return CheckResult(
                    "fail", f"{one.quote.id}: the quote is of another version than the one retrieved"
                )
        return CheckResult("pass")
