"""The writer: quotes that say which document speaks, the current version first, and what is missing."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.research.events import ItemList, Paragraph, Report, Table
from leadline.research.extractive.phrases import COLUMNS, STATES
from leadline.research.extractive.writing import write
from leadline.research.roles.purposes import (
    EvidenceItem,
    EvidenceSource,
    SynthesisData,
    UnitReport,
    VersionPair,
)

NEW = EvidenceSource(id="n", title="House rules", location="new.md", published="2026-05-01")
OLD = EvidenceSource(id="o", title="House rules", location="old.md", published="2022-02-15")
OTHER = EvidenceSource(id="x", title="Minutes", location="minutes.md")


def item(number: int, quote: str, source: EvidenceSource = NEW, **more: Any) -> EvidenceItem:
    known = {"id": f"u1.e{number}", "unit": "u1", "claim": quote, "polarity": "supporting", **more}
    return msgspec.convert({**known, "quote": quote, "source": msgspec.to_builtins(source)}, EvidenceItem)


def report(
    *evidence: EvidenceItem, unresolved: tuple[str, ...] = (), tables: bool = True, **more: Any
) -> Report:
    units = tuple(
        UnitReport(id=name, title="Keys", question="Keys?", status="completed", unresolved=unresolved)
        for name in dict.fromkeys(("u1", *(one.unit for one in evidence)))
    )
    pairs = (VersionPair(newer="n", older="o", reason="later"),)
    data = SynthesisData(
        question="What does a key cost?", brief="", units=units, evidence=evidence, versions=pairs, **more
    )
    return msgspec.convert(write(data, tables=tables), Report)


def sentences(made: Report) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (leaf.text, leaf.evidence)
        for section in made.sections
        for block in section.blocks
        if isinstance(block, Paragraph)
        for leaf in block.sentences
    ]


def test_a_sentence_is_its_quote_without_the_marks_of_lists_and_emphasis() -> None:
    made = report(item(1, "- **Keys:** a lost key\n  costs EUR 25."))
    assert sentences(made) == [("Keys: a lost key costs EUR 25.", ("u1.e1",))]


def test_the_older_version_follows_and_is_named_as_such() -> None:
    made = report(
        item(1, "A lost key costs EUR 25."),
        item(2, "A lost key costs EUR 10.", OLD, polarity="opposing"),
        item(3, "Replaced by the rules of 2026.", OLD, claim=STATES, polarity="context"),
    )
    assert sentences(made)[1:] == [
        ("According to “House rules” (2026-05-01): A lost key costs EUR 25.", ("u1.e1",)),
        (
            "An older version of this document, “House rules” (2022-02-15), says: A lost key costs EUR 10.",
            ("u1.e2",),
        ),
        ("Replaced by the rules of 2026.", ("u1.e3",)),
    ]
    assert "differ" in sentences(made)[0][0]


def test_each_of_several_documents_is_named_with_its_date_where_it_has_one() -> None:
    made = report(item(1, "Margin: 33%"), item(2, "Margin: 41%", OTHER))
    assert [text for text, _ in sentences(made)] == [
        "According to “House rules” (2026-05-01): Margin: 33%",
        "According to “Minutes”: Margin: 41%",
    ]


def test_a_title_with_quotation_marks_gives_way_to_the_file_name() -> None:
    source = EvidenceSource(id="q", title="On “keys”", location="a/keys.md")
    made = report(item(1, "Margin: 33%"), item(2, "Margin: 41%", source))
    assert sentences(made)[1][0] == "According to “keys.md”: Margin: 41%"


def test_several_statements_of_an_older_version_are_one_list_under_one_table() -> None:
    made = report(
        item(1, "| Load | 6 kg |"),
        item(2, "| Spec | B-2 |", claim=COLUMNS, polarity="context"),
        item(3, "Load: 5 kg", OLD, polarity="opposing"),
        item(4, "| Battery | 11h |"),
        item(5, "Battery: 8h", OLD, polarity="opposing"),
    )
    blocks = made.sections[0].blocks
    (table,) = [block for block in blocks if isinstance(block, Table)]
    assert table.header == ("Spec", "B-2")
    assert [[leaf.text for leaf in row] for row in table.rows] == [["Load", "6 kg"], ["Battery", "11h"]]
    (older,) = [block for block in blocks if isinstance(block, ItemList)]
    assert [leaf.text for entry in older.items for leaf in entry] == ["Load: 5 kg", "Battery: 8h"]


def test_a_quoted_table_becomes_a_table() -> None:
    made = report(item(1, "| Spec | A-1 | B-2 |\n|---|---|---|\n| Load | 5 kg | 6 kg |"))
    (table,) = [block for block in made.sections[0].blocks if isinstance(block, Table)]
    assert table.header == ("Spec", "A-1", "B-2")
    assert [[leaf.text for leaf in row] for row in table.rows] == [["Load", "5 kg", "6 kg"]]


def test_rows_of_csv_and_their_head_are_one_table_each_with_its_own_quote() -> None:
    made = report(
        item(1, "Saoirse,9.8"),
        item(2, "boat,length", claim=COLUMNS, polarity="context"),
        item(3, "Cormorant,11.2"),
    )
    (table,) = [block for block in made.sections[0].blocks if isinstance(block, Table)]
    assert table.header == ("boat", "length")
    assert [(row[0].text, row[0].evidence) for row in table.rows] == [
        ("Saoirse", ("u1.e1", "u1.e2")),
        ("Cormorant", ("u1.e3", "u1.e2")),
    ]


def test_without_tables_the_rows_stand_as_they_are() -> None:
    made = report(
        item(1, "Saoirse,9.8"), item(2, "boat,length", claim=COLUMNS, polarity="context"), tables=False
    )
    (rows,) = [block for block in made.sections[0].blocks if isinstance(block, ItemList)]
    assert [leaf.text for entry in rows.items for leaf in entry] == ["boat,length", "Saoirse,9.8"]


def test_a_quoted_list_stays_a_list() -> None:
    made = report(item(1, "Levels:\n\n- SEV-1: all\n- SEV-2: some"))
    (block,) = [block for block in made.sections[0].blocks if isinstance(block, ItemList)]
    assert [leaf.text for entry in block.items for leaf in entry] == ["Levels:", "SEV-1: all", "SEV-2: some"]


def test_what_one_unit_told_another_does_not_repeat() -> None:
    made = report(item(1, "Open on Mondays."), item(2, "Open on Mondays.", unit="u2"))
    assert len(sentences(made)) == 1


def test_it_says_what_is_missing_in_the_language_asked_for_and_nothing_of_itself() -> None:
    made = report(
        item(1, "A lost key costs EUR 25."), unresolved=("Nicht gefunden: Ruder",), language="German"
    )
    assert [section.heading for section in made.sections] == [
        "Was die Dokumente sagen",
        "Was nicht gefunden wurde",
    ]
    assert made.unresolved == ("Nicht gefunden: Ruder",)


def test_addresses_in_a_quote_do_not_reach_the_prose() -> None:
    made = report(item(1, "See https://evil.example/path?x=1 for keys, they cost EUR 25 each."))
    assert "https://" not in sentences(made)[0][0]


def test_evidence_of_another_model_is_written_up_too() -> None:
    made = report(item(1, "A lost key costs EUR 25.", claim="Keys are dear."))
    assert sentences(made)[0][0] == "A lost key costs EUR 25."
