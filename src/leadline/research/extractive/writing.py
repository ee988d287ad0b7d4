"""The writer's part: recorded quotes become a report, ordered by facet, newest version first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from leadline.core.llm.jsonvalue import JsonValue
from leadline.research.extractive.language import Language
from leadline.research.extractive.phrases import COLUMNS, NAMES, STATES, phrase, report_language
from leadline.research.extractive.plain import cells, plain
from leadline.research.extractive.planning import title
from leadline.research.roles.purposes import EvidenceItem, SynthesisData, UnitReport
from leadline.research.verify.markup import plain as without_markup
from leadline.research.verify.tokens import tokens

BRIEF_GROUPS = 2
"""Answers of a unit that a brief has room for."""


@dataclass
class _Group:
    """An answer with the quotes that give it context."""

    answer: EvidenceItem
    names: list[EvidenceItem] = field(default_factory=list[EvidenceItem])
    states: list[EvidenceItem] = field(default_factory=list[EvidenceItem])
    columns: list[EvidenceItem] = field(default_factory=list[EvidenceItem])
    older: list[_Group] = field(default_factory=list["_Group"])


def write(data: SynthesisData) -> JsonValue:
    """A report for `structured_output`. Every sentence from a document is a quote; the rest says how it came about."""
    language = report_language(data.language, data.question)
    sections: list[JsonValue] = []
    for unit in data.units:
        groups = _groups([item for item in data.evidence if item.unit == unit.id], data)
        if data.format == "brief":
            groups = groups[:BRIEF_GROUPS]
        blocks = [block for group in groups for block in _blocks(group, language)]
        if blocks:
            sections.append({"heading": _heading(unit, data, language), "blocks": blocks})
    missing = list(
        dict.fromkeys((*(text for unit in data.units for text in unit.unresolved), *data.unresolved))
    )
    if missing:
        told: list[JsonValue] = [[_leaf(text, (), "background")] for text in missing]
        sections.append({"heading": phrase("missing", language), "blocks": [{"kind": "list", "items": told}]})
    made = _leaf(phrase("extraction", language), (), "background")
    sections.append(
        {"heading": phrase("about", language), "blocks": [{"kind": "paragraph", "sentences": [made]}]}
    )
    return {"title": title(data.question), "sections": sections, "unresolved": missing}


def _heading(unit: UnitReport, data: SynthesisData, language: Language) -> str:
    same = title(unit.title) == title(data.question) or len(data.units) == 1
    return phrase("findings", language) if same else title(unit.title)


def _groups(evidence: Sequence[EvidenceItem], data: SynthesisData) -> list[_Group]:
    """Answers in the order of the record, an older version under the newer one that it differs from."""
    newer_of = {pair.older: pair.newer for pair in data.versions}
    groups: list[_Group] = []
    every: list[_Group] = []
    for item in evidence:
        if item.claim in (NAMES, STATES, COLUMNS):
            _give_context(item, every)
            continue
        group = _Group(item)
        every.append(group)
        over = next((one for one in groups if one.answer.source.id == newer_of.get(item.source.id)), None)
        if over is not None:
            over.older.append(group)
        elif item.polarity == "opposing" and groups:
            groups[-1].older.append(group)
        else:
            groups.append(group)
    return groups


def _give_context(item: EvidenceItem, every: Sequence[_Group]) -> None:
    group = next((one for one in reversed(every) if one.answer.source.id == item.source.id), None)
    if group is not None:
        place = {NAMES: group.names, STATES: group.states, COLUMNS: group.columns}[item.claim]
        place.append(item)


def _blocks(group: _Group, language: Language) -> list[JsonValue]:
    blocks = _answer_blocks(group)
    for older in group.older:
        opening = _leaf(phrase("older", language), (), "analysis")
        name = [_quoted(one, ":") for one in older.names]
        states = [_quoted(one) for one in older.states]
        answer = _answer_blocks(_Group(older.answer, columns=older.columns))
        blocks.append({"kind": "paragraph", "sentences": [opening, *name, *_sentences(answer), *states]})
        blocks.extend(block for block in answer if not _sentences([block]))
    return blocks


def _sentences(blocks: Sequence[JsonValue]) -> list[JsonValue]:
    found: list[JsonValue] = []
    for block in blocks:
        if isinstance(block, dict) and block.get("kind") == "paragraph":
            found.extend(block["sentences"])  # pyright: ignore[reportArgumentType] - made below
    return found


def _answer_blocks(group: _Group) -> list[JsonValue]:
    """An answer as a table where its quote is one, as a list where it is one, else as a sentence."""
    table = _table(group.answer)
    states = [_quoted(one) for one in group.states]
    if table is not None:
        after: list[JsonValue] = [{"kind": "paragraph", "sentences": states}] if states else []
        return [table, *after]
    name = [_quoted(one, ":") for one in (*group.names, *group.columns)]
    items = _list_items(group.answer)
    if len(items) > 1:
        leaves: list[JsonValue] = [[_leaf(text, (group.answer.id,))] for text in items]
        opening: list[JsonValue] = [{"kind": "paragraph", "sentences": name}] if name else []
        closing: list[JsonValue] = [{"kind": "paragraph", "sentences": states}] if states else []
        return [*opening, {"kind": "list", "items": leaves}, *closing]
    return [{"kind": "paragraph", "sentences": [*name, _quoted(group.answer), *states]}]


def _table(item: EvidenceItem) -> JsonValue | None:
    """The head of a quoted table and the rows that its claim names; None where it is none or holds a reservation.

    A cell is established only by a quote that says nothing else of it.
    """
    rows = [cells(line) for line in item.quote.splitlines() if line.strip().startswith("|")]
    rows = [row for row in rows if not all(set(cell) <= set(":- ") for cell in row)]
    named = [row for row in rows[1:] if " | ".join(row) in item.claim] or rows[-1:]
    if len(rows) < 2 or any(len(row) != len(rows[0]) or not all(row) for row in named):
        return None
    if any(token.reserves for token in tokens(item.quote)):
        return None
    return {
        "kind": "table",
        "header": [_shown(cell) or "-" for cell in rows[0]],
        "rows": [[_leaf(_shown(cell), (item.id,)) for cell in row] for row in named],
    }


def _list_items(item: EvidenceItem) -> list[str]:
    """The entries of a quoted list, with its introduction as the first; one entry where it is no list."""
    lines = item.quote.splitlines()
    if (
        sum(
            line.lstrip()[:2] in ("- ", "* ", "• ") or line.lstrip()[:3].rstrip(". )").isdigit()
            for line in lines
        )
        < 2
    ):
        return [item.quote]
    entries: list[str] = []
    for line in lines:
        starts = plain(line) != " ".join(line.split()).replace("**", "")
        if not line.strip():
            continue
        if starts or not entries:
            entries.append(line)
        else:
            entries[-1] += "\n" + line
    return [_shown(plain(entry)) for entry in entries]


def _quoted(item: EvidenceItem, ending: str = "") -> JsonValue:
    text = _shown(plain(item.quote))
    closed = text.endswith((".", ":", "!", "?", "。", "："))
    return _leaf(text if closed else text + ending, (item.id,))


def _shown(text: str) -> str:
    """Words of a document without what a report may not hold: addresses, marks, tags."""
    return without_markup(plain(text)) or plain(text)


def _leaf(text: str, evidence: Sequence[str], label: str = "finding") -> JsonValue:
    return {"text": text, "evidence": list(evidence), "label": label}
