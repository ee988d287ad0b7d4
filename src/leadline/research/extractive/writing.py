"""The writer's part: recorded quotes become a report, ordered by facet, newest version first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from leadline.core.llm.jsonvalue import JsonValue
from leadline.research.extractive.language import Language
from leadline.research.extractive.phrases import COLUMNS, STATES, attributed, phrase, report_language
from leadline.research.extractive.plain import is_list, plain, shown
from leadline.research.extractive.planning import title
from leadline.research.extractive.relative import is_relative
from leadline.research.extractive.tables import leaf, split_row, table_of, whole_table
from leadline.research.roles.purposes import EvidenceItem, SynthesisData, UnitReport

BRIEF_GROUPS = 2
"""Answers of a unit that a brief has room for."""


@dataclass
class _Group:
    """An answer with the quotes that give it context."""

    answer: EvidenceItem
    columns: EvidenceItem | None = None
    """The head of the table that the answer is a row of."""
    rows: list[EvidenceItem] = field(default_factory=list[EvidenceItem])
    """Further rows of the same table."""
    states: list[EvidenceItem] = field(default_factory=list[EvidenceItem])
    older: list[_Group] = field(default_factory=list["_Group"])


@dataclass(frozen=True)
class _Style:
    """How blocks are written."""

    language: Language
    tables: bool


def write(data: SynthesisData, *, tables: bool = True) -> JsonValue:
    """A report for `structured_output`. Every sentence from a document is a quote of it, and says of which one.

    Args:
        data: what the writer is asked, with the evidence.
        tables: whether rows may be drawn as a table rather than as they stand.
    """
    language = report_language(data.language, data.question)
    sections: list[JsonValue] = []
    told: set[tuple[str, str]] = set()
    for unit in data.units:
        groups = _new_groups([item for item in data.evidence if item.unit == unit.id], data, told)
        if data.format == "brief":
            groups = groups[:BRIEF_GROUPS]
        blocks = _unit_blocks(unit, groups, _Style(language, tables))
        if blocks:
            sections.append({"heading": _heading(unit, data, language), "blocks": blocks})
    missing = list(
        dict.fromkeys((*(text for unit in data.units for text in unit.unresolved), *data.unresolved))
    )
    if missing:
        listed: list[JsonValue] = [[leaf(text, (), "background")] for text in missing]
        sections.append(
            {"heading": phrase("missing", language), "blocks": [{"kind": "list", "items": listed}]}
        )
    return {"title": title(data.question), "sections": sections, "unresolved": missing}


def _heading(unit: UnitReport, data: SynthesisData, language: Language) -> str:
    same = title(unit.title) == title(data.question) or len(data.units) == 1
    return phrase("findings", language) if same else title(unit.title)


def _new_groups(
    evidence: Sequence[EvidenceItem], data: SynthesisData, told: set[tuple[str, str]]
) -> list[_Group]:
    """The groups of a unit without answers that an earlier one gave; `told` learns of those that are left."""
    groups = [
        group
        for group in _groups(evidence, data)
        if group.older or (group.answer.source.id, group.answer.quote) not in told
    ]
    told |= {(one.answer.source.id, one.answer.quote) for one in groups}
    return groups


def _groups(evidence: Sequence[EvidenceItem], data: SynthesisData) -> list[_Group]:
    """Answers in the order of the record, an older version under the newer one that it differs from."""
    newer_of = {pair.older: pair.newer for pair in data.versions}
    groups: list[_Group] = []
    every: list[_Group] = []
    heads: dict[str, EvidenceItem] = {}
    for item in evidence:
        if item.claim in (STATES, COLUMNS):
            _give_context(item, every, heads)
            continue
        newer = newer_of.get(item.source.id)
        over = next((one for one in reversed(groups) if newer and one.answer.source.id == newer), None)
        if over is None and item.polarity == "opposing" and groups:
            over = groups[-1]
        if over is None and _is_further_row(item, groups):
            groups[-1].rows.append(item)
            continue
        group = _Group(item)
        every.append(group)
        (groups if over is None else over.older).append(group)
    for group in every:
        head = heads.get(group.answer.source.id)
        if group.columns is None and head and len(split_row(head)) == len(split_row(group.answer)) > 1:
            group.columns = head
    return groups


def _is_further_row(item: EvidenceItem, groups: Sequence[_Group]) -> bool:
    """Whether a quote is one more row of the table that the answer before it is a row of."""
    last = groups[-1] if groups else None
    if last is None or last.columns is None or last.answer.source.id != item.source.id:
        return False
    return len(split_row(item)) == len(split_row(last.columns)) > 1


def _give_context(item: EvidenceItem, every: Sequence[_Group], heads: dict[str, EvidenceItem]) -> None:
    group = next((one for one in reversed(every) if one.answer.source.id == item.source.id), None)
    if item.claim == COLUMNS:
        heads[item.source.id] = item
    if group is None:
        return
    if item.claim == COLUMNS:
        group.columns = item
    elif item.claim == STATES:
        group.states.append(item)


def _unit_blocks(unit: UnitReport, groups: Sequence[_Group], style: _Style) -> list[JsonValue]:
    """What the documents say; which one, where several do; that versions differ, where they do, before all else."""
    opening: list[JsonValue] = []
    if is_relative(unit.question):
        opening.append(leaf(phrase("relative", style.language), (), "background"))
    if any(group.older for group in groups):
        opening.append(leaf(phrase("differ", style.language), (), "analysis"))
    sources = {one.answer.source.id for group in groups for one in (group, *group.older)}
    blocks: list[JsonValue] = [{"kind": "paragraph", "sentences": opening}] if opening and groups else []
    for group in groups:
        blocks.extend(_answer_blocks(group, "according" if len(sources) > 1 else "", style))
        for source in dict.fromkeys(one.answer.source.id for one in group.older):
            older = [one for one in group.older if one.answer.source.id == source]
            blocks.extend(_older_blocks(older, style))
    noted = [one for group in groups for older in group.older for one in older.states]
    notes = [
        _quoted(one) for at, one in enumerate(noted) if one.quote not in {two.quote for two in noted[:at]}
    ]
    return [*blocks, {"kind": "paragraph", "sentences": notes}] if notes else blocks


def _older_blocks(groups: Sequence[_Group], style: _Style) -> list[JsonValue]:
    """What one older version says: several of its statements as a list."""
    if len(groups) == 1:
        return _answer_blocks(groups[0], "older", style)
    items = [item for group in groups for item in (group.answer, *group.rows)]
    named = _named(items[0], "older", style.language)
    return [
        {"kind": "paragraph", "sentences": [leaf(named, [one.id for one in items])]},
        {"kind": "list", "items": [[_quoted(one)] for one in items]},
    ]


def _answer_blocks(group: _Group, form: str, style: _Style) -> list[JsonValue]:
    """An answer as a table where its quotes are one, as a list where it is one, else as a sentence."""
    every = [group.answer, *group.rows]
    table = _table(group) if style.tables else None
    items = list_items(group.answer)
    if table is None and group.columns is None and len(every) == 1 and len(items) < 2:
        return [{"kind": "paragraph", "sentences": [_quoted(group.answer, form, style.language)]}]
    named = _named(group.answer, form, style.language)
    opening: list[JsonValue] = (
        [{"kind": "paragraph", "sentences": [leaf(named, [one.id for one in every])]}] if named else []
    )
    if table is not None:
        return [*opening, table]
    if len(items) > 1:
        return [*opening, {"kind": "list", "items": [[leaf(text, (group.answer.id,))] for text in items]}]
    head = [group.columns] if group.columns is not None else []
    return [*opening, {"kind": "list", "items": [[_quoted(one)] for one in (*head, *every)]}]


def _table(group: _Group) -> JsonValue | None:
    if group.columns is not None:
        return table_of(group.columns, [group.answer, *group.rows])
    return whole_table(group.answer)


def list_items(item: EvidenceItem) -> list[str]:
    """The entries of a quoted list, with its introduction as the first; one entry where it is no list."""
    if not is_list(item.quote):
        return [item.quote]
    entries: list[str] = []
    for line in item.quote.splitlines():
        starts = plain(line) != " ".join(line.split()).replace("**", "")
        if not line.strip():
            continue
        if starts or not entries:
            entries.append(line)
        else:
            entries[-1] += "\n" + line
    return [shown(plain(entry)) for entry in entries]


def _named(item: EvidenceItem, form: str, language: Language) -> str:
    """The words that say which document speaks, ending with a colon; empty where none are wanted."""
    if not form:
        return ""
    return attributed(form, language, shown(item.source.title), item.source.location, item.source.published)


def _quoted(item: EvidenceItem, form: str = "", language: Language = "en") -> JsonValue:
    text = shown(plain(item.quote))
    named = _named(item, form, language)
    between = "" if not named or language in ("zh", "ja") else " "
    return leaf(f"{named}{between}{text}", (item.id,))
