"""What goes back to a writer, and for how long: first everything that could be better, then only what must be."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.tokens import text_tokens
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

    def __init__(self, ledger: Ledger, most_tokens: int | None = None) -> None:
        """`most_tokens`: what the writer is told at once; None: everything."""
        self._ledger = ledger
        self._most_tokens = most_tokens
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
            return self._first(check_report(report, self._ledger))
        return self._first(report_errors(report, self._ledger)) if self._handed_in <= ERROR_ROUNDS else ()

    def _first(self, problems: Sequence[str]) -> Sequence[str]:
        """As many problems as the writer is told at once, at least one, and how many there are besides."""
        left = self._most_tokens
        if left is None:
            return problems
        told: list[str] = []
        for problem in problems:
            left -= text_tokens(problem)
            if told and left < 0:
                return [*told, f"and {len(problems) - len(told)} more of the same kinds"]
            told.append(problem)
        return told

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
