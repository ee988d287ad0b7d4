"""Which documents are versions of one document, and which is newer."""

from __future__ import annotations

from leadline.research.sources.versions import DocInfo, relate_versions, same_series


def document(name: str, text: str, title: str | None = None) -> DocInfo:
    first = text.strip().splitlines()[0].strip("# ")
    return DocInfo(name, title or first, name, None, text)


OLD_RULES = document("a/current/rules.md", "# House rules\n\nIn force from 1 March 2023.\n\nKeys cost EUR 2.")
NEW_RULES = document("z/archive/rules.md", "# House rules\n\nIn force from 1 April 2026.\n\nKeys cost EUR 4.")


def test_the_later_date_inside_is_newer_whatever_the_folders_are_called() -> None:
    (found,) = relate_versions([OLD_RULES, NEW_RULES])
    assert (found.newer, found.older) == (NEW_RULES.id, OLD_RULES.id)
    assert "1 April 2026" in found.reason


def test_the_order_of_the_documents_does_not_matter() -> None:
    assert relate_versions([OLD_RULES, NEW_RULES]) == relate_versions([NEW_RULES, OLD_RULES])


def test_a_statement_names_the_successor_even_under_another_title() -> None:
    concept = document(
        "one.md",
        "# ZX-9 Concept (v0.2)\n\nJune 2025\n\nNOTE: superseded by the 2026 product brief.\n\nBattery: 10h",
    )
    brief = document("two.md", "# ZX-9 Product Brief\n\nMarch 2026\n\nBattery: 11h")
    other = document("three.md", "# QT-1 Product Brief\n\nMarch 2026\n\nBattery: 3h")
    found = relate_versions([brief, concept, other])
    assert [(one.newer, one.older) for one in found] == [("two.md", "one.md")]
    assert "superseded by the 2026 product brief" in found[0].reason


def test_a_document_that_says_what_it_replaces_is_newer() -> None:
    new = document("n.md", "# Visitor rules\n\nThese rules replace the visitor rules of 2023.")
    old = document("o.md", "# Visitor rules 2023\n\nBags stay outside.")
    (found,) = relate_versions([old, new])
    assert (found.newer, found.older) == ("n.md", "o.md")


def test_a_higher_version_number_is_newer() -> None:
    first = document("1.md", "# Style guide (v1.9)\n\nUse blue.")
    second = document("2.md", "# Style guide (v1.10)\n\nUse red.")
    (found,) = relate_versions([second, first])
    assert (found.newer, found.older) == ("2.md", "1.md")


def test_issues_of_a_periodical_are_no_versions_but_a_series() -> None:
    first = document("1.md", "# Q1 2024 Operations Report\n\nMargin: 33%")
    second = document("2.md", "# Q1 2025 Operations Report\n\nMargin: 37%")
    assert relate_versions([first, second]) == []
    assert same_series(first, second)


def test_a_policy_of_another_year_is_a_version() -> None:
    first = document("1.md", "# Expense Policy (2025)\n\nHotels: EUR 150")
    second = document("2.md", "# Expense Policy (2026)\n\nHotels: EUR 180")
    (found,) = relate_versions([first, second])
    assert (found.newer, found.older) == ("2.md", "1.md")


def test_copies_and_undated_twins_are_left_alone() -> None:
    twin = document("twin.md", OLD_RULES.text)
    undated = document("u.md", "# House rules\n\nKeys cost EUR 9.")
    assert relate_versions([OLD_RULES, twin]) == []
    assert relate_versions([undated, document("v.md", "# House rules\n\nKeys cost EUR 8.")]) == []


def test_documents_about_different_things_are_unrelated() -> None:
    leave = document("l.md", "# Annual leave\n\nJanuary 2026\n\n28 days")
    travel = document("t.md", "# Travel\n\nJanuary 2025\n\nEconomy")
    assert relate_versions([leave, travel]) == []


def test_versions_are_found_in_other_languages() -> None:
    old = document("1.md", "# 参观须知\n\n2023年5月1日起施行。\n\n成人票：30元。")
    new = document("2.md", "# 参观须知\n\n2026年2月1日起施行。本须知取代2023年的参观须知。\n\n成人票：40元。")
    (found,) = relate_versions([old, new])
    assert (found.newer, found.older) == ("2.md", "1.md")


def test_minutes_of_the_same_title_are_a_series_by_their_dates() -> None:
    first = document("a.md", "# Minutes of the Annual Meeting\n\nHeld on 9 May 2023\n\n1. The fee is EUR 4.")
    second = document(
        "b.md", "# Minutes of the Annual Meeting\n\nHeld on 14 May 2024\n\n1. The fee is EUR 5."
    )
    assert relate_versions([first, second]) == []
    assert same_series(first, second)


def test_an_amendment_is_newer_than_the_contract_that_it_changes() -> None:
    contract = document(
        "c.md", "# Contrato de arrendamiento - Calle Mayor 8\n\nFirmado el 2 de mayo de 2023 entre A y B."
    )
    annex = document(
        "d.md", "# Anexo al contrato de arrendamiento - Calle Mayor 8\n\nFirmado el 28 de abril de 2025."
    )
    (found,) = relate_versions([contract, annex])
    assert (found.newer, found.older) == ("d.md", "c.md")
