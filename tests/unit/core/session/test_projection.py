"""Read models: folds, and checkpoints that save time and never decide what is true."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from leadline.core.session.codec import Header, Logged
from leadline.core.session.events import SeedEnded, TurnEnd, TurnStart
from leadline.core.session.log import Session
from leadline.core.session.projection import (
    Checkpoint,
    Projection,
    Projections,
    checkpoint,
    continued,
    fold,
    project,
)
from leadline.kernel.context import Context, Kernel
from leadline.kernel.errors import DuplicateName
from leadline.kernel.plugin import Plugin
from leadline.testing.sessions import memory_session

pytestmark = pytest.mark.anyio


class Seen(msgspec.Struct, frozen=True):
    types: tuple[str, ...] = ()


def seen(version: int = 1) -> Projection[Seen, int]:
    def apply(state: Seen, logged: Logged) -> Seen:
        return Seen((*state.types, f"{logged.seq} {logged.type}"))

    return Projection("test/seen", version, Seen, lambda _: Seen(), apply, lambda state: len(state.types))


def with_turns(count: int, session_id: str = "s-1") -> Session:
    events = [
        one for n in range(1, count + 1) for one in (TurnStart(turn=n), TurnEnd(turn=n, reason="completed"))
    ]
    return memory_session(session_id=session_id, events=events)


def test_a_projection_shows_what_the_log_folds_to() -> None:
    assert project(seen(), with_turns(3)) == 6


def test_a_fold_that_goes_on_from_a_checkpoint_is_the_fold_of_the_whole_log() -> None:
    session = with_turns(2)
    kept = checkpoint(seen(), session.id, fold(seen(), session))
    session.append_all([TurnStart(turn=3), TurnEnd(turn=3, reason="completed")])
    assert continued(seen(), session, kept) is not None
    assert fold(seen(), session, kept) == fold(seen(), session)


@pytest.mark.parametrize("count", [1, 3])
def test_a_checkpoint_of_another_log_under_the_same_id_is_not_used(count: int) -> None:
    one, other = with_turns(2), memory_session(session_id="s-1", events=[SeedEnded()] * (2 * count))
    kept = checkpoint(seen(), one.id, fold(seen(), one))
    assert continued(seen(), other, kept) is None
    assert fold(seen(), other, kept) == fold(seen(), other)


def test_a_checkpoint_of_a_log_that_shrank_is_not_used() -> None:
    kept = checkpoint(seen(), "s-1", fold(seen(), with_turns(3)))
    assert continued(seen(), with_turns(2), kept) is None


def test_a_checkpoint_of_another_version_session_or_projection_is_not_used() -> None:
    session = with_turns(2)
    kept = checkpoint(seen(), session.id, fold(seen(), session))
    assert continued(seen(version=2), session, kept) is None
    assert continued(seen(), session, structs.replace(kept, session="s-2")) is None
    assert continued(seen(), session, structs.replace(kept, key="test/other")) is None


@given(st.binary(max_size=40))
def test_a_checkpoint_with_a_damaged_state_is_not_used(state: bytes) -> None:
    session = with_turns(1)
    good = checkpoint(seen(), session.id, fold(seen(), session))
    kept = Checkpoint(good.key, good.version, good.session, good.count, good.digest, state)
    begun = continued(seen(), session, kept)
    assert begun is None or isinstance(begun.state, Seen)


@given(st.integers(0, 12), st.integers(0, 12))
def test_wherever_a_fold_stopped_going_on_gives_the_same(first: int, more: int) -> None:
    session = with_turns(first)
    kept = checkpoint(seen(), session.id, fold(seen(), session))
    session.append_all(
        [one for n in range(first + 1, first + more + 1) for one in (TurnStart(turn=n), TurnEnd(turn=n, reason="completed"))]
    )  # fmt: skip
    assert fold(seen(), session, kept) == fold(seen(), session)


async def test_a_projection_is_registered_for_as_long_as_its_plugin_lives() -> None:
    registry = Projections()

    async def apply(ctx: Context, config: None) -> None:
        registry.register(ctx, seen())
        with pytest.raises(DuplicateName, match="test/seen"):
            registry.register(ctx, seen())

    async with Kernel() as kernel:
        fiber = await kernel.root.mount(Plugin("one", apply))
        assert registry.get("test/seen") is not None and len([*registry]) == 1
        await fiber.dispose()
        assert registry.get("test/seen") is None


def test_the_state_before_the_first_event_may_depend_on_the_header() -> None:
    by_kind = Projection(
        "test/kind",
        1,
        Seen,
        lambda header: Seen((header.kind,)),
        lambda state, _: state,
        lambda state: state.types,
    )
    assert project(by_kind, memory_session("research")) == ("research",)


def test_events_of_other_types_are_not_folded() -> None:
    only = structs_of(seen(), frozenset({TurnEnd.TYPE}))
    assert fold(only, with_turns(2)).state.types == ("1 turn/end", "3 turn/end")


def structs_of(projection: Projection[Seen, int], types: frozenset[str]) -> Projection[Seen, int]:
    return Projection(
        projection.key, 1, Seen, lambda header: _empty(header), projection.apply, projection.view, types
    )


def _empty(header: Header) -> Seen:
    return Seen()
