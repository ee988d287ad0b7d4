"""Figures are read with value, unit and scale, whatever the notation."""

from __future__ import annotations

from decimal import Decimal

import pytest

from leadline.research.verify.figures import Number, agreement, figures


def _agree(left: str, right: str) -> str:
    ours = [one for one in figures(left) if one.required]
    assert ours, f"no figure in {left!r}"
    return agreement(ours[0], figures(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("5 %", "5%"),
        ("5 percent", "5 %"),
        ("5 Prozent", "5 per cent"),
        ("€5 million", "EUR 5,000,000"),
        ("5 Mio. Euro", "€5m"),
        ("5 Mrd. EUR", "5 billion euros"),
        ("$2.5bn", "US$2.5 billion"),
        ("¥500", "500 yen"),
        ("5亿元", "500 million yuan"),
        ("1.2万亿元", "RMB 1.2 trillion"),
        ("3万人", "30,000 people"),
        ("1,234,567", "1 234 567"),
        ("1.234,56 Euro", "€1,234.56"),
        ("12,5 kg", "12.5 kilograms"),
        ("５％", "5 %"),
        ("−5 °C", "-5 degrees Celsius"),
        ("20MW", "20 megawatts"),
        ("three cars", "3 cars"),
        ("12 cars", "twelve cars"),
        ("3rd place", "third place"),
        ("12 March 2024", "2024-03-12"),
        ("12 March 2024", "March 12, 2024"),
        ("12. März 2024", "12.03.2024"),
        ("2024年3月12日", "12 March 2024"),
        ("March 2024", "12 March 2024"),
        ("in 2024", "on 12 March 2024"),
        ("Q3 2024", "the third quarter of 2024"),
        ("5.0 %", "5 %"),
        ("between 5 and 10 %", "5 and 10 %"),
        ("5-10 %", "from 5 % to 10 %"),
        ("24-hour service", "24 hours"),
        ("5k users", "5,000 users"),
        ("JPY 15,000", "一泊15,000円で朝食付き"),
        ("500 yuan", "学习Python课程的费用是每人500元。"),
        ("KRW 12,000", "요금은12,000원입니다"),
        ("12.5 kg", "型番VLX-500は重さ12.5kgです"),
        ("14:30", "会议14:30开始"),
        ("May 1, 2024", "合同于2024-05-01生效"),
        ("Q3 2024", "营收在2024Q3增长"),
        ("v1.2.3", "需要v1.2.3以上"),
    ],
)
def test_one_figure_in_two_notations_is_the_same(left: str, right: str) -> None:
    assert _agree(left, right) == "same"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("5 %", "6 %"),
        ("5 %", "5 percentage points"),
        ("5 million", "5 billion"),
        ("€5", "$5"),
        ("5 km", "5 kg"),
        ("5 %", "15 %"),
        ("1,234", "1,243"),
        ("12 March 2024", "13 March 2024"),
        ("12 March 2024", "in March 2024"),
        ("2024", "2023"),
        ("Q3 2024", "Q2 2024"),
        ("-5 °C", "5 °C"),
        ("5", "VLX-5"),
        ("third place", "3 places"),
        ("v1.2.3", "v1.2.4"),
        ("JPY 5,000", "一泊15,000円で朝食付き"),
        ("14:30", "会议14:45开始"),
        ("May 1, 2024", "合同于2024-05-02生效"),
    ],
)
def test_different_figures_are_not_the_same(left: str, right: str) -> None:
    assert _agree(left, right) == "absent"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1.234", "1,234"),
        ("5 %", "5"),
        ("03/04/2024", "3 April 2024"),
        ("12 March 2024", "12 March, in 2024"),
    ],
)
def test_where_a_notation_can_be_read_in_two_ways_the_answer_is_possible(left: str, right: str) -> None:
    assert _agree(left, right) == "possible"


@pytest.mark.parametrize(
    "text", ["the VLX-500 pump", "a 3D view", "COVID-19 cases", "one of them", "First, we look"]
)
def test_digits_in_names_and_filler_words_are_no_figures(text: str) -> None:
    assert not [one for one in figures(text) if one.required]


def test_a_range_shares_its_unit_and_scale() -> None:
    first, second = figures("from 3 to 4 million euros")
    assert first.readings[0] == Number(Decimal(3_000_000), "EUR")
    assert second.readings[0] == Number(Decimal(4_000_000), "EUR")
