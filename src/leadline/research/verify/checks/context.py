"""Check: a quote was not cut out of a sentence that denies or weakens it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.check import CheckResult, Cited, Sentence
from leadline.research.verify.tokens import tokens

REACH = 300
"""Code points that are looked at on each side of a quote."""

_BORDER = re.compile(r"[.!?。！？](?=[\s\"'”’)\]]|$)|[。！？]|\n\s*\n|\||\n\s*(?=[-*#•\d])")


class ContextCheck:
    """Whether the rest of the sentence from which a quote was cut takes it back."""

    name = "context"
    version = 1
    establishes = (
        "A pass establishes that the sentence of the document from which a quote was cut has no negation, condition, "
        "reservation or attribution outside the quote. It does not look beyond that sentence."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        for one in cited:
            if one.text is None or one.text[one.quote.start : one.quote.end] != one.quote.text:
                continue  # the integrity check tells
            word = _left_out(one.text, one.quote.start, one.quote.end)
            if word:
                return CheckResult(
                    "unsure", f"{one.quote.id} is cut from a sentence that also says “{word}”; read it whole"
                )
        return CheckResult("pass")


def _left_out(text: str, start: int, end: int) -> str | None:
    before, after = text[max(0, start - REACH) : start], text[end : end + REACH]
    borders = list(_BORDER.finditer(before))
    head = before[borders[-1].end() :] if borders else before
    if _BORDER.match(text[end - 1 : end + 1]):
        tail = ""
    else:
        border = _BORDER.search(after)
        tail = after[: border.start()] if border else after
    return next((token.surface for token in (*tokens(head), *tokens(tail)) if token.reserves), None)
