"""How often the extractive model answers rightly, and how often it rightly says that there is no answer."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.research.extractive.phrases import COLUMNS, STATES
from leadline.research.extractive.plain import plain
from leadline.research.roles.purposes import EvidenceItem

from . import company_share, further_folders, near_misses, other_folders
from .case import Case
from .drive import Answered, answer
from .folder import OpenFolder, open_folder
from .heldout import cases as heldout

_FOLDERS = Path(__file__).parent / "folders"
_HELDOUT = Path(__file__).parent / "heldout" / "folders"
_CONTEXT = (STATES, COLUMNS)


@dataclass(frozen=True)
class Fault:
    """What was wrong with an answer."""

    text: str
    is_filler: bool = False
    """Whether something was quoted that does not answer, rather than nothing found."""


@dataclass(frozen=True)
class Scored:
    """One question with what was wrong about its answer; None when nothing was."""

    case: Case
    fault: Fault | None
    answered: Answered


Folders = dict[str, tuple[Path, Sequence[Case]]]


def folders() -> Folders:
    """The folders that are at hand, each with its questions."""
    found: Folders = {
        name: (_FOLDERS / name, (*cases, *near_misses.FOLDERS.get(name, ())))
        for name, cases in {**other_folders.FOLDERS, **further_folders.FOLDERS}.items()
    }
    company = _company_share()
    if company:
        cases = (*company_share.CASES, *further_folders.COMPANY, *near_misses.COMPANY)
        found = {"company-share": (company, cases), **found}
    return found


def heldout_folders() -> Folders:
    """Folders and questions that no rule is made for."""
    found: Folders = {name: (_HELDOUT / name, cases) for name, cases in heldout.FOLDERS.items()}
    company = _company_share()
    return {"company-share": (company, heldout.COMPANY), **found} if company else found


def _company_share() -> Path | None:
    data = os.environ.get("LEADLINE_DATA")
    path = Path(data) / "company-share" if data else None
    return path if path and path.is_dir() else None


async def score_folder(folder: Path, cases: Sequence[Case]) -> list[Scored]:
    """Every question of a folder, answered and judged."""
    with tempfile.TemporaryDirectory() as home:
        async with open_folder(folder, Path(home)) as opened:
            return [await score(opened, case) for case in cases]


async def score(folder: OpenFolder, case: Case) -> Scored:
    """One question, answered and judged."""
    answered = await answer(folder, case.question)
    return Scored(case, fault_of(case, answered), answered)


def fault_of(case: Case, answered: Answered) -> Fault | None:
    """What is wrong with an answer; None when it is right."""
    told = [item for item in answered.evidence if item.claim not in _CONTEXT]
    if case.kind == "absent":
        wrong = [item for item in told if not any(one in plain(item.quote) for one in case.instead)]
        if wrong:
            return Fault(f"quotes {plain(wrong[0].quote)!r}", is_filler=True)
        return None if told or answered.unresolved else Fault("does not say that nothing was found")
    answers = [item for item in told if item.polarity == "supporting"]
    if not answers:
        return Fault("finds nothing")
    if case.quotes[0] not in plain(answers[0].quote):
        return Fault(f"first says {plain(answers[0].quote)!r}", is_filler=True)
    if case.sources and not answers[0].source.location.endswith(case.sources[0]):
        return Fault(f"first quotes {answers[0].source.location}", is_filler=True)
    filler = [one for one in case.never if any(one in plain(item.quote) for item in told)]
    if filler:
        return Fault(f"also quotes {filler[0]!r}", is_filler=True)
    return _lacking(case, answers, [item for item in told if item.polarity == "opposing"])


def _lacking(case: Case, answers: Sequence[EvidenceItem], older: Sequence[EvidenceItem]) -> Fault | None:
    """What an answer that begins rightly leaves out."""
    lacking = [quote for quote in case.quotes if not any(quote in plain(item.quote) for item in answers)]
    if lacking:
        return Fault(f"does not quote {lacking[0]!r}")
    if case.older and not any(case.older in item.quote for item in older):
        return Fault(f"does not say that an older version has {case.older!r}")
    return None


def cost(scored: Sequence[Scored]) -> int:
    """What the faults of answers cost: a miss 1, words that do not answer 2."""
    return sum(2 if one.fault.is_filler else 1 for one in scored if one.fault)


def table(scores: Mapping[str, Sequence[Scored]]) -> list[str]:
    """The result as lines of a Markdown table: right of all, by folder and kind of question."""
    kinds = ["plain", "paraphrase", "several", "series", "version", "foreign", "absent"]
    lines = [f"| folder | {' | '.join(kinds)} | all | cost |", f"|---|{'---|' * (len(kinds) + 2)}"]
    rows = {**scores, "all": [one for scored in scores.values() for one in scored]}
    for name, scored in rows.items():
        asked = Counter[str](one.case.kind for one in scored)
        right = Counter[str](one.case.kind for one in scored if not one.fault)
        cells = [f"{right[kind]}/{asked[kind]}" if asked[kind] else "" for kind in kinds]
        lines.append(f"| {name} | {' | '.join(cells)} | {right.total()}/{asked.total()} | {cost(scored)} |")
    return lines
