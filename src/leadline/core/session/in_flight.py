"""Which requests of a log were sent and never answered in full, so that they may have been billed for nothing."""

from __future__ import annotations

from typing import TypeAlias

from leadline.core.session.codec import Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestSent
from leadline.core.session.log import Session

_Place: TypeAlias = tuple[int | None, int | None, int]


def in_flight(session: Session) -> list[tuple[Logged, RequestSent]]:
    """Every `request/sent` whose writer died before it had an end, or which was cancelled; in the order of the log."""
    open_: dict[_Place, tuple[Logged, RequestSent]] = {}
    lost: list[tuple[Logged, RequestSent]] = []
    for line in session.logged:
        try:
            match line.type:
                case RequestSent.TYPE:
                    sent = line.as_(RequestSent)
                    place = (sent.turn, sent.step, sent.attempt)
                    if place in open_:
                        lost.append(open_[place])
                    open_[place] = (line, sent)
                case AssistantSaid.TYPE:
                    said = line.as_(AssistantSaid)
                    if said.state == "interrupted":
                        continue
                    open_.pop((said.turn, said.step, said.attempt), None)
                case RequestEnded.TYPE:
                    ended = line.as_(RequestEnded)
                    if ended.state == "cancelled":
                        continue
                    open_.pop((ended.turn, ended.step, ended.attempt), None)
                case _:
                    pass
        except EventUndecodable:
            continue
    return sorted([*lost, *open_.values()], key=lambda one: one[0].seq)
