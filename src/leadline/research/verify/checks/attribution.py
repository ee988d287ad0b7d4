"""Check: a sentence that names its document names the one it cites, with its date and its place among versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from leadline.research.events import Source
from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.attribution import Attribution, Day, agreement, day_of, read_attribution
from leadline.research.verify.check import CheckResult, Cited, Sentence
from leadline.research.verify.figures import agreement as figure_agreement
from leadline.research.verify.figures import figures


class AttributionCheck:
    """Whether the words that lead a sentence name the document from which its quotes were taken."""

    name = "attribution"
    version = 1
    establishes = (
        "A pass establishes that the document named in front of a statement (by title, or most of it, and date) is "
        "the one that was quoted, and that the run found it to be an older or newer version where the sentence says "
        "so. It reads the forms that it knows, at the start of a sentence; it does not establish that title or date "
        "of the document are right."
    )

    def run(self, sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> CheckResult:
        said = sentence.attribution
        if said is None:
            return CheckResult("not_applicable", "names no document")
        sources = {one.source.id: one.source for one in cited if one.source}
        if not sources:
            return CheckResult("fail", "names a document, but cites none")
        told = [
            result
            for source in sources.values()
            for result in (_title(said, source, ledger), _date(said, source), _version(said, source, ledger))
            if result
        ]
        for outcome in ("contradicts", "fail", "unsure"):
            for result in told:
                if result.outcome == outcome:
                    return result
        return CheckResult("pass", "the document that it names is the one it cites")


def attributed(sentence: Sentence, cited: Sequence[Cited], ledger: Ledger) -> Sentence:
    """The sentence with its leading attribution set apart from what it says, if it has one and cites anything."""
    sources = [one.source for one in cited if one.source]
    if not sources or sentence.is_cell or sentence.attribution:
        return sentence
    known = [name for source in ledger.sources.values() for name in _names(source)]
    found, rest = read_attribution(
        sentence.text, [name for source in sources for name in _names(source)], known
    )
    return replace(sentence, text=rest, attribution=found) if found else sentence


def _names(source: Source) -> tuple[str, ...]:
    return source.title, source.location, source.location.rsplit("/", 1)[-1]


def _agreement(named: str, source: Source) -> str | None:
    found = [agreement(named, source.title)]
    found += ["whole" for name in _names(source)[1:] if agreement(named, name) == "whole"]
    return "whole" if "whole" in found else found[0]


def _title(said: Attribution, source: Source, ledger: Ledger) -> CheckResult | None:
    if said.title is None:
        return None
    how = _agreement(said.title, source)
    if how == "whole":
        return None
    others = [one for one in ledger.sources.values() if one.id != source.id]
    if any(_agreement(said.title, one) == "whole" for one in others):
        return CheckResult(
            "contradicts", f"names “{said.title}”, but the quote is from “{source.title}”, another document"
        )
    if how == "most":
        return None
    return CheckResult("fail", f"names “{said.title}”, but the quote is from “{source.title}”")


def _date(said: Attribution, source: Source) -> CheckResult | None:
    if said.date is None:
        return None
    claimed = day_of(said.date)
    if claimed is None:
        return CheckResult("unsure", f"“{said.date}” cannot be read as one date")
    if _in_title(said.date, source):
        return None
    known = day_of(source.published) if source.published else None
    if known is None:
        return CheckResult("fail", f"gives the date “{said.date}”, but no date of “{source.title}” is known")
    for ours, theirs in zip(_parts(claimed), _parts(known), strict=True):
        if ours is not None and theirs is None:
            return CheckResult("fail", f"gives the date “{said.date}”, but only {source.published} is known")
        if ours is not None and ours != theirs:
            return CheckResult(
                "contradicts", f"gives the date “{said.date}”, but “{source.title}” is of {source.published}"
            )
    return None


def _in_title(date: str, source: Source) -> bool:
    """Whether a document without a date of its own has this one in its title."""
    if source.published:
        return False
    there = figures(source.title)
    return any(figure_agreement(one, there) == "same" for one in figures(date))


def _parts(day: Day) -> tuple[int, int | None, int | None]:
    return day.year, day.month, day.day


def _version(said: Attribution, source: Source, ledger: Ledger) -> CheckResult | None:
    if said.version is None:
        return None
    is_older = any(pair.older == source.id for pair in ledger.versions)
    is_newer = any(pair.newer == source.id for pair in ledger.versions)
    holds = {"older": is_older, "newer": is_newer, "latest": is_newer and not is_older}[said.version]
    if holds:
        return None
    if not is_older and not is_newer:
        return CheckResult("fail", f"speaks of versions, but no other version of “{source.title}” was found")
    place = "the newer" if is_newer and not is_older else "an older"
    return CheckResult(
        "contradicts", f"says {said.version} version, but “{source.title}” is {place} version of it"
    )
