"""What was used within the last minute, against counting it all."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.spend.rates import Minute, Use


def test_what_was_used_counts_for_sixty_seconds() -> None:
    minute = Minute(10)
    minute.use(6, 0.0)
    minute.use(4, 20.0)
    assert minute.wait_s(1, 30.0) == 30.0
    assert minute.wait_s(6, 30.0) == 30.0
    assert minute.wait_s(7, 30.0) == 50.0
    assert (minute.used(59.9), minute.used(60.0), minute.used(80.0)) == (10, 4, 0)


def test_what_never_fits_does_when_nothing_else_is_used() -> None:
    minute = Minute(10)
    assert minute.wait_s(1000, 0.0) == 0.0
    minute.use(1000, 0.0)
    assert minute.wait_s(1, 1.0) == 59.0
    minute.limit = 2000
    assert minute.wait_s(1000, 1.0) == 0.0


def test_a_correction_gives_back_what_was_not_used_and_counts_more_from_now_on() -> None:
    minute = Minute(10)
    use = minute.use(8, 0.0)
    minute.correct(use, -5, 30.0)
    assert minute.used(30.0) == 3
    minute.correct(use, 4, 30.0)
    assert (minute.used(59.0), minute.used(61.0), minute.used(90.0)) == (7, 4, 0)
    minute.correct(use, -3, 200.0)
    assert minute.used(200.0) == 0, "what left the minute is not given back a second time"


_PAUSES = st.sampled_from((0.0, 0.125, 0.25, 1.0, 13.0, 59.875, 60.0))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_PAUSES, st.integers(1, 12), st.integers(-12, 5)), max_size=60))
def test_a_ceiling_holds_in_any_minute(steps: list[tuple[float, int, int]]) -> None:
    limit, now, minute = 10, 0.0, Minute(10)
    made: list[list[float]] = []
    latest: tuple[Use, list[float]] | None = None
    for pause, amount, correction in steps:
        now += pause
        within = sum(one for at, one in made if at > now - 60)
        wait_s = minute.wait_s(amount, now)
        assert 0.0 <= wait_s <= 60.0
        if wait_s == 0.0:
            assert within + amount <= limit or not within
            entry = [now, amount]
            latest = minute.use(amount, now), entry
            made.append(entry)
        elif latest is not None:
            use, entry = latest
            latest = None
            if correction > 0:
                made.append([now, correction])
            elif entry[0] > now - 60:
                correction = max(correction, -int(entry[1]))
                entry[1] += correction
            minute.correct(use, correction, now)
        exact = sum(one for at, one in made if at > now - 60)
        assert minute.used(now) >= exact, "never less than what was used"
        assert minute.used(now) <= sum(one for at, one in made if at > now - 60.5)
