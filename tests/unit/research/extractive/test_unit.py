"""The researcher: what it searches, reads, records and says it did not find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

LOFT = {
    "rules.txt": (
        "HOUSE RULES OF THE LOFT\nValid from 1 May 2026. They replace the house rules of 2022.\n\n"
        "1. KEYS\nA lost key costs EUR 25.\n\n2. NETS\nNets may hang in the loft for at most 14 days.\n"
    ),
    "archive-of-the-future/rules.txt": (
        "HOUSE RULES OF THE LOFT\nValid from 15 February 2022.\n\n1. KEYS\nA lost key costs EUR 10.\n"
    ),
    "minutes.md": (
        "# Minutes, 3 March 2026\n\nPresent: 26 of 32 members.\n\n1. The quota for mackerel is 380 tonnes.\n"
        "2. Tadhg Walsh was elected treasurer.\n"
    ),
}
REPORTS = {
    f"q1_{year}.md": f"# Q1 {year} Report\n\n- Gross margin: {margin}%\n- Revenue: ${year - 2000}M\n"
    for year, margin in ((2026, 41), (2024, 33), (2025, 37))
}

MakeFolder = Callable[[Mapping[str, str]], Any]


async def test_it_searches_in_several_wordings_reads_and_records_the_sentence(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit("How long may nets hang in the loft?")
    assert len(ended.calls("corpus_search")) == 2
    assert len({call["query"] for call in ended.calls("corpus_search")}) == 2
    assert ended.quotes[0] == "Nets may hang in the loft for at most 14 days."
    assert ended.finding["unresolved"] == []


async def test_calls_of_one_kind_come_in_one_message(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit("What does a lost key cost?")
    assert [{name for name, _ in step} for step in ended.steps] == [
        {"corpus_search"},
        {"read"},
        {"record_evidence"},
        {"structured_output"},
    ]


async def test_the_newer_version_comes_first_and_the_older_one_opposes_it(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit("What does a lost key cost?")
    told = [(one["polarity"], one["quote"]) for one in ended.recorded if one["polarity"] != "context"]
    assert told == [("supporting", "A lost key costs EUR 25."), ("opposing", "A lost key costs EUR 10.")]
    assert ended.quotes == [quote for _, quote in told]


async def test_a_development_gives_one_value_for_each_report_in_the_order_of_time(folder: MakeFolder) -> None:
    ended = await folder(REPORTS).unit("How did gross margin develop from 2024 to 2026?")
    margins = [one for one in ended.quotes if "margin" in one]
    assert margins == [f"Gross margin: {margin}%" for margin in (33, 37, 41)]


async def test_years_outside_the_documents_give_nothing(folder: MakeFolder) -> None:
    ended = await folder(REPORTS).unit("How did gross margin develop from 2017 to 2019?")
    assert ended.quotes == []
    assert ended.finding["unresolved"]


@pytest.mark.parametrize(
    "question",
    [
        "What does a lost oar cost?",
        "What is the herring quota?",
        "Who is the secretary?",
        "What does a lost key cost in yen?",
        "How many members were present in 2019?",
        "What is the parental leave policy?",
    ],
)
async def test_what_the_folder_does_not_say_is_said_to_be_missing_without_filler(
    folder: MakeFolder, question: str
) -> None:
    ended = await folder(LOFT).unit(question)
    assert ended.recorded == []
    assert ended.finding["unresolved"] == [f"Not found in the documents: {question}"]


async def test_the_bound_on_source_calls_holds_however_tight(folder: MakeFolder) -> None:
    for source_calls in range(1, 9):
        ended = await folder(LOFT).unit("What does a lost key cost?", source_calls=source_calls)
        made = len(ended.calls("corpus_search")) + len(ended.calls("read"))
        assert made <= source_calls
        assert bool(ended.recorded) == (source_calls > 1)


async def test_what_could_not_be_read_is_not_quoted(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit(
        "What does a lost key cost?", refuse=lambda name, arguments: arguments.get("source") == "rules.txt"
    )
    assert all(one["source"] != "rules.txt" for one in ended.recorded)


async def test_a_quote_that_is_refused_leaves_the_facet_unresolved(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit(
        "How long may nets hang in the loft?", refuse=lambda name, arguments: name == "record_evidence"
    )
    assert ended.finding["unresolved"]


async def test_without_source_tools_it_says_so_at_once(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit("What does a key cost?", tools=("structured_output",))
    assert ended.steps == [[("structured_output", ended.finding)]]
    assert ended.finding["unresolved"]


async def test_every_step_is_a_pure_function_of_its_request(folder: MakeFolder) -> None:
    loft = folder(LOFT)
    ended = await loft.unit("What does a lost key cost?")
    again = await folder(LOFT).unit("What does a lost key cost?")
    assert [loft.model.prepare(one).digest for one in ended.requests] == [
        loft.model.prepare(one).digest for one in again.requests
    ]
    assert again.steps == ended.steps


async def test_a_quote_deep_in_a_long_document_is_read_where_it_stands(folder: MakeFolder) -> None:
    padding = "\n\n".join(f"Paragraph {number} says nothing of note." for number in range(3000))
    long = {"long.md": f"# Long\n\n{padding}\n\nThe tide gauge was replaced in 2021.\n"}
    ended = await folder(long).unit("When was the tide gauge replaced?")
    assert ended.quotes == ["The tide gauge was replaced in 2021."]
    (read,) = ended.calls("read")
    assert int(str(read["start"])) > 12_000


async def test_two_facets_in_one_unit_are_both_answered(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit("What does a lost key cost?\nWho was elected treasurer?")
    assert "A lost key costs EUR 25." in ended.quotes
    assert "Tadhg Walsh was elected treasurer." in ended.quotes


async def test_one_missing_facet_does_not_hide_the_other(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit("How long may nets hang in the loft?\nWho is the harbour pilot?")
    assert ended.quotes[0] == "Nets may hang in the loft for at most 14 days."
    assert ended.finding["unresolved"] == ["Not found in the documents: Who is the harbour pilot?"]


ODD = {
    "empty.txt": "",
    "blank.md": "\n\n   \n",
    "ocr.txt": "MINISTRY OF WORKS\n\nTHE PUMP WAS REPAIRED BY HOLLIS AND SONS.\nTHE WARRANTY LASTS 24 MONTHS.\n",
    "stock.csv": 'item,name,price_eur,in stock\n4711,Hinge,3.20,140\n4713,"Latch, brass",8.10,22\n',
    "upload.py": "MAX_UPLOAD_MB = 25\n\n\ndef upload(path):\n    return open(path)\n",
    "settings.json": '{"retries": 4, "endpoint": "archive-3"}\n',
    "quoted.csv": 'a,b\n"never closed, 1\n2,3\n',
}


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("What is the price of item 4711 in stock.csv?", "4711,Hinge,3.20,140"),
        ("How many latches are in stock?", '4713,"Latch, brass",8.10,22'),
        ("How long does the warranty last?", "THE WARRANTY LASTS 24 MONTHS."),
        ("What is the maximum upload size?", "MAX_UPLOAD_MB = 25"),
        ("How many retries are configured?", '{"retries": 4, "endpoint": "archive-3"}'),
    ],
)
async def test_odd_files_are_answered_from(folder: MakeFolder, question: str, quote: str) -> None:
    ended = await folder(ODD).unit(question)
    assert ended.quotes[0] == quote


async def test_nothing_is_found_in_files_without_words(folder: MakeFolder) -> None:
    ended = await folder({"empty.txt": "", "blank.md": "\n \n"}).unit("What does a key cost?")
    assert ended.quotes == []
    assert ended.finding["unresolved"]


async def test_a_typing_error_is_searched_for_in_its_right_spelling(folder: MakeFolder) -> None:
    ended = await folder(LOFT).unit("Who was elected treasurrer?")
    assert ended.quotes[0] == "Tadhg Walsh was elected treasurer."
