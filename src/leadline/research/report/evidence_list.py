"""A report made by code from the evidence alone, for a run whose writer failed or that was stopped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from leadline.research.events import Block, ItemList, Leaf, Paragraph, Report, Section
from leadline.research.ledger.ledger import Ledger, UnitState
from leadline.research.report.draft import clean_report
from leadline.research.verify.blocks import unmarked


def evidence_list(ledger: Ledger) -> Report:
    """One section a unit, in plan order, with its quotes as they stand; what has none is unresolved.

    Addresses, footnote marks and marks of Markdown within a quote are left out of the sentence.
    """
    planned = [unit.id for unit in ledger.plan.units] if ledger.plan else list(ledger.units)
    states = [ledger.units[unit] for unit in planned if unit in ledger.units]
    sections = [_section(ledger, state) for state in states if ledger.evidence_of(state.unit.id)]
    report = Report(title=ledger.request.question, sections=tuple(sections), unresolved=())
    return clean_report(report, ledger)[0]


def listed_evidence(ledger: Ledger, ids: Collection[str]) -> Sequence[Section]:
    """Sections that list only the evidence with these ids, as `evidence_list` does."""
    units = dict.fromkeys(quote.unit for quote in ledger.quotes.values() if quote.id in ids)
    sections = [_section(ledger, ledger.units[unit], ids) for unit in units if unit in ledger.units]
    return clean_report(Report(title="", sections=tuple(sections), unresolved=()), ledger)[0].sections


def _section(ledger: Ledger, state: UnitState, only: Collection[str] | None = None) -> Section:
    blocks: list[Block] = []
    if state.status != "completed":
        why = f": {state.error}" if state.error else ""
        blocks.append(
            Paragraph(
                sentences=(
                    Leaf(text=f"This part was not finished ({state.status}{why}).", label="background"),
                )
            )
        )
    blocks.append(
        ItemList(
            items=tuple(
                (Leaf(text=unmarked(quote.text) or quote.text, evidence=(quote.id,), label="finding"),)
                for quote in ledger.evidence_of(state.unit.id)
                if only is None or quote.id in only
            )
        )
    )
    return Section(heading=state.unit.title, blocks=tuple(blocks))
