"""Laying a sentence over a quote: do its words stand there, in their order, with nothing of weight left out?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from leadline.research.verify.figures import agreement
from leadline.research.verify.lexicon import CONTRASTS, LINKS
from leadline.research.verify.tokens import Token, tokens

MAX_ASIDE = 12
"""Words of an aside ("..., which ..., ...", "(...)") that may be left out."""

Equal = Callable[[Token, Token], bool]


@dataclass(frozen=True)
class Alignment:
    """Where each word of the sentence stands in the quote."""

    pairs: tuple[tuple[Token, Token], ...]
    """Sentence token, quote token."""
    inserted: tuple[Token, ...]
    """Words of the sentence that come from the request."""
    verbatim: bool
    """Nothing was left out or added between the first and the last word."""


def same_token(left: Token, right: Token) -> bool:
    """Equal words, or figures that are surely the same."""
    if left.figure and right.figure:
        return agreement(left.figure, (right.figure,)) == "same"
    return left.kind == right.kind == "word" and left.key == right.key


def align(
    sentence: str, quote: str, *, spare: Collection[str] = (), equal: Equal = same_token, whole: bool = True
) -> Alignment | None:
    """Lay a sentence over a quote; None where it does not fit.

    Args:
        sentence: one sentence.
        quote: what is quoted; may hold several sentences.
        spare: keys of words that the sentence may add, if they carry neither name, figure nor direction.
        equal: when a token of the sentence stands for a token of the quote.
        whole: also look at what the quote's sentence says before and after; a negation, reservation, figure,
            name or direction there means that the sentence says more than the quote.
    """
    wanted = [token for token in tokens(sentence) if token.kind in ("word", "figure") and not token.ignorable]
    there = [token for token in tokens(quote) if not token.ignorable]
    if not wanted:
        return None
    for start, token in enumerate(there):
        if not equal(wanted[0], token) and not _may_add(wanted[0], spare):
            continue
        found = _lay(wanted, there, start, spare, equal)
        if found and (not whole or not _cut_off(there, found)):
            return _alignment(wanted, there, found)
    return None


def _alignment(wanted: Sequence[Token], there: Sequence[Token], found: Sequence[int | None]) -> Alignment:
    placed = [position for position in found if position is not None]
    between = [token for token in there[placed[0] : placed[-1] + 1] if token.kind in ("word", "figure")]
    return Alignment(
        pairs=tuple((wanted[index], there[at]) for index, at in enumerate(found) if at is not None),
        inserted=tuple(wanted[index] for index, at in enumerate(found) if at is None),
        verbatim=len(between) == len(placed) == len(wanted),
    )


def _may_add(token: Token, spare: Collection[str]) -> bool:
    return token.kind == "word" and token.key in spare and not token.weighs


def _lay(
    wanted: Sequence[Token], there: Sequence[Token], start: int, spare: Collection[str], equal: Equal
) -> list[int | None] | None:
    """Positions in the quote for each wanted token from `start` on, each as early as it can be."""
    found: list[int | None] = []
    last: int | None = None
    for token in wanted:
        at = _next(token, there, start if last is None else last + 1, equal, first=last is None)
        if at is not None:
            last = at
        elif not _may_add(token, spare):
            return None
        found.append(at)
    placed = [position for position in found if position is not None]
    return found if len(placed) * 2 > len(wanted) else None


def _next(token: Token, there: Sequence[Token], start: int, equal: Equal, *, first: bool) -> int | None:
    left_out = 0
    for at in range(start, len(there)):
        here = there[at]
        if equal(token, here):
            return at if not left_out or there[at - 1].kind == "break" else None
        if first:
            return None
        if here.kind == "stop":
            if not _only_borders(there, start, at) or not (
                at + 1 < len(there) and equal(token, there[at + 1])
            ):
                return None
        elif here.kind != "break":
            left_out += 1
            if here.weighs or left_out > MAX_ASIDE or there[start].kind != "break":
                return None
    return None


def _only_borders(there: Sequence[Token], start: int, end: int) -> bool:
    return all(token.kind in ("stop", "break") for token in there[start:end])


def _cut_off(there: Sequence[Token], found: Sequence[int | None]) -> bool:
    """Whether something of weight stands before or after, in the same sentence of the quote."""
    placed = [position for position in found if position is not None]
    first, last = placed[0], placed[-1]
    before = _until_stop(there[first - 1 :: -1] if first else ())
    after = _until_stop(there[last + 1 :])
    return _changes(before, _begins_clause) or _changes(after, _ends_clause)


def _begins_clause(row: Sequence[Token], at: int) -> bool:
    """Whether, read backwards, another statement ends here: "..., and", "... while"."""
    token, beyond = row[at], row[at + 1 : at + 2]
    return token.key in CONTRASTS or (token.key in LINKS and any(one.kind == "break" for one in beyond))


def _ends_clause(row: Sequence[Token], at: int) -> bool:
    """Whether another statement or an afterthought begins here."""
    return row[at].kind == "break" or row[at].key in LINKS


def _until_stop(row: Sequence[Token]) -> list[Token]:
    """The tokens up to the border of the sentence, going away from what was laid."""
    end = next((at for at, token in enumerate(row) if token.kind == "stop"), len(row))
    return list(row[:end])


def _changes(row: Sequence[Token], is_border: Callable[[Sequence[Token], int], bool]) -> bool:
    """Whether leaving these out changes what is said: any word of the same clause, beyond it a reservation."""
    same_clause = True
    for at, token in enumerate(row):
        same_clause = same_clause and not is_border(row, at)
        if token.reserves or (same_clause and token.kind in ("word", "figure")):
            return True
    return False
