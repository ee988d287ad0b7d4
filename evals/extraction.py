"""How often the extractive model answers rightly, and how often it rightly says that there is no answer."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leadline.research.extractive.phrases import COLUMNS, NAMES, STATES
from leadline.research.extractive.plain import plain

from . import company_share, other_folders
from .case import Case
from .drive import Answered, answer
from .folder import OpenFolder, open_folder

_FOLDERS = Path(__file__).parent / "folders"
_CONTEXT = (NAMES, STATES, COLUMNS)


@dataclass(frozen=True)
class Scored:
    """One question with what was wrong about its answer; empty when nothing was."""

    case: Case
    fault: str
    answered: Answered


def folders() -> dict[str, tuple[Path, Sequence[Case]]]:
    """The folders that are at hand, each with its questions."""
    found: dict[str, tuple[Path, Sequence[Case]]] = {
        name: (_FOLDERS / name, cases) for name, cases in other_folders.FOLDERS.items()
    }
    data = os.environ.get("LEADLINE_DATA")
    if data and (Path(data) / "company-share").is_dir():
        found = {"company-share": (Path(data) / "company-share", company_share.CASES), **found}
    return found


async def score_folder(folder: Path, cases: Sequence[Case]) -> list[Scored]:
    """Every question of a folder, answered and judged."""
    with tempfile.TemporaryDirectory() as home:
        async with open_folder(folder, Path(home)) as opened:
            return [await score(opened, case) for case in cases]


async def score(folder: OpenFolder, case: Case) -> Scored:
    """One question, answered and judged."""
    answered = await answer(folder, case.question)
    return Scored(case, fault_of(case, answered), answered)


def fault_of(case: Case, answered: Answered) -> str:
    """What is wrong with an answer; empty when it is right."""
    told = [item for item in answered.evidence if item.claim not in _CONTEXT]
    if case.kind == "absent":
        if told:
            return f"quotes {plain(told[0].quote)!r}"
        return "" if answered.unresolved else "does not say that nothing was found"
    answers = [item for item in told if item.polarity == "supporting"]
    if not answers:
        return "finds nothing"
    if case.quotes[0] not in plain(answers[0].quote):
        return f"first says {plain(answers[0].quote)!r}"
    if case.sources and not answers[0].source.location.endswith(case.sources[0]):
        return f"first quotes {answers[0].source.location}"
    lacking = [quote for quote in case.quotes if not any(quote in plain(item.quote) for item in answers)]
    if lacking:
        return f"does not quote {lacking[0]!r}"
    older = [item for item in told if item.polarity == "opposing"]
    if case.older and not any(case.older in item.quote for item in older):
        return f"does not say that an older version has {case.older!r}"
    return ""


def table(scores: Mapping[str, Sequence[Scored]]) -> list[str]:
    """The result as lines of a Markdown table: right of all, by folder and kind of question."""
    kinds = ["plain", "paraphrase", "several", "series", "version", "foreign", "absent"]
    lines = [f"| folder | {' | '.join(kinds)} | all |", f"|---|{'---|' * (len(kinds) + 1)}"]
    for name, scored in scores.items():
        asked = Counter(one.case.kind for one in scored)
        right = Counter(one.case.kind for one in scored if not one.fault)
        cells = [f"{right[kind]}/{asked[kind]}" if asked[kind] else "" for kind in kinds]  # type: ignore[index]
        lines.append(f"| {name} | {' | '.join(cells)} | {right.total()}/{asked.total()} |")
    return lines
