"""The writer's structured report: read from JSON, checked, and as a last resort cleaned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from leadline.core.llm.jsonvalue import JsonValue
from leadline.research.events import Block, ItemList, Leaf, Paragraph, Report, Section, Table
from leadline.research.ledger.leaves import leaves
from leadline.research.ledger.ledger import Ledger
from leadline.research.verify.check import cited_by, listed, states_nothing
from leadline.research.verify.checks.attribution import AttributionCheck, attributed
from leadline.research.verify.checks.direction import DirectionCheck
from leadline.research.verify.checks.figures import FiguresCheck
from leadline.research.verify.checks.names import NamesCheck, unfounded_quotations
from leadline.research.verify.figures import agreement, figures
from leadline.research.verify.judge import sentences_of, uncited_verdict
from leadline.research.verify.markup import forbidden, plain

__all__ = [
    "Block",
    "ItemList",
    "Leaf",
    "Paragraph",
    "Report",
    "Section",
    "Table",
    "check_report",
    "clean_report",
    "parse_report",
    "report_errors",
]

_NO_MARKUP = "write no addresses, links or citation marks; they are made from the evidence ids"
_SAID_CHECKS = (AttributionCheck(), FiguresCheck(), NamesCheck(), DirectionCheck())


def parse_report(value: JsonValue) -> tuple[Report | None, tuple[str, ...]]:
    """A report from the JSON that a writer returned, or every place where it has the wrong shape."""
    try:
        return msgspec.convert(value, Report), ()
    except msgspec.ValidationError as error:
        return None, _shape_errors(value) or (str(error),)


def _shape_errors(value: JsonValue) -> tuple[str, ...]:
    """Convert part by part, so that one wrong leaf does not hide the next."""
    if not isinstance(value, Mapping):
        return ("the report is not an object",)
    errors: list[str] = []
    sections = value.get("sections")
    for number, section in enumerate(_items(sections)):
        where = f"sections[{number}]"
        blocks = section.get("blocks") if isinstance(section, Mapping) else None
        for place, block in enumerate(_items(blocks)):
            errors.extend(_block_errors(block, f"{where}.blocks[{place}]"))
        if isinstance(section, Mapping):
            errors.extend(_try({**section, "blocks": []}, Section, where))
    errors.extend(_try({**value, "sections": []} if sections is not None else dict(value), Report, "report"))
    return tuple(errors)


def _block_errors(block: JsonValue, where: str) -> list[str]:
    if not isinstance(block, Mapping):
        return [f"{where}: not an object"]
    errors: list[str] = []
    empty: dict[str, JsonValue] = dict(block)
    for name, depth in (("sentences", 1), ("items", 2), ("rows", 2)):
        if name in block:
            for path, leaf in _leaf_values(block[name], depth, f"{where}.{name}"):
                errors.extend(_try(leaf, Leaf, path))
            empty[name] = []
    return [*errors, *_try(empty, cast("type[Block]", Block), where)]


def _leaf_values(value: JsonValue, depth: int, where: str) -> list[tuple[str, JsonValue]]:
    if depth == 0:
        return [(where, value)]
    inner = ((f"{where}[{place}]", item) for place, item in enumerate(_items(value)))
    return [found for path, item in inner for found in _leaf_values(item, depth - 1, path)]


def _items(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _try(value: object, kind: object, where: str) -> list[str]:
    try:
        msgspec.convert(value, cast("type[object]", kind))
    except msgspec.ValidationError as error:
        return [f"{where}: {error}"]
    return []


def check_report(report: Report, ledger: Ledger) -> list[str]:
    """Everything that the writer should mend, as sentences for the writer; empty when there is nothing.

    First what stands in the way of rendering (`report_errors`), then sentences that state what their evidence
    does not have. The second kind may remain: such a sentence is published with its mark.
    """
    return [*report_errors(report, ledger), *_said_without_evidence(report, ledger)]


def report_errors(report: Report, ledger: Ledger) -> list[str]:
    """What stands in the way of rendering: empty parts, unknown evidence, markup, headings that state figures."""
    errors = _text_errors("title", report.title)
    errors.extend(_heading_errors("title", report.title, [leaf for _, leaf in leaves(report)], ledger))
    if not leaves(report):
        errors.append("report: it has no sentence; every report answers the question or says that it cannot")
    for number, section in enumerate(report.sections):
        where = f"sections[{number}]"
        errors.extend(_text_errors(f"{where}.heading", section.heading))
        inside = [leaf for _, leaf in leaves(Report(title="", sections=(section,)))]
        errors.extend(_heading_errors(f"{where}.heading", section.heading, inside, ledger))
        if not inside:
            errors.append(f"{where}: it has no sentence; leave the section out or fill it")
        for place, block in enumerate(section.blocks):
            errors.extend(_block_faults(block, f"{where}.blocks[{place}]", ledger))
    for place, text in enumerate(report.unresolved):
        errors.extend(_text_errors(f"unresolved[{place}]", text))
    return errors


def _text_errors(where: str, text: str) -> list[str]:
    if not text.strip():
        return [f"{where}: it is empty; write it or leave it out"]
    found = forbidden(text)
    return [f"{where}: {', '.join(found)}: {_NO_MARKUP}"] if found else []


def _heading_errors(where: str, heading: str, inside: Sequence[Leaf], ledger: Ledger) -> list[str]:
    """A heading carries no citation, so that what it states must be in the evidence under it."""
    stated = _unfounded_in_heading(heading, inside, ledger)
    if not stated:
        return []
    return [f"{where}: states {listed(stated)}, which is in no evidence cited under it; say it in a sentence"]


def _unfounded_in_heading(heading: str, inside: Sequence[Leaf], ledger: Ledger) -> tuple[str, ...]:
    quotes = (ledger.quotes.get(one) for leaf in inside for one in leaf.evidence)
    words = "\n".join((*(quote.text for quote in quotes if quote), ledger.request.words))
    # A title is the question as it can be shown, which may join what characters that cannot be shown kept apart.
    pool = [*figures(words), *figures(plain(words))]
    wanted = (one for one in figures(heading) if one.required)
    missing = [one.surface for one in wanted if agreement(one, pool) == "absent"]
    return (*missing, *unfounded_quotations(heading, words))


def _block_faults(block: Block, where: str, ledger: Ledger) -> list[str]:
    match block:
        case Paragraph():
            groups, name = (block.sentences,), "sentences"
        case ItemList():
            groups, name = block.items, "items"
        case Table():
            groups, name = block.rows, "rows"
    errors: list[str] = []
    if not groups or not all(groups):
        errors.append(f"{where}.{name}: there is nothing in it; fill it or leave it out")
    if isinstance(block, Table):
        wide = [place for place, row in enumerate(block.rows) if len(row) != len(block.header)]
        errors.extend(f"{where}.rows[{place}]: it has not as many cells as the header" for place in wide)
        for place, text in enumerate(block.header):
            errors.extend(_text_errors(f"{where}.header[{place}]", text or "-"))
    for number, group in enumerate(groups):
        for place, leaf in enumerate(group):
            path = f"{where}.{name}[{place}]" if name == "sentences" else f"{where}.{name}[{number}][{place}]"
            errors.extend(_leaf_errors(leaf, path, ledger))
    return errors


def _leaf_errors(leaf: Leaf, where: str, ledger: Ledger) -> list[str]:
    errors = _text_errors(where, leaf.text)
    unknown = [one for one in leaf.evidence if one not in ledger.quotes]
    if unknown:
        known = ", ".join(list(ledger.quotes)[:20]) or "none"
        errors.append(f"{where}: no evidence has the id {', '.join(unknown)}; use only these: {known}")
    barred = [
        one for one in leaf.evidence if one in ledger.quotes and not ledger.usable(ledger.quotes[one].source)
    ]
    if barred:
        errors.append(
            f"{where}: {', '.join(barred)} comes from a source that could not be read; cite another"
        )
    return errors


def _said_without_evidence(report: Report, ledger: Ledger) -> list[str]:
    errors: list[str] = []
    for sentence in sentences_of(report):
        if states_nothing(sentence.text):
            continue
        shown = sentence.text if len(sentence.text) <= 80 else sentence.text[:77] + "..."
        if not sentence.evidence:
            verdict, reason = uncited_verdict(sentence, ledger)
            if verdict == "not_established":
                errors.append(f"“{shown}” {reason}; name the evidence ids, or leave the sentence out")
            continue
        cited = cited_by(sentence, ledger, {})
        said = attributed(sentence, cited, ledger)
        results = (check.run(said, cited, ledger) for check in _SAID_CHECKS)
        told = [one.reason for one in results if one.outcome in ("fail", "contradicts")]
        if told:
            errors.append(f"“{shown}”: {'; '.join(told)}; correct it or cite the evidence that says it")
    return errors


def clean_report(report: Report, ledger: Ledger) -> tuple[Report, tuple[str, ...]]:
    """The report made fit to be rendered, for a writer that does not mend it, with a note on each kind of change.

    Links become their words, citation marks and unknown evidence ids are taken out, empty parts are dropped, a
    heading that states what its evidence does not have is replaced. No sentence gains evidence. If a sentence is
    left at all, `report_errors` of the result is empty.
    """
    notes: list[str] = []
    sections: list[Section] = []
    for section in report.sections:
        blocks = [block for one in section.blocks if (block := _clean_block(one, ledger, notes)) is not None]
        if not blocks:
            notes.append("A section without a sentence was left out.")
            continue
        heading = _clean_text(section.heading, notes) or f"Section {len(sections) + 1}"
        cleaned = Section(heading=heading, blocks=tuple(blocks))
        inside = [leaf for _, leaf in leaves(Report(title="", sections=(cleaned,)))]
        if _unfounded_in_heading(heading, inside, ledger):
            notes.append(f"A heading stated what its evidence does not have and was replaced: “{heading}”.")
            cleaned = Section(heading="Findings", blocks=tuple(blocks))
        sections.append(cleaned)
    title = _clean_text(report.title, notes)
    every = [leaf for _, leaf in leaves(Report(title="", sections=tuple(sections)))]
    if not title or _unfounded_in_heading(title, every, ledger):
        title = plain(ledger.request.question) or "Report"
        notes.append(
            "The title was empty or stated what the evidence does not have; the question stands instead."
        )
    unresolved = tuple(text for one in report.unresolved if (text := _clean_text(one, notes)))
    return Report(title=title, sections=tuple(sections), unresolved=unresolved), tuple(dict.fromkeys(notes))


def _clean_text(text: str, notes: list[str]) -> str:
    if forbidden(text):
        notes.append(
            "The writer had put addresses, links or citation marks into the text; they were taken out."
        )
    return plain(text)


def _clean_leaf(leaf: Leaf, ledger: Ledger, notes: list[str]) -> Leaf:
    kept = tuple(
        one for one in leaf.evidence if one in ledger.quotes and ledger.usable(ledger.quotes[one].source)
    )
    if len(kept) != len(leaf.evidence):
        notes.append("The writer had cited evidence that is not on record; those citations were taken out.")
    return Leaf(text=_clean_text(leaf.text, notes), evidence=kept, label=leaf.label)


def _clean_block(block: Block, ledger: Ledger, notes: list[str]) -> Block | None:
    def group(leaves_of: Sequence[Leaf]) -> tuple[Leaf, ...]:
        cleaned = (_clean_leaf(leaf, ledger, notes) for leaf in leaves_of)
        return tuple(leaf for leaf in cleaned if leaf.text)

    match block:
        case Paragraph():
            sentences = group(block.sentences)
            return Paragraph(sentences=sentences) if sentences else None
        case ItemList():
            items = tuple(item for one in block.items if (item := group(one)))
            return ItemList(items=items) if items else None
        case Table():
            return _clean_table(block, ledger, notes)


def _clean_table(table: Table, ledger: Ledger, notes: list[str]) -> Table | None:
    rows = [tuple(_clean_leaf(leaf, ledger, notes) for leaf in row) for row in table.rows if row]
    width = max((len(row) for row in rows), default=0)
    if not any(leaf.text for row in rows for leaf in row):
        return None
    header = [*(_clean_text(one, notes) or "-" for one in table.header), *["-"] * width]
    width = max(width, len(table.header))
    blank = Leaf(text="-", label="background")
    filled = (
        tuple(leaf if leaf.text else blank for leaf in (*row, *[blank] * (width - len(row)))) for row in rows
    )
    return Table(header=tuple(header[:width]), rows=tuple(filled))
