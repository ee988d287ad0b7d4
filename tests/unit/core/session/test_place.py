"""Where a log stands: found from its end, the same as from its start."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.llm.messages import AssistantMessage, Text, ToolMessage
from leadline.core.session.codec import Logged
from leadline.core.session.errors import EventOutOfPlace, EventUndecodable
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    SeedEnded,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
)
from leadline.core.session.place import Place, place_of

NUMBERS = st.integers(1, 4)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(TurnStart, turn=NUMBERS),
    st.builds(TurnEnd, turn=NUMBERS, reason=st.just("completed")),
    st.builds(StepStart, turn=NUMBERS, step=NUMBERS),
    st.builds(StepEnd, turn=NUMBERS, step=NUMBERS),
    st.builds(SeedEnded),
    st.builds(
        lambda turn, step: AssistantSaid(
            turn=turn, step=step, message=AssistantMessage("a", (Text("x"),), "local/model")
        ),
        NUMBERS,
        NUMBERS,
    ),
    st.builds(ToolCalled, turn=NUMBERS, step=NUMBERS, call_id=st.just("c"), name=st.just("n"), arguments=st.just("{}")),
    st.builds(
        lambda turn, step: ToolAnswered(turn=turn, step=step, message=ToolMessage("t", "c", "n", "x")),
        NUMBERS,
        NUMBERS,
    ),
)  # fmt: skip


def line(seq: int, event: Event, broken: bool) -> Logged:
    data = b'{"turn":"none"}' if broken else msgspec.json.encode(event)
    return Logged(v=1, seq=seq, t=0.0, type=event.TYPE, prev="", held=msgspec.Raw(data))


def from_the_start(logged: list[Logged]) -> Place:
    """The place by its definition: event by event, a turn's start and end believed even where they do not follow."""
    kinds = {kind.TYPE: kind for kind in (TurnStart, TurnEnd, StepStart, StepEnd, SeedEnded, AssistantSaid, ToolCalled, ToolAnswered)}  # fmt: skip
    place = Place()
    for it in logged:
        try:
            event = it.as_(kinds[it.type])
        except EventUndecodable:
            continue
        try:
            place = place.after(event)
        except EventOutOfPlace:
            if isinstance(event, TurnStart):
                place = Place(turn=max(place.turn, event.turn), turn_open=True)
            elif isinstance(event, TurnEnd):
                place = Place(turn=max(place.turn, event.turn))
    return place


@given(st.lists(st.tuples(EVENTS, st.sampled_from([False, False, False, True])), max_size=30))
@settings(max_examples=400, deadline=None)
def test_the_place_found_from_the_last_turn_is_that_of_the_whole_log(
    events: list[tuple[Event, bool]],
) -> None:
    logged = [line(seq, event, broken) for seq, (event, broken) in enumerate(events)]
    assert place_of(logged) == from_the_start(logged)
