"""From the outcomes of the checks to a verdict on each sentence, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leadline.research.events import CheckRecord, ItemList, Report, Table, VerdictGiven, VerdictName
from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.check import Check, Sentence, cited_by, listed, record, states_nothing
from leadline.research.verify.checks.attribution import AttributionCheck, attributed
from leadline.research.verify.checks.context import ContextCheck
from leadline.research.verify.checks.direction import DirectionCheck
from leadline.research.verify.checks.figures import FiguresCheck, figures_without_evidence
from leadline.research.verify.checks.integrity import IntegrityCheck
from leadline.research.verify.checks.names import NamesCheck, names_without_evidence
from leadline.research.verify.checks.provenance import ProvenanceCheck
from leadline.research.verify.checks.wording import WordingCheck

CHECKS_VERSION = "1"
"""Recorded with every run; goes up whenever a check or the rule below can give another verdict."""

CHECKS: tuple[Check, ...] = (
    ProvenanceCheck(),
    IntegrityCheck(),
    AttributionCheck(),
    FiguresCheck(),
    NamesCheck(),
    DirectionCheck(),
    ContextCheck(),
    WordingCheck(),
)
"""The built-in checks, cheapest first."""

BY_CHECKS = "checks"
NOTHING_STATED = "states nothing"


def sentences_of(report: Report) -> tuple[Sentence, ...]:
    """The leaves of a report in reading order, table cells with their headings."""
    found: list[Sentence] = []
    for section in report.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                found.extend(_cells(block))
                continue
            groups = block.items if isinstance(block, ItemList) else (block.sentences,)
            found.extend(
                Sentence(text=leaf.text, label=leaf.label, evidence=leaf.evidence)
                for group in groups
                for leaf in group
            )
    return tuple(found)


def _cells(table: Table) -> list[Sentence]:
    cells: list[Sentence] = []
    for row in table.rows:
        for column, leaf in enumerate(row):
            heading = table.header[column : column + 1] if column else ()
            frame = tuple(one for one in (*heading, row[0].text if column else "") if one.strip())
            cells.append(
                Sentence(text=leaf.text, label=leaf.label, evidence=leaf.evidence, is_cell=True, frame=frame)
            )
    return cells


def judge(
    report: Report, ledger: Ledger, texts: Mapping[str, str], *, checks: Sequence[Check] = CHECKS
) -> tuple[VerdictGiven, ...]:
    """One verdict a sentence, in reading order.

    Args:
        report: the draft to be judged; its sentences are counted from 0.
        ledger: sources and quotes of the run, and its request.
        texts: snapshot texts by sha256; a missing one fails the quotes from it.
        checks: what is run; further ones may be added to the built-in ones.
    """
    return tuple(
        _verdict(index, sentence, ledger, texts, checks)
        for index, sentence in enumerate(sentences_of(report))
    )


def _verdict(
    index: int, sentence: Sentence, ledger: Ledger, texts: Mapping[str, str], checks: Sequence[Check]
) -> VerdictGiven:
    cited = cited_by(sentence, ledger, texts)
    if states_nothing(sentence.text):
        return VerdictGiven(sentence=index, verdict="not_checked", reason=NOTHING_STATED, by=BY_CHECKS)
    sentence = attributed(sentence, cited, ledger)
    records = tuple(record(check, check.run(sentence, cited, ledger)) for check in checks)
    if sentence.evidence:
        verdict, reason = _cited_verdict(records)
    else:
        verdict, reason = uncited_verdict(sentence, ledger)
        records = ()
    return VerdictGiven(sentence=index, verdict=verdict, reason=reason, by=BY_CHECKS, checks=records)


def _cited_verdict(records: Sequence[CheckRecord]) -> tuple[VerdictName, str]:
    """The rule: broken evidence first, then contradiction, then failure, then doubt; support needs every check."""
    by_name = {one.name: one for one in records}
    for name in ("provenance", "integrity"):
        if name in by_name and by_name[name].outcome != "pass":
            return "not_established", by_name[name].reason
    for outcome in ("contradicts", "fail", "unsure"):
        told = [one.reason for one in records if one.outcome == outcome]
        if told:
            verdict: VerdictName = "contradicted" if outcome == "contradicts" else "not_established"
            return verdict, "; ".join(dict.fromkeys(told))
    wording = by_name.get("wording")
    if wording is None or wording.outcome != "pass":
        return "not_established", "no check established the wording"
    attribution = by_name.get("attribution")
    also = attribution.reason if attribution and attribution.outcome == "pass" else ""
    return "supported", "; ".join(part for part in (wording.reason, also) if part)


def uncited_verdict(sentence: Sentence, ledger: Ledger) -> tuple[VerdictName, str]:
    """The verdict on a sentence without evidence."""
    text = sentence.text
    if states_nothing(text):
        return "not_checked", NOTHING_STATED
    stated = (*figures_without_evidence(text, ledger), *names_without_evidence(text, ledger))
    if stated:
        return "not_established", f"states {listed(stated)} without evidence"
    if sentence.label == "finding":
        return "not_established", "a finding without evidence"
    return (
        "not_checked",
        f"{sentence.label} without figures, names or quotations of its own; nothing to check it against",
    )
