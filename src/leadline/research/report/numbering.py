"""Numbers for quotes and sources: one number, one quote, in the order in which the prose cites them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leadline.kernel.errors import LeadlineError
from leadline.research.events import Quote, Report, Source
from leadline.research.ledger.leaves import leaves
from leadline.research.ledger.ledger import Ledger


class CitationsDoNotMatch(LeadlineError):
    """Marks in the prose and entries in the list differ: a defect, never the writer's doing."""

    def __init__(self, dangling: Sequence[int], unused: Sequence[int]) -> None:
        super().__init__(
            f"citations do not match: marks without an entry {list(dangling)}, entries without a mark {list(unused)}; "
            "this is a defect of the renderer, please report it"
        )


@dataclass(frozen=True)
class Numbering:
    """The numbers of one report."""

    quotes: tuple[Quote, ...]
    """Cited quotes; number n is at n - 1."""
    sources: tuple[Source, ...]
    """Cited sources, then uncited other versions of them; number n is at n - 1."""
    cited: frozenset[str]
    numbers: dict[str, int]
    """Evidence id to number; ids of one and the same span share it."""

    def quote_number(self, evidence: str) -> int:
        return self.numbers[evidence]

    def source_number(self, source: str) -> int:
        return next(n for n, one in enumerate(self.sources, start=1) if one.id == source)

    def lists(self, source: str) -> bool:
        """Whether a source is in the list."""
        return any(one.id == source for one in self.sources)

    def marks(self, evidence: Sequence[str]) -> tuple[int, ...]:
        """The numbers after a sentence, each once, in the order of its evidence; unknown ids give none."""
        return tuple(dict.fromkeys(self.numbers[one] for one in evidence if one in self.numbers))


def number(ledger: Ledger, draft: Report | None) -> Numbering:
    """Numbers for a draft. Ids that are unknown, or whose source is, get none."""
    numbers: dict[str, int] = {}
    spans: dict[tuple[str, str, int, int], int] = {}
    quotes: list[Quote] = []
    sources: dict[str, Source] = {}
    for _, leaf in leaves(draft) if draft else ():
        for evidence in leaf.evidence:
            quote = ledger.quotes.get(evidence)
            source = ledger.sources.get(quote.source) if quote else None
            if quote is None or source is None or evidence in numbers:
                continue
            span = (quote.source, quote.snapshot, quote.start, quote.end)
            if span not in spans:
                quotes.append(quote)
                spans[span] = len(quotes)
                sources.setdefault(source.id, source)
            numbers[evidence] = spans[span]
    cited = frozenset(sources)
    for other in _other_versions(ledger, cited):
        sources.setdefault(other.id, other)
    return Numbering(tuple(quotes), tuple(sources.values()), cited, numbers)


def _other_versions(ledger: Ledger, cited: frozenset[str]) -> list[Source]:
    """Sources that supersede a cited one or are superseded by it, over any number of steps."""
    reached = set(cited)
    found: list[Source] = []
    grown = True
    while grown:
        grown = False
        for pair in ledger.versions:
            for here, there in ((pair.newer, pair.older), (pair.older, pair.newer)):
                if here in reached and there not in reached and there in ledger.sources:
                    reached.add(there)
                    found.append(ledger.sources[there])
                    grown = True
    return found


def assert_two_way(marks: Sequence[int], entries: Sequence[int]) -> None:
    """Every mark has an entry and every entry a mark.

    Raises:
        CitationsDoNotMatch: they do not.
    """
    printed, listed = set(marks), set(entries)
    if printed != listed:
        raise CitationsDoNotMatch(sorted(printed - listed), sorted(listed - printed))
