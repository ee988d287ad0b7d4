"""Usage adds up by construction, and unknown is not zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.usage import NOT_REPORTED, Usage

COUNT = st.none() | st.integers(0, 10**9)
USAGE = st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT)


@pytest.mark.case("K04")
@given(st.lists(USAGE))
def test_the_total_of_a_sum_is_the_sum_of_the_totals(parts: list[Usage]) -> None:
    whole = sum(parts, start=NOT_REPORTED)
    known = [part.total for part in parts if part.total is not None]
    assert whole.total == (sum(known) if known else None)


@pytest.mark.case("K17")
def test_a_bucket_that_nobody_reported_stays_unknown() -> None:
    both = Usage(input=5, output=1) + Usage(input=2)
    assert both == Usage(input=7, output=1)
    assert both.cached_input is None
    assert not NOT_REPORTED.reported


def test_zero_that_was_reported_is_not_unknown() -> None:
    assert Usage(input=0).reported
    assert (Usage(input=0) + NOT_REPORTED).input == 0
