"""What goes back to a writer, and for how long: first everything that could be better, then only what must be."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.core.llm.jsonvalue import JsonValue
from leadline.research.events import Report
from leadline.research.ledger.leaves import leaves
from leadline.research.ledger.ledger import Ledger
from leadline.research.report.draft import check_report, clean_report, parse_report, report_errors

ADVICE_ROUNDS = 2
"""Reports that are sent back over sentences whose evidence does not carry them; later ones are published marked."""
ERROR_ROUNDS = 4
"""Reports that are sent back at all; a later one is cleaned by code, which drops what cannot be rendered."""


class WriterGate:
    """Judges the reports that one writer hands in, in turn."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._handed_in = 0
        self.last: JsonValue = None
        """The latest report that could be rendered, accepted or not."""

    def problems(self, value: JsonValue) -> Sequence[str]:
        """What the writer is told to mend; empty accepts the report."""
        report, errors = parse_report(value)
        if report is None:
            return errors
        self._handed_in += 1
        if not report_errors(report, self._ledger):
            self.last = value
        if self._handed_in <= ADVICE_ROUNDS:
            return check_report(report, self._ledger)
        return report_errors(report, self._ledger) if self._handed_in <= ERROR_ROUNDS else ()

    def accepted(self, value: JsonValue) -> tuple[Report | None, Sequence[str]]:
        """The report, fit to be rendered, and notes on what was taken out of it; None if nothing is left
        that evidence carries."""
        report, errors = parse_report(value)
        if report is None:
            return None, errors
        cleaned, notes = clean_report(report, self._ledger)
        left = report_errors(cleaned, self._ledger)
        if not left and not any(leaf.evidence for _, leaf in leaves(cleaned)):
            left = ["the writer cited no evidence that is on record"]
        return (None, left) if left else (cleaned, notes)
