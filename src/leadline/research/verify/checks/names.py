"""Check: names, acronyms, product codes and quotations stand in the cited quotes."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.check import (
    CheckResult,
    Cited,
    Sentence,
    listed,
    quote_words,
    source_words,
)
from leadline.research.verify.names import Name, folded_words, is_cjk, names, quotations
from leadline.research.verify.quote_match import Match, QuotedText
from leadline.research.verify.typography import level


class NamesCheck:
    """Whether each name and quotation of a sentence occurs in its quotes."""

    name = "names"
    version = 1
    establishes = (
        "A pass establishes that every name it can recognise (several capitalised words, acronyms, product codes, "
        "capitalised words within a sentence) and everything in quotation marks occurs in a cited quote, in the title "
        "of a cited source, or in the request. It cannot recognise a lone name that opens a sentence, nor names in "
        "Chinese, Japanese or Korean; there it is unsure unless the sentence itself stands in a quote."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        if not cited:
            return CheckResult("not_applicable", "nothing is cited")
        pool = "\n".join((quote_words(cited), source_words(cited), ledger.request.words))
        misquoted = unfounded_quotations(sentence.text, pool)
        if misquoted:
            return CheckResult("fail", f"{listed(misquoted)}: quoted, but not in the cited quotes")
        wanted = names(sentence.text)
        if is_cjk(sentence.text):
            if all(level(part) in level(quote_words(cited)) for part in sentence.parts):
                return CheckResult("pass")
            return CheckResult("unsure", "names in this script are not recognised")
        if not wanted:
            found = bool(quotations(sentence.text))
            return CheckResult("pass") if found else CheckResult("not_applicable", "no names")
        absent = [name.text for name in wanted if _occurs(name, pool) == "absent"]
        if absent:
            return CheckResult("fail", f"{listed(absent)} not in the cited quotes")
        scattered = [name.text for name in wanted if _occurs(name, pool) == "scattered"]
        if scattered:
            return CheckResult("unsure", f"{listed(scattered)}: the quotes have it in another form")
        return CheckResult("pass")


def names_without_evidence(text: str, ledger: Ledger) -> tuple[str, ...]:
    """Names and quotations of a text that are not in the request: what an uncited sentence may not state."""
    pool = ledger.request.words
    unknown = [name.text for name in names(text) if _occurs(name, pool) == "absent"]
    return (*unknown, *unfounded_quotations(text, pool))


def unfounded_quotations(text: str, pool: str) -> tuple[str, ...]:
    """What a text puts in quotation marks and the pool does not have."""
    quoted = quotations(text)
    if not quoted:
        return ()
    there = QuotedText(pool)
    return tuple(one for one in quoted if not isinstance(there.find(one.rstrip(".,;:")), Match))


def _occurs(name: Name, pool: str) -> str:
    words, have = name.words, folded_words(pool)
    if not words:
        return "whole"
    size = len(words)
    if any(have[at : at + size] == words for at in range(len(have) - size + 1)):
        return "whole"
    if set(words) <= set(have) or _spelled_out(name.text, have):
        return "scattered"
    return "absent"


def _spelled_out(acronym: str, have: Sequence[str]) -> bool:
    """Whether the pool spells an acronym out: WHO for World Health Organization."""
    letters = acronym.casefold().replace(".", "")
    if not (acronym.isupper() and 2 <= len(letters) <= 6 and letters.isalpha()):
        return False
    initials = "".join(word[0] for word in have if word not in ("of", "the", "and", "for", "in"))
    return letters in initials
