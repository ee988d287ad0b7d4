"""Check: the words of a sentence stand in its quotes, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.core.patterns import lazy_pattern
from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.alignment import Alignment, align
from leadline.research.verify.blocks import blocks
from leadline.research.verify.check import CheckResult, Cited, Sentence, bare, csv_statements, split_sentences
from leadline.research.verify.names import folded_words
from leadline.research.verify.tables import QuotedTable, quoted_tables
from leadline.research.verify.tokens import tokens, word_key
from leadline.research.verify.typography import level

NOT_IN_QUOTES = "wording not in the quotes; needs a language-model or person check"

_PLAIN_HEADINGS = frozenset(
    [
        "value",
        "values",
        "metric",
        "measure",
        "item",
        "items",
        "figure",
        "figures",
        "number",
        "name",
        "source",
        "evidence",
        "note",
        "notes",
        "finding",
        "findings",
        "detail",
        "details",
        "result",
        "results",
        "year",
        "date",
        "aspect",
        "feature",
        "property",
        "document",
        "version",
        "claim",
        "answer",
    ]
)

_SIGNED = lazy_pattern(r"\s*[-\u2010-\u2015\u2212]\s*[\d.,]")


class WordingCheck:
    """Whether a sentence only repeats what its quotes say."""

    name = "wording"
    version = 1
    establishes = (
        "A pass establishes that each sentence is a whole clause of one cited quote, word for word and in the same "
        "order; that only articles, an aside between commas or brackets, or another clause were left off, none with a "
        "negation or reservation in it; and that only words of the request were added, none of them a name, figure "
        "or direction; and that a cell stands in a quoted table in that row and column, or in one quoted statement "
        "with the words of both. It does not establish that the document is right. It never judges a paraphrase: there it is "
        "unsure."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        if sentence.is_cell:
            return _run_cell(sentence, cited)
        if sentence.attribution and not sentence.text:
            return CheckResult("pass", "it only says which document follows")
        for one in cited:
            if _bare(sentence.text) == _bare(one.quote.text):
                return CheckResult("pass", f"it is the quote {one.quote.id}")
        if sum(len(tokens(part)) for part in sentence.parts) < 3:
            return CheckResult("unsure", "too short to say anything by itself")
        spare = frozenset(word_key(word) for word in folded_words(ledger.request.words) if len(word) > 3)
        carriers: list[str] = []
        for part in sentence.parts:
            carrier = _carrier(part, cited, spare)
            if carrier is None:
                return CheckResult("unsure", NOT_IN_QUOTES)
            carriers.append(carrier)
        return CheckResult("pass", "; ".join(dict.fromkeys(carriers)))


def _bare(text: str) -> str:
    return level(bare(text)).rstrip(".。 ")


def _carrier(part: str, cited: Sequence[Cited], spare: frozenset[str]) -> str | None:
    """The quote in which a sentence stands, in words; None if none does."""
    for one in cited:
        laid = align(part, one.quote.text, spare=spare)
        if laid:
            return f"it stands in {one.quote.id}{_difference(laid)}"
    return None


def _difference(laid: Alignment) -> str:
    if laid.verbatim:
        return " word for word"
    added = ", ".join(f"“{token.surface}”" for token in laid.inserted)
    return f" in the same order, with {added} from the request" if added else " in the same order, shortened"


def _placed_cell(cell: Sentence, table: QuotedTable) -> str | None:
    """The cell that a quoted table has in the row and column of the given one; None where it has none such."""
    if not cell.frame:
        return next((row[0] for row in table.rows if _bare(row[0]) == _bare(cell.text)), None)
    if len(cell.frame) != 2:
        return None
    heading, name = (_bare(one) for one in cell.frame)
    columns = [at for at, text in enumerate(table.head) if _bare(text) == heading]
    of_name = [row for row in table.rows if _bare(row[0]) == name]
    if len(columns) != 1 or len(of_name) != 1 or len(of_name[0]) <= columns[0]:
        return None
    return of_name[0][columns[0]]


def _run_cell(cell: Sentence, cited: Sequence[Cited]) -> CheckResult:
    """A cell says something only together with its row and column: one sentence must hold all three.

    In a quoted table it must stand in that row and that column, also where head and row are two quotes.
    """
    found = [
        (table, placed) for table in quoted_tables(cited) if (placed := _placed_cell(cell, table)) is not None
    ]
    for table, placed in found:
        if not _same_cell(placed, cell.text):
            where = " of ".join(f"“{heading}”" for heading in cell.frame)
            return CheckResult("unsure", f"the table {table.evidence} has “{placed}” under {where}")
    if found:
        return CheckResult("pass", f"it stands in {found[0][0].evidence}, in its row and column")
    for one in cited:
        for quoted in _statements(one):
            have = {word_key(word) for word in folded_words(quoted)} | _PLAIN_HEADINGS
            framed = all(word_key(word) in have for heading in cell.frame for word in folded_words(heading))
            if not framed or any(token.reserves for token in tokens(quoted)):
                continue
            if align(cell.text, quoted, whole=False):
                return CheckResult("pass", f"it stands in {one.quote.id}, with its row and column")
    frame = ", ".join(f"“{heading}”" for heading in cell.frame)
    together = f" together with {frame}" if frame else ""
    return CheckResult("unsure", f"no sentence of the quotes has the cell{together}; {NOT_IN_QUOTES}")


def _same_cell(left: str, right: str) -> bool:
    """Whether two cells have the same words; a dash before a number is its sign, not the mark of a list."""
    return _bare(left) == _bare(right) and bool(_SIGNED.match(left)) == bool(_SIGNED.match(right))


def _statements(one: Cited) -> tuple[str, ...]:
    """What a quote says, piece by piece: its sentences, and each row of a table by itself."""
    rows = csv_statements(one)
    if rows:
        return rows
    found = blocks(one.quote.text)
    if sum(block.kind == "row" for block in found) < 2:
        return split_sentences(one.quote.text)
    return tuple(
        said for block in found for said in ((block.text,) if block.row else split_sentences(block.text))
    )
