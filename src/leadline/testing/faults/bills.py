"""Holds what a provider charged against what the logs had: no answer that was logged is paid for again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leadline.core.session.events import AssistantSaid, RequestSent
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore


@dataclass(frozen=True)
class Asked:
    """What the logs of a store tell of calls to models, by idempotency key."""

    answered: frozenset[str]
    """The answer is logged."""
    in_flight: frozenset[str]
    """They were sent, and what became of them is not logged."""

    @property
    def known(self) -> frozenset[str]:
        """Every key that is in a log."""
        return self.answered | self.in_flight


async def asked_in(store: SessionStore) -> Asked:
    """What all the readable sessions of a store tell."""
    answered: set[str] = set()
    in_flight: set[str] = set()
    for entry in await store.list():
        if entry.status != "unreadable":
            done, open_ = asked_by(await store.read(entry.id))
            answered |= done
            in_flight |= open_
    return Asked(frozenset(answered), frozenset(in_flight))


def asked_by(session: Session) -> tuple[set[str], set[str]]:
    """The keys whose answer one session has, and those whose answer it lacks."""
    answered: set[str] = set()
    sent: dict[tuple[int | None, int | None], str] = {}
    for line in session.logged:
        if line.type == RequestSent.TYPE:
            request = line.as_(RequestSent)
            sent[request.turn, request.step] = request.idempotency_key
        elif line.type == AssistantSaid.TYPE:
            said = line.as_(AssistantSaid)
            if said.state != "interrupted" and (key := sent.pop((said.turn, said.step), None)) is not None:
                answered.add(key)
    return answered, set(sent.values()) - answered


def check_bill(
    before: Asked, charged_before: Iterable[str], charged_after: Iterable[str], *, power_cut: bool = False
) -> None:
    """Hold what was charged after a crash against the logs that it left.

    `before` is what those logs told, `charged_before` and `charged_after` are the idempotency keys of the charges.
    After a power cut, calls of which nothing at all was left may be made again too.

    Raises:
        AssertionError: an answer that was logged was paid for again, or a call that was not in flight was.
    """
    earlier, later = set(charged_before), list(charged_after)
    twice = before.answered & set(later)
    assert not twice, f"answers that were logged were paid for again: {sorted(twice)}"
    again = {key for key in later if later.count(key) > 1}
    assert not again, f"paid for twice after the crash: {sorted(again)}"
    repeated = earlier & set(later)
    may = before.in_flight if not power_cut else before.in_flight | (earlier - before.known)
    assert repeated <= may, f"paid for again without having been in flight: {sorted(repeated - may)}"
