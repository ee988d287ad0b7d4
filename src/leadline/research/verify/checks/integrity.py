"""Check: every cited quote stands in its snapshot at its offsets, and the page follows from the offset."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from leadline.research.ledger.ledger import Ledger, page_at
from leadline.research.verify.check import CheckResult, Cited, Sentence


class IntegrityCheck:
    """Whether the quotes are spans of the stored text."""

    name = "integrity"
    version = 1
    establishes = (
        "A pass establishes that each cited quote stands word for word in the stored text at the recorded offsets, "
        "that the text is the one whose hash is recorded, and that a page number follows from the offset. "
        "It says nothing about what the quote means."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        for one in cited:
            fault = _fault(one)
            if fault:
                return CheckResult("fail", f"{one.quote.id}: {fault}")
        return CheckResult("pass")


def _fault(one: Cited) -> str | None:
    quote = one.quote
    if one.text is None:
        return "the stored text is missing"
    if text_digest(one.text) != quote.snapshot:
        return "the stored text is not the one that was quoted (its hash differs)"
    if not 0 <= quote.start < quote.end <= len(one.text) or one.text[quote.start : quote.end] != quote.text:
        return "the quote does not stand in the stored text at its offsets"
    if quote.page is not None and (one.source is None or page_at(one.source, quote.start) != quote.page):
        return f"page {quote.page} does not follow from the offset of the quote"
    return None


@lru_cache(maxsize=64)
def text_digest(text: str) -> str:
    """sha256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
