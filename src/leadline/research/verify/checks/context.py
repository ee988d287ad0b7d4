"""Check: a quote was not cut out of a sentence that denies or weakens it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leadline.core.patterns import lazy_pattern
from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.blocks import is_table_line, unmarked
from leadline.research.verify.check import CheckResult, Cited, Sentence, records_of
from leadline.research.verify.tokens import refuses, tokens

REACH = 300
"""Code points that are looked at on each side of a quote."""

_ITEM = r"(?:[-*+•‣◦·–]|\(?\d{1,3}[.)])[ \t]"
_BORDER = lazy_pattern(
    r"^[ \t]*#{1,6}[ \t][^\n]*|[.!?。！？](?=[\s\"'”’)\]*_]|\Z)|[。！？]|\n\s*\n|\|"
    rf"|\n\s*(?={_ITEM}|#{{1,6}}[ \t]|\|)",
    re.MULTILINE,
)
_LISTED = lazy_pattern(rf"[ \t]*{_ITEM}|[ \t]+\S|[ \t]*$")
MAX_LIST_LINES = 60
"""Lines that are looked at above a quote for the words that introduce its list."""


class ContextCheck:
    """Whether the rest of the sentence from which a quote was cut takes it back."""

    name = "context"
    version = 1
    establishes = (
        "A pass establishes that the sentence of the document from which a quote was cut has no negation, condition, "
        "reservation or attribution outside the quote, and that the words which introduce its list do not refuse what "
        "is listed. In a table the row is what is looked at, with all its cells. It does not look beyond that sentence "
        "or row and those words."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        for one in cited:
            if one.text is None or one.text[one.quote.start : one.quote.end] != one.quote.text:
                continue  # the integrity check tells
            word = _left_out(one.text, one.quote.start, one.quote.end, _row_borders(one, one.text))
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


def _left_out(text: str, start: int, end: int, row: tuple[int | None, int | None]) -> str | None:
    row_begins, row_ends = row
    origin = max(0, start - REACH)
    begins, ends = origin, min(len(text), end + REACH)
    for border in _BORDER.finditer(text[origin:ends]):
        is_cell_border = border.group() == "|"
        if origin + border.end() <= start:
            if not is_cell_border or row_begins is None:
                begins = origin + border.end()
        elif border.group().lstrip().startswith("#") and origin + border.end() >= end:
            ends = origin + border.end()
            break
        elif origin + border.start() >= end - 1 and (not is_cell_border or row_ends is None):
            ends = max(end, origin + border.start())
            break
    begins = begins if row_begins is None else max(begins, row_begins)
    ends = ends if row_ends is None else min(ends, row_ends)
    rest = (*tokens(text[begins:start]), *tokens(text[end:ends]))
    return next((token.surface for token in rest if token.reserves), None)


def _row_borders(one: Cited, text: str) -> tuple[int | None, int | None]:
    """Where the row of a table begins in which a quote begins, and where the one ends in which it ends."""
    start, end = one.quote.start, one.quote.end
    records = records_of(one)
    if records:
        return records.span(records.at(start))[0], max(end, records.span(records.at(end - 1))[1])
    first = text.rfind("\n", 0, start) + 1
    last = text.rfind("\n", 0, end) + 1
    after = text.find("\n", end)
    after = len(text) if after < 0 else after
    return (
        first if is_table_line(text[first:start] + one.quote.text.partition("\n")[0]) else None,
        after if is_table_line(text[last:after]) else None,
    )


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
