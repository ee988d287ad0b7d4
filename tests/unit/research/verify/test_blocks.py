"""Marks of Markdown say how words are set; they cost no verdict, and what is more than a mark stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.research.events import Leaf, Report, Section, Table
from leadline.research.verify.blocks import blocks, unmarked
from leadline.research.verify.judge import judge

Maker = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- **CEO:** Mara Lindqvist", "CEO: Mara Lindqvist"),
        ("CEO:** Mara Lindqvist", "CEO: Mara Lindqvist"),
        ("## Costs\n\nThey *rose* by `5` %.", "Costs | They rose by 5 %."),
        ("| A | B |\n|---|:-:|\n| **x** | - |", "A | B | x | -"),
        ("wrapped\nover lines\n- one\n  more\n- two", "wrapped over lines | one more | two"),
        ("> quoted\n> on", "quoted on"),
        ("> 5 mg", "> 5 mg"),
        ("1. one\n2. two", "1. one | 2. two"),
        ("snake_case 2**10 5*3 a \\| b", "snake_case 2**10 5*3 a | b"),
        ("~~gone~~ -5 %", "~~gone~~ -5 %"),
        ("---", ""),
        ("- [ ] open", "[ ] open"),
    ],
)
def test_marks_are_left_out_and_words_stay(text: str, words: str) -> None:
    assert unmarked(text) == words


def test_a_row_knows_its_cells() -> None:
    head, body = blocks("| A | B |\n|---|---|\n| x | y \\| z |")
    assert head.cells == ("A", "B")
    assert body.kind == "row" and body.cells[0] == "x"


@given(st.text(alphabet="ab12 .,%-", max_size=80))
def test_text_without_marks_keeps_every_letter_and_digit(text: str) -> None:
    assert [one for one in unmarked(text) if one.isalnum()] == [one for one in text if one.isalnum()]


def _verdict(make_world: Maker, document: str, quote: str, sentence: str) -> Any:
    world = make_world()
    evidence = world.quote(world.source(document), quote)
    report = world.draft([Leaf(text=sentence, evidence=(evidence,))])
    return judge(report, world.ledger, world.texts)[0]


@pytest.mark.parametrize(
    ("document", "quote", "sentence"),
    [
        (
            "- Headcount: 241 (up from 168)\n- **CEO:** Mara Lindqvist (co-founder)\n- CTO: Daan",
            "- **CEO:** Mara Lindqvist (co-founder)",
            "CEO: Mara Lindqvist (co-founder)",
        ),
        (
            "# Plan until 2027\nThe cap is **12** units.\n",
            "The cap is **12** units.",
            "The cap is 12 units.",
        ),
        (
            "# Costs\n\n* *Hotel caps*: EUR 180\n* Meals: EUR 50",
            "*Hotel caps*: EUR 180",
            "Hotel caps: EUR 180.",
        ),
        (
            "Text.\n\n- Payload: 950 kg\n- Speed: 2.4 m/s\n",
            "- Payload: 950 kg\n- Speed: 2.4 m/s",
            "Speed: 2.4 m/s.",
        ),
        (
            "| Plan | Price |\n|---|---|\n| **Gold** | only EUR 5 |\n",
            "| **Gold** | only EUR 5 |",
            "Gold | only EUR 5",
        ),
        ("- **収入：** 5.2億円", "- **収入：** 5.2億円", "収入： 5.2億円"),
    ],
)
def test_marks_of_the_document_cost_no_verdict(
    make_world: Maker, document: str, quote: str, sentence: str
) -> None:
    given_ = _verdict(make_world, document, quote, sentence)
    assert given_.verdict == "supported", given_.reason


@pytest.mark.parametrize(
    ("document", "quote", "sentence", "told"),
    [
        (
            "Never more than\n10 units of the drug may be given.",
            "10 units of the drug may be given.",
            "10 units of the drug may be given.",
            "Never",
        ),
        (
            "Not reimbursed:\n\n- Hotel minibar\n- Alcohol with meals\n",
            "- Alcohol with meals",
            "Alcohol with meals.",
            "Not reimbursed",
        ),
        (
            "Not reimbursed:\n- Hotel minibar bills\n",
            "Not reimbursed:\n- Hotel minibar bills",
            "Hotel minibar bills.",
            "",
        ),
        (
            "# Rejected\n\nThe cap rises to 12.",
            "# Rejected\n\nThe cap rises to 12.",
            "The cap rises to 12.",
            "",
        ),
    ],
)
def test_what_refuses_the_words_below_it_is_not_left_out(
    make_world: Maker, document: str, quote: str, sentence: str, told: str
) -> None:
    given_ = _verdict(make_world, document, quote, sentence)
    assert given_.verdict == "not_established"
    assert told in given_.reason


SPECS = "| Spec | VLX-400 | VLX-500 |\n|---|---|---|\n| Payload | up to 600 kg | 950 kg |\n| Battery | 8h Li-ion | 11h LFP |"


@pytest.mark.parametrize(
    ("row", "verdicts"),
    [
        (("Battery", "8h Li-ion", "11h LFP"), ["supported"] * 3),
        (("Battery", "11h LFP", "8h Li-ion"), ["supported", "not_established", "not_established"]),
        (("Payload", "up to 600 kg", "950 kg"), ["supported"] * 3),
        (("Payload", "600 kg", "950 kg"), ["supported", "not_established", "supported"]),
    ],
)
def test_a_cell_stands_in_its_own_row_and_column(
    make_world: Maker, row: tuple[str, ...], verdicts: list[str]
) -> None:
    world = make_world()
    evidence = (world.quote(world.source(SPECS), SPECS),)
    table = Table(
        header=("Spec", "VLX-400", "VLX-500"),
        rows=(tuple(Leaf(text=cell, evidence=evidence) for cell in row),),
    )
    report = Report(title="t", sections=(Section(heading="h", blocks=(table,)),))
    assert [one.verdict for one in judge(report, world.ledger, world.texts)] == verdicts


@pytest.mark.parametrize("cell", ["-", "–", "—", "...", "…"])
@pytest.mark.parametrize("cites", [True, False])
def test_an_empty_cell_states_nothing(make_world: Maker, cell: str, cites: bool) -> None:
    world = make_world()
    evidence = (world.quote(world.source(SPECS), SPECS),) if cites else ()
    table = Table(header=("Spec",), rows=((Leaf(text=cell, evidence=evidence),),))
    report = Report(title="t", sections=(Section(heading="h", blocks=(table,)),))
    given_ = judge(report, world.ledger, world.texts)[0]
    assert (given_.verdict, given_.reason) == ("not_checked", "states nothing")


def test_a_tick_in_a_cell_states_something(make_world: Maker) -> None:
    world = make_world()
    report = Report(
        title="t",
        sections=(Section(heading="h", blocks=(Table(header=("Ready",), rows=((Leaf(text="✓"),),)),)),),
    )
    assert judge(report, world.ledger, {})[0].verdict == "not_established"
