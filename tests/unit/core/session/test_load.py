"""Loading is total: whatever bytes a log has, they become a session and its problems."""

from __future__ import annotations

import io
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leadline.core.llm.messages import Text, UserMessage
from leadline.core.session.codec import Header, Logged, encode_header
from leadline.core.session.derive import derive
from leadline.core.session.events import Event, TurnEnd, TurnStart, UserEntered
from leadline.core.session.load import Loaded, load
from leadline.core.session.log import Session
from leadline.core.session.place import place_of
from leadline.core.session.registry import EventTypes
from leadline.testing.clock import ManualClock
from leadline.testing.sessions import MemoryLog, memory_session


class Noted(Event, frozen=True, kw_only=True):
    TYPE: ClassVar[str] = "demo/noted"

    text: str


def made(session_id: str, words: list[str]) -> list[bytes]:
    """The lines of a log, header first, each with its line feed."""
    clock = ManualClock()
    session = memory_session(session_id=session_id, clock=clock)
    for number, word in enumerate(words, 1):
        clock.jump(0.25)
        session.append_all([
            TurnStart(turn=number),
            UserEntered(turn=number, message=UserMessage(f"u{number}", (Text(word),))),
            Noted(text=word),
            TurnEnd(turn=number, reason="completed"),
        ])  # fmt: skip
    sink = session._sink
    assert isinstance(sink, MemoryLog)
    return bytes(sink.content).splitlines(keepends=True)


LINES = made("s-a", ["one", "zwei ½", "drei\u2028", "four\\n"])
OTHER = made("s-b", ["eins", "two", "trois"])
WHOLE = b"".join(LINES)
EVENTS = len(LINES) - 1


def loaded(content: bytes) -> Loaded:
    """What loading gives, after everything that reads it has been tried on it."""
    found = load(io.BytesIO(content))
    assert [it.seq for it in found.logged] == list(range(len(found.logged)))
    place_of(found.logged)
    assert derive(found.logged).pairing_problem is None
    assert 0 <= found.end <= found.size == len(content)
    return found


def bodies(found: list[Logged]) -> list[tuple[str, bytes]]:
    return [(it.type, bytes(it.data)) for it in found]


ORIGINAL = bodies(loaded(WHOLE).logged)


def is_beginning(found: Loaded) -> bool:
    return bodies(found.logged) == ORIGINAL[: len(found.logged)]


def test_a_whole_log_loads_without_problems() -> None:
    found = loaded(WHOLE)
    assert found.problems == [] and found.quarantined == [] and found.header_sound
    assert len(found.logged) == EVENTS and found.end == len(WHOLE)
    assert found.header is not None and found.header.id == "s-a"


def test_every_prefix_loads_to_the_events_that_are_whole() -> None:
    for cut in range(len(WHOLE) + 1):
        found = loaded(WHOLE[:cut])
        whole = WHOLE[:cut].count(b"\n") - 1
        assert len(found.logged) == max(0, whole)
        assert is_beginning(found)
        ends_whole = WHOLE[:cut].endswith(b"\n")
        assert bool(found.problems) is not ends_whole, f"cut at {cut} is told wrongly"
        assert found.end == WHOLE[:cut].rfind(b"\n") + 1


@settings(max_examples=400, deadline=None)
@given(at=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255))
@example(at=WHOLE.index(b"1"), byte=ord("2"))
def test_a_byte_that_was_altered_is_told_and_its_event_is_not_shown(at: int, byte: int) -> None:
    content = WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :]
    found = loaded(content)
    if content == WHOLE:
        return
    line = WHOLE[:at].count(b"\n")
    if line == len(LINES) - 1:
        # Nothing comes after the last line that could tell of a change in it.
        assert bodies(found.logged[:-1]) == ORIGINAL[: len(found.logged[:-1])]
        assert len(found.logged) >= EVENTS - 2
        return
    assert found.problems
    if line == 0:
        assert not found.header_sound
        return
    assert is_beginning(found)
    assert line - 2 <= len(found.logged) <= line - 1 or len(found.logged) == EVENTS


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_random_damage_of_any_size_never_raises(data: st.DataObject) -> None:
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        length = data.draw(st.integers(0, 80))
        content[at : at + length] = data.draw(st.binary(max_size=80))
    loaded(bytes(content))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_bytes_that_are_no_log_never_raise(content: bytes) -> None:
    found = loaded(content)
    assert found.logged == [] or found.problems
    assert found.problems


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(LINES + OTHER + [b"\n", b"{}\n", b"null\n", b"\xff\xfe\n"]), max_size=30))
def test_any_mixture_of_lines_never_raises_and_shows_one_log_only(lines: list[bytes]) -> None:
    found = loaded(b"".join(lines))
    mine = ORIGINAL[: len(found.logged)]
    theirs = bodies(loaded(b"".join(OTHER)).logged)[: len(found.logged)]
    assert bodies(found.logged) in (mine, theirs)


@settings(max_examples=100, deadline=None)
@given(st.permutations(LINES[1:]))
def test_lines_out_of_order_are_put_in_order(lines: list[bytes]) -> None:
    found = loaded(b"".join([LINES[0], *lines]))
    assert bodies(found.logged) == ORIGINAL and found.quarantined == []
    assert (lines == LINES[1:]) is (found.problems == [])
    assert all("out of order" in problem.reason for problem in found.problems)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, len(LINES) - 1), min_size=1, max_size=8))
def test_lines_that_are_there_twice_cost_nothing(doubled: list[int]) -> None:
    lines = [line for number, line in enumerate(LINES) for line in [line] * (1 + doubled.count(number))]
    found = loaded(b"".join(lines))
    assert len(found.logged) == EVENTS
    assert len(found.problems) == len(doubled)
    assert all("again" in problem.reason for problem in found.problems)


@settings(max_examples=100, deadline=None)
@given(at=st.integers(1, len(LINES) - 1), lines=st.lists(st.sampled_from(OTHER[2:]), min_size=1, max_size=5))
def test_lines_of_another_log_in_the_middle_are_set_aside(at: int, lines: list[bytes]) -> None:
    found = loaded(b"".join([*LINES[:at], *lines, *LINES[at:]]))
    assert bodies(found.logged) == ORIGINAL
    assert [problem.line for problem in found.problems] == list(range(at + 1, at + 1 + len(lines)))


def branches(common: int) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """The lines that two writers share, up to event number `common`, and what each of them added."""
    shared = LINES[: 1 + common]
    added: list[list[bytes]] = []
    for word in ("mine", "theirs"):
        before = load(io.BytesIO(b"".join(shared)))
        clock = ManualClock(before.logged[-1].t if before.logged else 0.0)
        assert before.header is not None
        log = MemoryLog(b"".join(shared))
        session = Session(before.header, before, log, types=EventTypes(), clock=clock)
        for number in range(5):
            session.append(Noted(text=f"{word} {number}"))
        added.append(bytes(log.content).splitlines(keepends=True)[len(shared) :])
    return shared, added[0], added[1]


@settings(max_examples=300, deadline=None)
@given(
    common=st.integers(0, EVENTS),
    counts=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    order=st.lists(st.booleans(), min_size=10, max_size=10),
)
@example(common=0, counts=(2, 3), order=[False, True, True, False, True, False, False, False, False, False])
def test_of_two_writers_the_first_is_the_session_and_the_second_stays_readable(
    common: int, counts: tuple[int, int], order: list[bool]
) -> None:
    shared, mine, theirs = branches(common)
    queues = [mine[: counts[0]], theirs[: counts[1]]]
    mixed: list[bytes] = []
    for second in order:
        queue = queues[second] or queues[not second]
        if queue:
            mixed.append(queue.pop(0))
    found = loaded(b"".join([*shared, *mixed]))
    first, other = (mine[: counts[0]], theirs[: counts[1]])
    if mixed and mixed[0] == theirs[0]:
        first, other = other, first
    assert bodies(found.logged) == bodies(load(io.BytesIO(b"".join([*shared, *first]))).logged)
    words = [it.event.as_(Noted).text for it in found.quarantined if it.event]
    assert words == [
        it.as_(Noted).text for it in load(io.BytesIO(b"".join([*shared, *other]))).logged[common:]
    ]
    assert len(found.problems) == len(words)


def test_a_missing_line_leaves_the_rest_as_a_quarantined_branch() -> None:
    found = loaded(b"".join([*LINES[:4], *LINES[5:]]))
    assert len(found.logged) == 3
    assert [it.event.seq for it in found.quarantined if it.event] == list(range(4, EVENTS))
    assert found.problems[0].line == 5 and "event 4, where event 3 was expected" in found.problems[0].reason
    assert found.damaged_from_line == 5


def test_garbage_in_the_middle_is_told_by_line_and_costs_nothing_else() -> None:
    found = loaded(b"".join([*LINES[:3], b"\x00\x01garbage\n", *LINES[3:]]))
    assert len(found.logged) == EVENTS and found.end == found.size
    assert [problem.line for problem in found.problems] == [4]


def test_an_altered_line_and_what_builds_on_it_are_not_shown_as_the_session() -> None:
    lines = [*LINES]
    lines[3] = lines[3].replace(b'"one"', b'"two"')
    found = loaded(b"".join(lines))
    assert len(found.logged) == 2
    assert "altered" in found.problems[0].reason and found.problems[0].line == 4


def test_an_altered_link_costs_its_own_line_and_not_the_one_before() -> None:
    lines = [*LINES]
    lines[4] = lines[4].replace(b'"prev":"', b'"prev":"0', 1)
    found = loaded(b"".join(lines))
    assert len(found.logged) == 3


def test_a_log_with_an_altered_header_is_readable_and_says_so() -> None:
    lines = [LINES[0].replace(b'"agent"', b'"agenda"'), *LINES[1:]]
    found = loaded(b"".join(lines))
    assert len(found.logged) == EVENTS and not found.header_sound
    assert found.problems[0].line == 1 and "altered" in found.problems[0].reason


@pytest.mark.parametrize(
    "head",
    [b"", b"\x00" * 20 + b"\n", b"[]\n", b'{"id":"x"}\n', b'{"format":0,"id":"s","kind":"a","created":1}\n'],
)
def test_events_behind_a_broken_or_missing_header_are_still_read(head: bytes) -> None:
    found = loaded(head + b"".join(LINES[1:]))
    assert found.header is None and found.problems[0].line == 1
    assert len(found.logged) == EVENTS


@pytest.mark.case("S33")
def test_a_log_of_a_newer_format_says_which_one_it_needs() -> None:
    head = encode_header(Header(format=4, id="s-new", kind="agent", created=1.0))
    found = load(io.BytesIO(head + b"".join(LINES[1:])))
    assert found.newer_format == 4
    assert str(found.problems[0]) == "line 1: needs a version of Leadline that reads format 4 or later"


def test_a_line_longer_than_any_can_be_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.core.session.load._LONGEST_LINE", 1000)
    found = loaded(b"".join([*LINES[:3], b"x" * 2500 + b"\n", *LINES[3:], b"y" * 1000]))
    assert len(found.logged) == EVENTS
    assert [problem.line for problem in found.problems] == [4, len(LINES) + 2]
    assert found.end == found.size - 1000
