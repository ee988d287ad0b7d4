"""Whether a request fits, and whether it was read."""

from __future__ import annotations

import pytest

from leadline.core.loop.sizing import Size, answer_room, cut_off, oversize


def rough(tokens: int) -> Size:
    return Size(tokens, tokens, corrected=False)


def sure(tokens: int) -> Size:
    return Size(tokens, tokens, corrected=True)


@pytest.mark.parametrize(
    ("size", "window", "max_tokens", "fits"),
    [
        (sure(7_000), 8_192, None, True),
        (sure(7_936), 8_192, None, True),
        (sure(7_937), 8_192, None, False),
        (rough(9_000), 8_192, None, True),
        (rough(9_400), 8_192, None, False),
        (sure(7_000), 8_192, 2_000, False),
        (sure(6_000), 8_192, 2_000, True),
        (sure(9_000_000), None, None, True),
        (sure(8_193), 8_192, 1, False),
    ],
)
def test_a_request_is_held_back_exactly_where_it_cannot_fit(
    size: Size, window: int | None, max_tokens: int | None, fits: bool
) -> None:
    assert (oversize(size, window, max_tokens, "p/m") is None) is fits


def test_what_is_held_back_names_the_sizes_and_the_way_out() -> None:
    stop = oversize(sure(12_345), 8_192, 1_000, "local/tiny")

    assert stop is not None
    assert stop.code == "CONTEXT_WINDOW_EXCEEDED"
    assert all(part in stop.message for part in ("12,345", "1,000", "8,192", "local/tiny", "not sent"))
    assert stop.next_step


@pytest.mark.parametrize(
    ("least", "reported", "whole"),
    [
        (10_000, 9_000, True),
        (10_000, 5_000, True),
        (10_000, 4_999, False),
        (10_000, 2_048, False),
        (1_999, 10, True),
        (10_000, None, True),
    ],
)
def test_a_prompt_that_was_cut_off_is_told_by_what_the_provider_reports(
    least: int, reported: int | None, whole: bool
) -> None:
    stop = cut_off(least, reported, "ollama/small")

    assert (stop is None) is whole
    if stop is not None:
        assert stop.window_tokens == reported
        assert "num_ctx" in (stop.next_step or "")


def test_room_for_an_answer_is_what_is_asked_for_else_what_the_window_allows() -> None:
    assert answer_room(8_192, 3_000, None) == 3_000
    assert answer_room(8_192, None, None) == 2_048
    assert answer_room(None, None, None) == 4_096
    assert answer_room(200_000, None, 1_024) == 1_024
