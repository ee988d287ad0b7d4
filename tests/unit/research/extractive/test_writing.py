"""The writer: a report of quotes, newest first, that says how it was made and what is missing."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.research.events import ItemList, Paragraph, Report, Table
from leadline.research.extractive.phrases import NAMES, STATES
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


def item(number: int, quote: str, source: EvidenceSource = NEW, **more: Any) -> EvidenceItem:
    known = {"id": f"u1.e{number}", "unit": "u1", "claim": quote, "polarity": "supporting", **more}
    return msgspec.convert({**known, "quote": quote, "source": msgspec.to_builtins(source)}, EvidenceItem)


def report(*evidence: EvidenceItem, unresolved: tuple[str, ...] = (), **more: Any) -> Report:
    unit = UnitReport(id="u1", title="Keys", question="Keys?", status="completed", unresolved=unresolved)
    pairs = (VersionPair(newer="n", older="o", reason="later"),)
    data = SynthesisData(
        question="What does a key cost?", brief="", units=(unit,), evidence=evidence, versions=pairs, **more
    )
    return msgspec.convert(write(data), Report)


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
    assert sentences(made)[0] == ("Keys: a lost key costs EUR 25.", ("u1.e1",))


def test_the_older_version_follows_and_is_announced_as_such() -> None:
    made = report(
        item(1, "A lost key costs EUR 25."),
        item(2, "A lost key costs EUR 10.", OLD, polarity="opposing"),
        item(3, "Valid from 15 February 2022.", OLD, claim=STATES, polarity="context"),
    )
    texts = [text for text, _ in sentences(made)]
    assert texts[:4] == [
        "A lost key costs EUR 25.",
        "An older version of this document differs:",
        "A lost key costs EUR 10.",
        "Valid from 15 February 2022.",
    ]


def test_the_name_of_a_document_comes_before_its_value() -> None:
    made = report(
        item(1, "- Margin: 33%"),
        item(2, "# Q1 2024 Report", claim=NAMES, polarity="context"),
        item(3, "- Margin: 41%"),
    )
    assert sentences(made)[:2] == [("Q1 2024 Report:", ("u1.e2",)), ("Margin: 33%", ("u1.e1",))]


def test_a_quoted_table_becomes_a_table_of_the_rows_that_answer() -> None:
    quote = "| Spec | A-1 | B-2 |\n|---|---|---|\n| Load | 5 kg | 6 kg |\n| Battery | 8h | 11h |"
    made = report(item(1, quote, claim="Brief: Battery | 8h | 11h"))
    (table,) = [block for block in made.sections[0].blocks if isinstance(block, Table)]
    assert table.header == ("Spec", "A-1", "B-2")
    assert [[leaf.text for leaf in row] for row in table.rows] == [["Battery", "8h", "11h"]]


def test_a_quoted_list_stays_a_list() -> None:
    made = report(item(1, "Levels:\n\n- SEV-1: all\n- SEV-2: some"))
    (block,) = [block for block in made.sections[0].blocks if isinstance(block, ItemList)]
    assert [leaf.text for entry in block.items for leaf in entry] == ["Levels:", "SEV-1: all", "SEV-2: some"]


def test_it_says_how_it_was_made_and_what_is_missing_in_the_language_asked_for() -> None:
    made = report(
        item(1, "A lost key costs EUR 25."), unresolved=("Nicht gefunden: Ruder",), language="German"
    )
    assert [section.heading for section in made.sections][-2:] == [
        "Was nicht gefunden wurde",
        "Wie dieser Bericht entstand",
    ]
    assert "ohne Sprachmodell" in sentences(made)[-1][0]
    assert made.unresolved == ("Nicht gefunden: Ruder",)


def test_addresses_in_a_quote_do_not_reach_the_prose() -> None:
    made = report(item(1, "See https://evil.example/path?x=1 for keys, they cost EUR 25 each."))
    assert "https://" not in sentences(made)[0][0]


def test_evidence_of_another_model_is_written_up_too() -> None:
    made = report(item(1, "A lost key costs EUR 25.", claim="Keys are dear."))
    assert sentences(made)[0][0] == "A lost key costs EUR 25."
