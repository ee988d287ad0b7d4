"""Check: a quote was not cut out of a sentence that denies or weakens it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.blocks import unmarked
from leadline.research.verify.check import CheckResult, Cited, Sentence
from leadline.research.verify.tokens import refuses, tokens

REACH = 300
"""Code points that are looked at on each side of a quote."""

_ITEM = r"(?:[-*+•‣◦·–]|\(?\d{1,3}[.)])[ \t]"
_BORDER = re.compile(
    r"^[ \t]*#{1,6}[ \t][^\n]*|[.!?。！？](?=[\s\"'”’)\]*_]|\Z)|[。！？]|\n\s*\n|\|"
    rf"|\n\s*(?={_ITEM}|#{{1,6}}[ \t]|\|)",
    re.MULTILINE,
)
_LISTED = re.compile(rf"[ \t]*{_ITEM}|[ \t]+\S|[ \t]*$")
MAX_LIST_LINES = 60
"""Lines that are looked at above a quote for the words that introduce its list."""


class ContextCheck:
    """Whether the rest of the sentence from which a quote was cut takes it back."""

    name = "context"
    version = 1
    establishes = (
        "A pass establishes that the sentence of the document from which a quote was cut has no negation, condition, "
        "reservation or attribution outside the quote, and that the words which introduce its list do not refuse what "
        "is listed. It does not look beyond that sentence and those words."
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
            introduction = _introduction(one.text, one.quote.start)
            if introduction and refuses(introduction):
                return CheckResult(
                    "unsure", f"{one.quote.id} stands in a list under “{introduction[:80]}”; read it whole"
                )
        return CheckResult("pass")


def _left_out(text: str, start: int, end: int) -> str | None:
    origin = max(0, start - REACH)
    begins, ends = origin, min(len(text), end + REACH)
    for border in _BORDER.finditer(text[origin:ends]):
        if origin + border.end() <= start:
            begins = origin + border.end()
        elif border.group().lstrip().startswith("#") and origin + border.end() >= end:
            ends = origin + border.end()
            break
        elif origin + border.start() >= end - 1:
            ends = max(end, origin + border.start())
            break
    rest = (*tokens(text[begins:start]), *tokens(text[end:ends]))
    return next((token.surface for token in rest if token.reserves), None)


def _introduction(text: str, start: int) -> str | None:
    """The line ending with a colon that introduces the list in which an offset lies."""
    line_start = text.rfind("\n", 0, start) + 1
    if not re.match(rf"[ \t]*{_ITEM}", text[line_start : line_start + 40]):
        return None
    for _ in range(MAX_LIST_LINES):
        if line_start == 0:
            return None
        line_end = line_start - 1
        line_start = text.rfind("\n", 0, line_end) + 1
        line = text[line_start:line_end]
        if not _LISTED.match(line):
            words = unmarked(line).rstrip()
            return words if words.endswith((":", "：")) else None
    return None
