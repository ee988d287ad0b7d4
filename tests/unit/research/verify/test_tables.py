"""A cell may cite the head of its table and its row apart; only its own row and column of that one table bear it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.research.events import Leaf, Report, Section, Table, VerdictGiven
from leadline.research.verify.blocks import blocks
from leadline.research.verify.csv_records import csv_records
from leadline.research.verify.judge import judge

Maker = Callable[..., Any]

HEAD = "| Spec | VLX-400 | VLX-500 |"
PAYLOAD = "| Payload | up to 600 kg | 950 kg |"
BATTERY = "| Battery | 8h Li-ion | 11h LFP |"
RULE = "|---|---|---|"
SPECS = f"# Robots\n\n{HEAD}\n{RULE}\n{PAYLOAD}\n{BATTERY}\n\nThe end.\n"

CSV_HEAD = "Region,2022,2023,State"
NORTH = 'North,12,450,"not audited, yet"'
SOUTH = "South,7,981,final"
SALES = f"{CSV_HEAD}\n{NORTH}\n{SOUTH}\n"
CSV = "text/csv"


def _judged(
    make_world: Maker,
    quotes: tuple[tuple[str, str], ...],
    header: tuple[str, ...],
    row: tuple[str, ...],
    media_type: str = "text/markdown",
) -> list[VerdictGiven]:
    """The verdicts on one row of a table; each quote is a document and its words."""
    world = make_world()
    sources = {
        text: world.source(text, media_type=media_type) for text in dict.fromkeys(text for text, _ in quotes)
    }
    evidence = tuple(world.quote(sources[text], words) for text, words in quotes)
    table = Table(header=header, rows=(tuple(Leaf(text=cell, evidence=evidence) for cell in row),))
    report = Report(title="t", sections=(Section(heading="h", blocks=(table,)),))
    return list(judge(report, world.ledger, world.texts))


def _supported(verdicts: list[VerdictGiven]) -> list[bool]:
    return [one.verdict == "supported" for one in verdicts]


SPEC_HEADER = ("Spec", "VLX-400", "VLX-500")
SALES_HEADER = ("Region", "2022", "2023", "State")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("document", "quotes", "header", "row", "media_type"),
    [
        (SPECS, (BATTERY, HEAD), SPEC_HEADER, ("Battery", "8h Li-ion", "11h LFP"), "text/markdown"),
        (SPECS, (PAYLOAD, HEAD), SPEC_HEADER, ("Payload", "up to 600 kg", "950 kg"), "text/markdown"),
        (SPECS, (BATTERY, f"{HEAD}\n{RULE}"), SPEC_HEADER, ("Battery", "8h Li-ion", "11h LFP"), "text/html"),
        (
            f"{HEAD}\n{PAYLOAD}\n{BATTERY}",
            (BATTERY, HEAD),
            SPEC_HEADER,
            ("Battery", "8h Li-ion", "11h LFP"),
            "text/html",
        ),
        (SALES, (SOUTH, CSV_HEAD), SALES_HEADER, ("South", "7", "981", "final"), CSV),
        (SALES, (NORTH, CSV_HEAD), SALES_HEADER, ("North", "12", "450", "not audited, yet"), CSV),
        (
            SALES.replace(",", ";"),
            (SOUTH.replace(",", ";"), CSV_HEAD.replace(",", ";")),
            SALES_HEADER,
            ("South", "7", "981", "final"),
            CSV,
        ),
        (
            SALES.replace(",", "\t"),
            (SOUTH.replace(",", "\t"), CSV_HEAD.replace(",", "\t")),
            SALES_HEADER,
            ("South", "7", "981", "final"),
            "text/tab-separated-values",
        ),
    ],
)
def test_head_and_row_may_be_two_quotes_in_any_order(
    make_world: Maker,
    document: str,
    quotes: tuple[str, str],
    header: tuple[str, ...],
    row: tuple[str, ...],
    media_type: str,
    turned: bool,
) -> None:
    pairs = tuple((document, words) for words in (reversed(quotes) if turned else quotes))
    verdicts = _judged(make_world, pairs, header, row, media_type)
    assert all(_supported(verdicts)), [one.reason for one in verdicts]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("row", "borne"),
    [
        (("Battery", "11h LFP", "8h Li-ion"), [True, False, False]),
        (("Battery", "up to 600 kg", "950 kg"), [True, False, False]),
        (("Payload", "8h Li-ion", "11h LFP"), [False, False, False]),
        (("Battery", "8h", "11h LFP (new)"), [True, False, False]),
        (("Battery", "VLX-400", "VLX-500"), [True, False, False]),
    ],
)
def test_another_column_or_row_does_not_bear_a_cell(
    make_world: Maker, row: tuple[str, ...], borne: list[bool], turned: bool
) -> None:
    quotes = ((SPECS, BATTERY), (SPECS, HEAD))
    verdicts = _judged(make_world, quotes[::-1] if turned else quotes, SPEC_HEADER, row)
    assert _supported(verdicts) == borne


@pytest.mark.parametrize(
    ("quotes", "row"),
    [
        ((SOUTH, CSV_HEAD), ("South", "981", "7", "12")),
        ((NORTH, CSV_HEAD), ("North", "450", "12", "final")),
        ((NORTH, CSV_HEAD), ("North", "12,450", "450,12", "audited, yet")),
        ((f"{CSV_HEAD}\n{NORTH}",), ("North", "450", "12", "audited, yet")),
        ((SOUTH,), ("South", "7", "981", "final")),
        ((f"{NORTH}\n{SOUTH}",), ("South", "7", "981", "final")),
    ],
)
def test_a_cell_of_csv_needs_its_column_and_the_head(
    make_world: Maker, quotes: tuple[str, ...], row: tuple[str, ...]
) -> None:
    header = ("Region", "2022", "2023", "Comment" if len(quotes) == 1 else "State")
    verdicts = _judged(make_world, tuple((SALES, one) for one in quotes), header, row, CSV)
    assert _supported(verdicts) == [True, False, False, False]


OTHER = "| Spec | VLX-400 | VLX-500 |\n|---|---|---|\n| Battery | 9h | 12h |"


@pytest.mark.parametrize(
    ("document", "head", "row"),
    [
        pytest.param(f"{HEAD}\n{RULE}\n{PAYLOAD}\n\n{BATTERY}", HEAD, BATTERY, id="blank-line"),
        pytest.param(f"{HEAD}\n{RULE}\n{PAYLOAD}\nLater:\n{BATTERY}", HEAD, BATTERY, id="words-between"),
        pytest.param(
            f"{HEAD}\n{RULE}\n{PAYLOAD}\n| Spec | X | Y |\n{RULE}\n{BATTERY}", HEAD, BATTERY, id="second-head"
        ),
        pytest.param(
            f"| Spec | X | Y |\n{RULE}\n{PAYLOAD}\n{HEAD}\n{BATTERY}", HEAD, BATTERY, id="no-head-but-a-row"
        ),
        pytest.param(f"{BATTERY}\n{HEAD}\n{RULE}\n{PAYLOAD}", HEAD, BATTERY, id="row-above-head"),
        pytest.param(f"{HEAD}\n{RULE}\n{BATTERY[:-1]}| x |", HEAD, f"{BATTERY[:-1]}| x |", id="more-cells"),
        pytest.param(f"{HEAD}\n{RULE}\n{BATTERY[:-1]}| x |", HEAD, BATTERY[:-1], id="row-cut-off"),
        pytest.param(f"| Group {HEAD}\n|---{RULE}\n{BATTERY}", HEAD, BATTERY, id="head-cut-off"),
        pytest.param(
            f"{HEAD}\n{RULE}\n{PAYLOAD}\n| **Rejected** | | |\n{BATTERY}", HEAD, BATTERY, id="refused-group"
        ),
    ],
)
def test_what_is_not_one_table_bears_no_cell(make_world: Maker, document: str, head: str, row: str) -> None:
    verdicts = _judged(
        make_world, ((document, row), (document, head)), SPEC_HEADER, ("Battery", "8h Li-ion", "11h LFP")
    )
    assert _supported(verdicts)[1:] == [False, False]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(f"{CSV_HEAD}\n{NORTH}\n\n{SOUTH}\n", id="blank-line"),
        pytest.param(f"{CSV_HEAD}\n{NORTH}\nRegion,Staff\n{SOUTH}\n", id="narrower-head"),
        pytest.param(f"Sales of 2023\n{CSV_HEAD}\n{SOUTH}\n", id="head-not-first"),
        pytest.param(f"Region,1999,2000,State\n{CSV_HEAD}\n{SOUTH}\n", id="another-head-first"),
        pytest.param(f"{CSV_HEAD}\n{SOUTH},x\n", id="row-cut-off"),
        pytest.param(f"{CSV_HEAD},Q\n{SOUTH},x\n", id="head-and-row-cut-off"),
        pytest.param(f"Q,{CSV_HEAD}\nNot the {SOUTH},x\n", id="begins-cut-off"),
        pytest.param(f'{CSV_HEAD}\nNorth,1,2,"as follows:\n{SOUTH}\nend"\n', id="within-a-cell"),
        pytest.param(f"{SOUTH}\n{CSV_HEAD}\n", id="row-above-head"),
    ],
)
def test_what_is_not_one_table_of_csv_bears_no_cell(make_world: Maker, document: str) -> None:
    row = ("South", "7", "981", "final")
    verdicts = _judged(make_world, ((document, SOUTH), (document, CSV_HEAD)), SALES_HEADER, row, CSV)
    assert _supported(verdicts)[1:] == [False] * 3


def test_plain_text_with_commas_is_no_table(make_world: Maker) -> None:
    row = ("South", "7", "981", "final")
    verdicts = _judged(make_world, ((SALES, SOUTH), (SALES, CSV_HEAD)), SALES_HEADER, row, "text/plain")
    assert _supported(verdicts)[1:] == [False] * 3


@pytest.mark.parametrize("other", [OTHER, SPECS.replace("8h", "9h"), f"{SPECS}\nMore."])
def test_the_head_of_another_document_bears_no_cell(make_world: Maker, other: str) -> None:
    row = ("Battery", "8h Li-ion", "11h LFP")
    verdicts = _judged(make_world, ((SPECS, BATTERY), (other, HEAD)), SPEC_HEADER, row)
    assert _supported(verdicts)[1:] == [False, False]


@pytest.mark.parametrize("turned", [False, True])
def test_a_cell_that_another_cited_table_has_otherwise_is_not_supported(
    make_world: Maker, turned: bool
) -> None:
    quotes = ((SPECS, BATTERY), (SPECS, HEAD), (OTHER, OTHER))
    row = ("Battery", "8h Li-ion", "11h LFP")
    verdicts = _judged(make_world, quotes[::-1] if turned else quotes, SPEC_HEADER, row)
    assert _supported(verdicts)[1:] == [False, False]


def test_words_of_a_table_scattered_over_its_rows_bear_no_cell(make_world: Maker) -> None:
    document = f"{HEAD}\n{RULE}\n{BATTERY}"
    verdicts = _judged(make_world, ((document, document),), ("", "Spec VLX-400"), ("Battery", "11h LFP"))
    assert _supported(verdicts) == [True, False]


def test_a_row_of_csv_is_no_head(make_world: Maker) -> None:
    document = f"{CSV_HEAD}\nNorth,12,450,open\n{SOUTH}\n"
    quotes = ((document, f"North,12,450,open\n{SOUTH}"),)
    verdicts = _judged(
        make_world, quotes, ("North", "12", "450", "open"), ("South", "7", "981", "final"), CSV
    )
    assert _supported(verdicts) == [True, False, False, False]


def test_a_head_that_denies_something_costs_no_cell_its_verdict(make_world: Maker) -> None:
    document = "| Plan | Price (not incl. VAT) |\n|---|---|\n| Iron | EUR 3 |\n| Gold | EUR 5 |"
    quotes = ((document, "| Gold | EUR 5 |"), (document, "| Plan | Price (not incl. VAT) |"))
    header = ("Plan", "Price (not incl. VAT)")
    assert all(_supported(_judged(make_world, quotes, header, ("Gold", "EUR 5"))))
    assert not _supported(_judged(make_world, quotes, ("Plan", "Price (incl. VAT)"), ("Gold", "EUR 5")))[1]


def test_a_sign_is_part_of_a_cell(make_world: Maker) -> None:
    document = "| Year | Growth |\n|---|---|\n| one | - 5 |"
    assert _supported(_judged(make_world, ((document, document),), ("Year", "Growth"), ("one", "- 5")))[1]
    assert not _supported(_judged(make_world, ((document, document),), ("Year", "Growth"), ("one", "5")))[1]


def test_an_escaped_border_divides_no_cells() -> None:
    assert blocks("| x | y \\| z | 5 |")[0].cells == ("x", "y | z", "5")


def _sentence(make_world: Maker, document: str, quote: str, sentence: str, media_type: str) -> VerdictGiven:
    world = make_world()
    evidence = world.quote(world.source(document, media_type=media_type), quote)
    report = world.draft([Leaf(text=sentence, evidence=(evidence,))])
    return judge(report, world.ledger, world.texts)[0]


BADGES = "Item,Rule,Amount\nAlcohol,not reimbursed,0\nHotel per night,with receipt,180\nMinibar,never,0\n"


def test_a_line_of_csv_is_not_spoilt_by_its_neighbours(make_world: Maker) -> None:
    line = "Hotel per night,with receipt,180"
    assert _sentence(make_world, BADGES, line, line, CSV).verdict == "supported"
    plain = _sentence(make_world, BADGES, line, line, "text/plain")
    assert "cut from a sentence" in plain.reason, "only in CSV a line stands for itself"


@pytest.mark.parametrize(
    ("document", "quote", "media_type", "told"),
    [
        (BADGES, "Alcohol", CSV, "not"),
        ('Item,Rule\nHotel,"never\nfor more than 180 euros"\n', "more than 180 euros", CSV, "never"),
        ("| Gold plan costs 5 | not sold |\n| x | y |", "Gold plan costs 5", "text/markdown", "not"),
        ("| x | y |\n| not sold | Gold plan costs 5 |", "Gold plan costs 5", "text/markdown", "not"),
    ],
)
def test_the_rest_of_a_row_is_read_with_a_piece_of_it(
    make_world: Maker, document: str, quote: str, media_type: str, told: str
) -> None:
    verdict = _sentence(make_world, document, quote, quote, media_type)
    assert verdict.verdict == "not_established"
    assert f"also says “{told}”" in verdict.reason


@pytest.mark.parametrize("neighbour", ["| not sold | never |", "| not sold | never", "It is not so."])
def test_a_row_is_not_spoilt_by_the_lines_around_it(make_world: Maker, neighbour: str) -> None:
    row = "| Gold plan | costs 5 euros"
    for document in (f"{neighbour}\n{row}\n{neighbour}\n", f"{neighbour}\n{row} |\n{neighbour}\n"):
        verdict = _sentence(make_world, document, row, "Gold plan | costs 5 euros", "text/markdown")
        assert verdict.verdict == "supported", verdict.reason


@given(
    st.lists(
        st.lists(st.text(alphabet='ab,"\n ;', max_size=5), min_size=2, max_size=3), min_size=1, max_size=5
    )
)
def test_records_cover_a_text_and_keep_its_cells(rows: list[list[str]]) -> None:
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    text = "x,y\n" + "\n".join(lines)
    records = csv_records(text, CSV)
    assert records is not None
    assert "".join(text[slice(*records.span(number))] for number in range(len(records.widths))) == text
    for number, row in enumerate(rows, start=1):
        assert records.cells(number) == tuple(" ".join(cell.split()) for cell in row)
        begin, end = records.span(number)
        assert records.at(begin) == records.at(end - 1) == number
        assert records.whole(begin, end) == range(number, number + 1)


@pytest.mark.parametrize("text", ["", "\n\n", "no mark", "\r,\r\r", '"', '",'])
def test_what_is_no_csv_has_no_table(text: str) -> None:
    records = csv_records(text, CSV)
    assert records is None or all(records.whole(at, at) is None for at in range(-1, len(text) + 2))


@pytest.mark.parametrize("media_type", [CSV, "text/markdown"])
@pytest.mark.parametrize(("start", "end"), [(0, 0), (-1, 0), (5, 5), (900, 990), (3, 2)])
def test_offsets_that_do_not_fit_are_a_fault_of_the_quote_not_of_the_check(
    make_world: Maker, media_type: str, start: int, end: int
) -> None:
    world = make_world()
    document = SALES if media_type == CSV else SPECS
    source = world.source(document, media_type=media_type)
    row, head = (SOUTH, CSV_HEAD) if media_type == CSV else (BATTERY, HEAD)
    evidence = (world.quote(source, row, start=start, end=end), world.quote(source, head))
    table = Table(header=SPEC_HEADER, rows=((Leaf(text="Battery", evidence=evidence),),))
    report = Report(title="t", sections=(Section(heading="h", blocks=(table,)),))
    assert judge(report, world.ledger, world.texts)[0].verdict == "not_established"
