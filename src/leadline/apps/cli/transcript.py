"""A session log as readable text: one block an event that matters to a person, control characters made visible."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from leadline.apps.cli.facts import Facts
from leadline.apps.cli.streams import visible
from leadline.core.llm.messages import ImageRef, Text, ToolCall
from leadline.core.session.codec import Logged
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import (
    ApprovalAsked,
    ApprovalDecided,
    AssistantSaid,
    LlmRetry,
    RequestSent,
    Titled,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnResumed,
    TurnStart,
    UserEntered,
    WindowChanged,
)
from leadline.core.session.log import Session
from leadline.core.session.spending import Spending, session_spending, total
from leadline.research.engine.interrupted import Placed
from leadline.research.events import RESEARCH_EVENTS

_SHORT = 400
_LONG = 4000
_FACTS = {kind.TYPE: kind for kind in RESEARCH_EVENTS}
_OF_A_RUN = {Placed.TYPE, *_FACTS}


def transcript(session: Session, whole: Spending | None = None) -> str:
    """The whole session; `whole` is what it used with all that it started."""
    header = session.header
    created = (
        datetime.fromtimestamp(header.created, UTC).isoformat(timespec="seconds") if header.created else "?"
    )
    lines = [f"{header.kind} {session.id}, {created}, {len(session)} events"]
    if header.label:
        lines.append(_visible(header.label, _SHORT))
    if header.parent:
        kin = f"child of {header.parent}, depth {header.depth}"
        lines.append(kin if header.depth else f"fork of {header.parent}")
    facts = Facts()
    for logged in session.logged:
        lines.extend(_fact(facts, logged) if logged.type in _OF_A_RUN else _block(session, logged))
    lines.extend(_paid(session, whole))
    for stray in session.quarantined:
        said = f"{stray.event.type} {_data(stray.event)}" if stray.event else "(cannot be read)"
        lines.append(f"not part of the session: {stray.file or 'line'} {stray.line}: {stray.reason}: {said}")
    return "\n".join(lines)


def _paid(session: Session, whole: Spending | None) -> Iterator[str]:
    """What the session itself paid for, and where that is more, with all that it started."""
    used = total(session_spending(session))
    if used.tokens.total or used.cost:
        yield f"used: {_told(used)}"
    if whole is not None and whole.calls > used.calls and (whole.tokens.total or whole.cost):
        yield f"used with all that it started: {_told(whole)}"


def _told(used: Spending) -> str:
    return f"{used.calls} call(s), {used.tokens.total or 0:,} tokens, cost {used.paid}"


def _fact(facts: Facts, logged: Logged) -> Iterator[str]:
    """A fact of a run, as the run told it when it was new, and where its corpus is."""
    try:
        if logged.type == Placed.TYPE:
            line = f"corpus: {', '.join(logged.as_(Placed).corpus)}"
        else:
            line = facts.line(logged.as_(_FACTS[logged.type]))
    except EventUndecodable:
        line = f"{logged.type} {_data(logged)}"
    if line:
        yield f"  {_visible(line, _SHORT)}"


def _block(session: Session, logged: Logged) -> Iterator[str]:
    event = session.event(logged)
    match event:
        case TurnStart() | TurnResumed():
            yield f"\n── turn {event.turn}" + (" goes on" if isinstance(event, TurnResumed) else "")
        case TurnEnd():
            yield f"── turn {event.turn} {event.reason}" + (f": {event.error}" if event.error else "")
        case UserEntered():
            who = "person" if event.message.source.kind == "user" else event.message.source.name or "program"
            yield from _said(who, (_part(part) for part in event.message.content))
        case AssistantSaid():
            texts = [_part(part) for part in event.message.content if isinstance(part, Text)]
            if any(text.strip() for text in texts):
                yield from _said(event.message.model, texts)
        case ToolCalled():
            yield f"→ {event.name} {_visible(event.arguments, _SHORT)}"
        case ToolAnswered():
            mark = "✗" if event.message.is_error else "←"
            yield f"{mark} {event.message.name}: {_visible(event.message.content, _SHORT)}"
        case WindowChanged():
            did = f"event {event.undoes} is undone" if event.undoes is not None else event.cause
            yield f"  window: {did}; the request has {event.after:,} tokens where it had {event.before:,}"
        case Titled():
            by = {"user": "a person", "model": "a model"}.get(event.source, "its first words")
            yield f"  title by {by}: {_visible(event.title, _SHORT)}"
        case RequestSent() | LlmRetry() | ApprovalAsked() | ApprovalDecided():
            yield f"  {_visible(_aside(event), _SHORT)}"
        case None:
            yield f"  {logged.type} {_data(logged)}"
        case _:
            pass


def _aside(event: RequestSent | LlmRetry | ApprovalAsked | ApprovalDecided) -> str:
    match event:
        case RequestSent():
            return f"asks {event.model} ({event.purpose})"
        case LlmRetry():
            return f"retry in {event.delay_s:.1f} s after: {event.failure.message}"
        case ApprovalAsked():
            return f"waits for a yes: {event.reason}"
        case ApprovalDecided():
            return f"{event.outcome}: {event.reason}" if event.reason else event.outcome


def _said(who: str, texts: Iterator[str] | list[str]) -> Iterator[str]:
    yield f"\n{who}:"
    for text in texts:
        yield _visible(text, _LONG)


def _part(part: Text | ImageRef | ToolCall | object) -> str:
    if isinstance(part, Text):
        return part.text
    return f"[image {part.blob[:12]}]" if isinstance(part, ImageRef) else ""


def _data(logged: Logged) -> str:
    try:
        return _visible(msgspec.json.format(bytes(logged.data), indent=-1).decode("utf-8", "replace"), _SHORT)
    except msgspec.MsgspecError:
        return "(data cannot be read)"


def _visible(text: str, limit: int) -> str:
    """At most `limit` characters, control characters as escapes, with what was left out counted."""
    shown = visible(text[:limit])
    return shown if len(text) <= limit else f"{shown} … ({len(text) - limit} more characters)"
