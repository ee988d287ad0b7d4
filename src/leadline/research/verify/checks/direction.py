"""Check: direction and negation of a sentence do not turn those of its quotes round."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.alignment import align, same_token
from leadline.research.verify.blocks import blocks
from leadline.research.verify.check import (
    CheckResult,
    Cited,
    Sentence,
    csv_statements,
    quote_words,
    split_sentences,
)
from leadline.research.verify.figures import agreement
from leadline.research.verify.lexicon import CJK_DOWN, CJK_NEGATION, CJK_UP
from leadline.research.verify.names import is_cjk
from leadline.research.verify.tokens import Token, direction, tokens
from leadline.research.verify.typography import level

Side = tuple[int, int]


class DirectionCheck:
    """Whether sentence and quotes agree on up and down, above and below, before and after, yes and no."""

    name = "direction"
    version = 1
    establishes = (
        "A pass establishes that words of direction and negation in the sentence stand on the same side as in a cited "
        "quote. A contradiction is told where both speak of the same figure or in the same words, and one rises "
        "where the other falls, or one denies what the other asserts. Irony, double negation and opposites that are "
        "not in its word lists escape it."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        if is_cjk(sentence.text):
            return _run_cjk(sentence, cited)
        agreed, doubtful = False, ""
        for part in sentence.parts:
            results = [_compare(part, one) for one in cited]
            against = next((one for one in results if one.outcome == "contradicts"), None)
            passed = any(one.outcome == "pass" for one in results) or (
                sentence.is_cell and _stands(part, cited)
            )
            if against and not passed:
                return against
            unsure = next((one for one in results if one.outcome == "unsure"), None)
            if unsure and not passed:
                doubtful = doubtful or unsure.reason
            agreed = agreed or passed
        if doubtful:
            return CheckResult("unsure", doubtful)
        return (
            CheckResult("pass")
            if agreed
            else CheckResult("not_applicable", "no words of direction or negation")
        )


def _stands(cell: str, cited: Sequence[Cited]) -> bool:
    """Whether the words of a cell stand in a quote; the head over it, quoted apart, may deny or raise by itself."""
    said = [text for one in cited for text in (one.quote.text, *csv_statements(one))]
    return any(align(cell, text, whole=False) for text in said)


def _compare(part: str, one: Cited) -> CheckResult:
    quoted = _closest(part, one.quote.text)
    ours, theirs = tokens(part), tokens(quoted)
    our_sides, their_sides = _sides(ours), _sides(theirs)
    our_no, their_no = _denials(ours), _denials(theirs)
    if not (our_sides or their_sides or our_no or their_no):
        return CheckResult("not_applicable")
    if align(part, one.quote.text, whole=False):
        return CheckResult("pass")
    turned = _turned_at_figure(ours, theirs) or _turned_in_same_words(part, quoted)
    if turned:
        return CheckResult("contradicts", f"{turned} ({one.quote.id})")
    if our_no % 2 != their_no % 2:
        which = "the sentence denies something" if our_no % 2 else "the quote denies something"
        return CheckResult(
            "unsure", f"{which} that {one.quote.id} does not" if our_no % 2 else f"{which} ({one.quote.id})"
        )
    clash = next(
        (side for side in our_sides if _opposite(side) in their_sides and side not in their_sides), None
    )
    if clash is not None:
        return CheckResult("unsure", f"sentence and {one.quote.id} use opposite words of direction")
    missing = [side for side in our_sides if side not in their_sides]
    if missing:
        return CheckResult("unsure", f"{one.quote.id} has no word of that direction")
    return CheckResult("pass" if our_sides or our_no else "not_applicable")


def _closest(part: str, quote: str) -> str:
    """The sentence of the quote that has most words and figures of the given one; the first of equals."""
    wanted = {token.key or token.surface for token in tokens(part) if token.kind in ("word", "figure")}
    sentences = [one for block in blocks(quote) for one in split_sentences(block.text)] or [quote]
    return max(sentences, key=lambda one: len(wanted & {token.key or token.surface for token in tokens(one)}))


def _sides(row: Sequence[Token]) -> tuple[Side, ...]:
    found = (direction(token.key) for token in row if token.kind == "word")
    return tuple(dict.fromkeys(side for side in found if side is not None))


def _denials(row: Sequence[Token]) -> int:
    return sum(token.negates for token in row if token.kind == "word")


def _opposite(side: Side) -> Side:
    return side[0], 1 - side[1]


def _turned_at_figure(ours: Sequence[Token], theirs: Sequence[Token]) -> str | None:
    """The same figure goes up on one side and down on the other, about things with words in common."""
    for at, token in enumerate(ours):
        here = _nearest(ours, at) if token.figure else None
        if token.figure is None or here is None:
            continue
        for there_at, there in enumerate(theirs):
            if there.figure is None or agreement(token.figure, (there.figure,)) != "same":
                continue
            other = _nearest(theirs, there_at)
            if other is None or not _speak_of_one_thing(ours, theirs):
                continue
            turned = direction(other.key) == _opposite(direction(here.key) or (0, 0))
            if turned and _denials(ours) % 2 == _denials(theirs) % 2:
                return f"“{here.surface}” here, “{other.surface}” in the quote, of “{there.surface}”"
    return None


def _nearest(row: Sequence[Token], at: int) -> Token | None:
    """The word of direction that governs a figure: the last one before it in its clause, else the first after."""
    for step in (-1, 1):
        position = at + step
        while 0 <= position < len(row) and row[position].kind not in ("stop", "break"):
            side = direction(row[position].key) if row[position].kind == "word" else None
            if side is not None and side[0] in _OF_AMOUNTS:
                return row[position]
            position += step
    return None


def _speak_of_one_thing(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """At least half of the sentence's plain words stand in the quote."""
    plain = {
        token.key
        for token in ours
        if token.kind == "word" and len(token.key) > 3 and direction(token.key) is None and not token.reserves
    }
    shared = plain & {token.key for token in theirs}
    return bool(plain) and 2 * len(shared) >= len(plain)


def _turned_in_same_words(part: str, quote: str) -> str | None:
    """Sentence and quote differ in one word of direction, or in a negation, and in nothing else."""
    laid = align(part, quote, equal=_same_or_turned, whole=False)
    if laid:
        turned = [pair for pair in laid.pairs if not same_token(*pair)]
        if len(turned) == 1 and len(laid.pairs) >= 3:
            return f"“{turned[0][0].surface}” here, “{turned[0][1].surface}” in the quote"
        return None
    ours, theirs = _without_denials(part), _without_denials(quote)
    if _denials(tokens(part)) % 2 != _denials(tokens(quote)) % 2 and ours and ours == theirs:
        return "the same words, but only one of the two denies it"
    return None


def _without_denials(text: str) -> tuple[str, ...]:
    """The words of one sentence without negations and the auxiliaries that come with them."""
    row = tokens(text)
    if sum(token.kind == "stop" for token in row) > 1:
        return ()
    return tuple(
        token.key or token.surface
        for token in row
        if token.kind in ("word", "figure")
        and not token.negates
        and not token.ignorable
        and token.key not in _AUXILIARY
    )


_OF_AMOUNTS = (0, 1)
"""The pairs of opposites that say something of an amount: up and down, above and below."""

_AUXILIARY = frozenset({"do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "be", "been"})


def _same_or_turned(left: Token, right: Token) -> bool:
    if same_token(left, right):
        return True
    here = direction(left.key) if left.kind == "word" else None
    return here is not None and right.kind == "word" and direction(right.key) == _opposite(here)


def _run_cjk(sentence: Sentence, cited: Sequence[Cited]) -> CheckResult:
    quotes = level(quote_words(cited))
    if all(level(part) in quotes for part in sentence.parts):
        return CheckResult("pass")
    text = level(sentence.text)
    marks = [*CJK_UP, *CJK_DOWN, *CJK_NEGATION]
    if not any(mark in text or mark in quotes for mark in marks):
        return CheckResult("not_applicable", "no words of direction or negation")
    up, down = any(mark in text for mark in CJK_UP), any(mark in text for mark in CJK_DOWN)
    quote_up, quote_down = any(mark in quotes for mark in CJK_UP), any(mark in quotes for mark in CJK_DOWN)
    denies = sum(text.count(mark) for mark in CJK_NEGATION), sum(quotes.count(mark) for mark in CJK_NEGATION)
    if (up, down) == (quote_up, quote_down) and denies[0] == denies[1]:
        return CheckResult("pass")
    if (
        up != down
        and (quote_up, quote_down) == (down, up)
        and denies == (0, 0)
        and _masked(text) == _masked(quotes)
    ):
        return CheckResult("contradicts", "the same words with the opposite direction")
    return CheckResult("unsure", "direction or negation is worded otherwise than in the quotes")


def _masked(text: str) -> str:
    for mark in (*CJK_UP, *CJK_DOWN):
        text = text.replace(mark, "*")
    return text.rstrip("。.!！")
