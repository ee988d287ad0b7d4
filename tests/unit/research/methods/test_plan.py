"""Plans are trimmed and kept, never thrown away."""

from __future__ import annotations

import pytest

from leadline.research.methods.adaptive.plan import check_plan, dedup_key, fallback_plan
from leadline.research.request import ResearchRequest
from leadline.research.roles.schemas import Plan, PlannedUnit


def _unit(question: str, title: str = "t", objective: str = "o") -> PlannedUnit:
    return PlannedUnit(title=title, question=question, objective=objective)


def test_a_plan_within_its_limit_is_kept_as_it_is() -> None:
    plan = check_plan(
        Plan(brief="b", units=(_unit("one?"), _unit("two?"))),
        ResearchRequest(question="q", breadth="balanced"),
    )
    assert [unit.id for unit in plan.units] == ["u1", "u2"]
    assert not plan.fallback
    assert plan.notes == ()


def test_surplus_units_are_cut_with_a_note_that_names_them() -> None:
    plan = check_plan(
        Plan(brief="b", units=(_unit("one?"), _unit("two?"), _unit("three?"))),
        ResearchRequest(question="q", breadth="focused"),
    )
    assert [unit.question for unit in plan.units] == ["one?"]
    assert len(plan.notes) == 2
    assert "two?" in plan.notes[0]
    assert "three?" in plan.notes[1]


def test_a_question_asked_twice_is_researched_once_and_the_report_is_told() -> None:
    plan = check_plan(
        Plan(brief="b", units=(_unit("What is it?"), _unit("what  IS it"))), ResearchRequest(question="q")
    )
    assert len(plan.units) == 1
    assert "twice" in plan.notes[0]


@pytest.mark.parametrize(
    ("first", "second"),
    [("电池续航多久？", "价格是多少？"), ("Какова цена?", "Какая батарея?"), ("¿Cuánto?", "¿Dónde?")],
)
def test_questions_in_any_script_have_keys_of_their_own(first: str, second: str) -> None:
    assert dedup_key(first)
    assert dedup_key(first) != dedup_key(second)
    plan = check_plan(Plan(brief="b", units=(_unit(first), _unit(second))), ResearchRequest(question="q"))
    assert len(plan.units) == 2


def test_full_width_and_upper_case_forms_are_one_question() -> None:
    assert dedup_key("ＶＬＸ-500 Ｂattery?") == dedup_key("vlx-500 battery")


def test_a_question_of_signs_alone_still_has_a_key() -> None:
    assert dedup_key("???") == "???"


def test_a_plan_of_blank_units_falls_back_to_the_question_and_says_why() -> None:
    plan = check_plan(Plan(brief=" ", units=(_unit("  "),)), ResearchRequest(question="the question"))
    assert plan.fallback
    assert plan.units[0].question == "the question"
    assert any("without a question" in note for note in plan.notes)


def test_the_fallback_takes_its_objective_from_the_purpose() -> None:
    plan = fallback_plan(ResearchRequest(question="q", purpose="to decide"), "no answer")
    assert plan.units[0].objective == "to decide"
    assert "no answer" in plan.notes[0]
