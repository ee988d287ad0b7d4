"""Dates in texts, and the one date by which a document dates itself."""

from __future__ import annotations

import pytest

from leadline.research.sources.dates import dates_in, document_date


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("on 2026-05-12", "2026-05-12"),
        ("12 May 2026", "2026-05-12"),
        ("May 12th, 2026", "2026-05-12"),
        ("Sept. 2025", "2025-09"),
        ("am 3. März 2026", "2026-03-03"),
        ("1er avril 2026", "2026-04-01"),
        ("10 de febrero de 2026", "2026-02-10"),
        ("14.04.2026", "2026-04-14"),
        ("04/14/2026", "2026-04-14"),
        ("14/04/2026", "2026-04-14"),
        ("2026年4月14日", "2026-04-14"),
        ("令和8年4月", "2026-04"),
        ("Q1 2026", "2026-03"),
        ("in 2019", "2019"),
    ],
)
def test_a_date_is_read_as_precisely_as_it_is_written(text: str, iso: str) -> None:
    assert [found.iso for found in dates_in(text)] == [iso]


def test_a_date_that_can_be_read_two_ways_counts_as_its_year() -> None:
    assert [found.iso for found in dates_in("03/04/2026")] == ["2026"]


@pytest.mark.parametrize("text", ["room 2026A", "EUR 2026.50", "$2025", "call 555-2026-1", "2024-13"])
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert not [found for found in dates_in(text) if len(found.iso) > 4]
    assert not text.startswith("$") or not dates_in(text)


def test_a_revision_outranks_the_day_of_entry_into_force() -> None:
    text = "# House rules\n\nIn force from 1 March 2023.\nLast updated: 4 May 2026\n\nText."
    dated = document_date(text)
    assert dated is not None
    assert (dated.date, dated.statement) == ("2026-05-04", "Last updated: 4 May 2026")


def test_a_date_in_the_header_counts_and_one_in_the_body_does_not() -> None:
    assert document_date("# Report\n**COO office, April 14, 2026**\n\n- Built in May 2019") is not None
    long_first_line = (
        "The lighthouse has stood on this rock since it was built in May 1851 by the brothers Aldous."
    )
    assert document_date(f"{long_first_line} It was repaired often.\n") is None


def test_a_month_in_the_header_outranks_a_period_in_the_title() -> None:
    dated = document_date("# Q1 2026 Operations Report\n**COO office, April 14, 2026**\n")
    assert dated is not None
    assert dated.date == "2026-04-14"


def test_metadata_is_the_last_resort_and_is_named_as_such() -> None:
    dated = document_date("# Notes\n\nNothing dated here.", "2025-09-14")
    assert dated is not None
    assert (dated.date, dated.statement) == ("2025-09-14", "metadata")
    assert document_date("# Notes\n\nNothing dated here.") is None


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("# Ordnung\n\n**Stand: 1. März 2026**\n", "2026-03-01"),
        ("# Règlement\n\n**En vigueur depuis le 1er avril 2026.**\n", "2026-04-01"),
        ("# Normas\n\nÚltima actualización: 10 de febrero de 2026\n", "2026-02-10"),
        ("# 须知\n\n2026年2月1日起施行。\n", "2026-02-01"),
        ("# 案内\n\n最終更新日：2026年4月1日\n", "2026-04-01"),
    ],
)
def test_documents_date_themselves_in_six_languages(text: str, iso: str) -> None:
    dated = document_date(text)
    assert dated is not None
    assert dated.date == iso
