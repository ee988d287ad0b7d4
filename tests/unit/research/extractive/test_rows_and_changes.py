"""Rows with the most of something, and statements of two versions side by side."""

from __future__ import annotations

import pytest

from leadline.research.extractive.library import Document, Library
from leadline.research.extractive.select import FacetAnswer, answer_facet

BOATS = (
    "boat,length_m,built,price_eur\nSaoirse,9.8,1987,12000\nCormorant,11.2,2004,9500\nTern,7.1,2015,15000\n"
)
NEW = "# House Rules\n\nIn force from 1 May 2026\n\n- Lost key: EUR 25\n- Nets: at most 14 days\n- Dogs: not allowed\n"
OLD = "# House Rules\n\nIn force from 1 May 2022\n\n- Lost key: EUR 10\n- Nets: at most 30 days\n- Dogs: not allowed\n"


def answered(question: str, **texts: str) -> FacetAnswer:
    documents = tuple(
        Document(name, text.splitlines()[0].strip("# "), name.replace("_", "."), text)
        for name, text in texts.items()
    )
    return answer_facet(question, Library(documents, len(documents)))


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("Which boat is the longest?", "Cormorant"),
        ("Which boat is the oldest?", "Saoirse"),
        ("Which boat was the most expensive?", "Tern"),
        ("Which boat was the cheapest?", "Cormorant"),
    ],
)
def test_the_row_with_the_most_is_told_alone(question: str, row: str) -> None:
    rows = [one.text for one in answered(question, boats_csv=BOATS).chosen if one.role == "answer"]
    assert [one.split(",")[0] for one in rows] == [row]


def test_no_row_is_told_where_no_column_has_what_is_asked() -> None:
    assert answered("Which boat is the heaviest?", boats_csv=BOATS).chosen == ()


def test_a_question_of_change_shows_what_differs_pair_by_pair() -> None:
    told = answered("What changed in the house rules?", new_md=NEW, old_md=OLD)
    assert [(one.role, one.text) for one in told.chosen] == [
        ("answer", "Lost key: EUR 25"),
        ("older", "Lost key: EUR 10"),
        ("answer", "Nets: at most 14 days"),
        ("older", "Nets: at most 30 days"),
    ]


def test_a_number_per_head_is_not_how_many_there_are() -> None:
    text = "# Staff\n\nEquipment budget: EUR 900 per employee every two years.\n\nWe like our staff.\n"
    assert answered("How many employees are there?", staff_md=text).chosen == ()


def test_a_share_of_another_count_does_not_answer() -> None:
    text = "# Fleet\n\n- 3,120 robots at 47 sites (EU: 29 sites, Japan: 4)\n"
    assert answered("How many robots are there in Japan?", fleet_md=text).chosen == ()
    assert answered("How many sites are there in Japan?", fleet_md=text).chosen


def test_the_entry_of_a_month_answers_what_takes_place_then() -> None:
    text = "# Event Calendar 2026\n\n- Boat show (April): with a stand\n- Net fair (November): in Cork\n"
    (told,) = answered("Which events take place in November?", calendar_md=text).chosen
    assert told.text == "Net fair (November): in Cork"
