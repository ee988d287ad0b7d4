"""What cannot be run is refused before anything starts, and the refusal says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.research.request import RequestRefused, checked


def test_a_blank_question_is_refused() -> None:
    with pytest.raises(RequestRefused, match="question: it is blank"):
        checked("  \n ")


def test_an_unknown_choice_names_the_nearest_one() -> None:
    with pytest.raises(RequestRefused, match="Did you mean broad"):
        checked("q", breadth="broaad")
    with pytest.raises(RequestRefused, match="Choose one of report, brief, memo"):
        checked("q", format="x")


def test_a_missing_corpus_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestRefused, match="nowhere does not exist"):
        checked("q", corpus=[tmp_path / "nowhere"])


def test_a_blank_option_is_refused_and_a_missing_one_is_absent() -> None:
    with pytest.raises(RequestRefused, match="language"):
        checked("q", language=" ")
    assert checked(" q ").language is None
    assert checked(" q ").question == "q"


@pytest.mark.parametrize(("breadth", "units"), [("focused", 1), ("balanced", 2), ("broad", 3), (None, 2)])
def test_breadth_is_a_ceiling_on_units(breadth: str | None, units: int) -> None:
    assert checked("q", breadth=breadth).max_units == units


def test_blank_purpose_and_context_count_as_absent() -> None:
    request = checked("q", purpose=" ", context="")
    assert request.purpose is None
    assert request.context is None
    assert request.words == "q"
