"""Check: numbers with their units, and dates, stand in the cited quotes."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.alignment import align, same_token
from leadline.research.verify.check import (
    CheckResult,
    Cited,
    Sentence,
    listed,
    quote_words,
    source_words,
)
from leadline.research.verify.figures import Figure, agreement, figures, same_unit
from leadline.research.verify.tokens import Token


class FiguresCheck:
    """Whether each figure of a sentence occurs in its quotes with the same value and unit."""

    name = "figures"
    version = 1
    establishes = (
        "A pass establishes that every number (with its unit, scale and currency) and every date of the sentence "
        "occurs in a cited quote, in the title or date of a cited source, or in the request. It cannot tell whether "
        "the figure belongs to the thing that the sentence speaks of. It finds a contradiction only where sentence "
        "and quote agree in every word but one figure."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        wanted = [one for one in figures(sentence.text) if one.required]
        if not wanted:
            return CheckResult("not_applicable", "no figures")
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        pool = figures(quote_words(cited))
        opposed = _opposed(sentence, cited)
        if opposed:
            said, quoted, evidence = opposed
            return CheckResult("contradicts", f"the sentence says “{said}” where {evidence} says “{quoted}”")
        pool = (*pool, *figures(source_words(cited)), *figures(ledger.request.words))
        found = [(one, agreement(one, pool)) for one in wanted]
        absent = [one.surface for one, how in found if how == "absent"]
        if absent:
            return CheckResult("fail", f"{listed(absent)} not in the cited quotes")
        possible = [one.surface for one, how in found if how == "possible"]
        if possible:
            return CheckResult(
                "unsure",
                f"{listed(possible)}: the quotes have the value, but not surely with this unit or spelling",
            )
        return CheckResult("pass")


def figures_without_evidence(text: str, ledger: Ledger) -> tuple[str, ...]:
    """Figures of a text that are not in the request: what an uncited sentence may not state."""
    pool = figures(ledger.request.words)
    return tuple(one.surface for one in figures(text) if one.required and agreement(one, pool) != "same")


def _opposed(sentence: Sentence, cited: Sequence[Cited]) -> tuple[str, str, str] | None:
    """A figure of the sentence and the other figure that a quote, otherwise in the same words, has."""
    for part in sentence.parts:
        if any(align(part, one.quote.text, whole=False) for one in cited):
            continue
        for one in cited:
            laid = align(part, one.quote.text, equal=_same_or_other_figure, whole=False)
            if laid is None:
                continue
            differing = [
                (left.figure, right.figure)
                for left, right in laid.pairs
                if left.figure and right.figure and not same_token(left, right)
            ]
            if len(differing) == 1 and _excludes(*differing[0]) and len(laid.pairs) >= 3:
                return differing[0][0].surface, differing[0][1].surface, one.quote.id
    return None


def _excludes(left: Figure, right: Figure) -> bool:
    """Whether one of the two figures being right makes the other wrong; of two years both can be."""
    return not left.is_year and not right.is_year and agreement(left, (right,)) == "absent"


def _same_or_other_figure(left: Token, right: Token) -> bool:
    if left.figure and right.figure:
        return same_token(left, right) or same_unit(left.figure, right.figure)
    return same_token(left, right)
