"""One question of an evaluation, with what a right answer holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CaseKind = Literal["plain", "paraphrase", "several", "series", "version", "foreign", "absent"]


@dataclass(frozen=True)
class Case:
    """A question over one folder."""

    question: str
    kind: CaseKind
    quotes: tuple[str, ...] = ()
    """Each stands in one of the recorded answers; the first one in the first answer. Empty: nothing may be found."""
    sources: tuple[str, ...] = ()
    """Endings of the locations that the answers come from; the first one is that of the first answer."""
    older: str = ""
    """For a version: what the older document says, which has to be told after the newer one."""
    never: tuple[str, ...] = ()
    """What no recorded answer may hold: words of the folder that do not answer."""
    instead: tuple[str, ...] = ()
    """For a question without an answer: what may be quoted all the same, as it says why there is none."""


def found(question: str, quote: str, source: str = "", kind: CaseKind = "plain", *never: str) -> Case:
    """A question with one right quote."""
    return Case(question, kind, (quote,), (source,) if source else (), never=never)


def absent(question: str, *instead: str) -> Case:
    """A question that the folder does not answer."""
    return Case(question, "absent", instead=instead)
