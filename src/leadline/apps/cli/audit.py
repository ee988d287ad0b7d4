"""`leadline audit`: does the log prove what was sent to the model?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, refusing
from leadline.apps.cli.running import booted
from leadline.apps.cli.streams import document, visible
from leadline.apps.sdk.app import Leadline
from leadline.core.llm.adapter import Models
from leadline.core.loop.audit import Finding, InFlight, SessionAudit, audit
from leadline.core.loop.side_effects import Became, SideEffect
from leadline.core.session.approvals import AskedCall
from leadline.core.session.invariants import Invariants
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.research.events import UnitStarted

_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class AuditCommand:
    """The command as it was typed; an option that was left out is None."""

    id: str
    as_json: bool
    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


def run_audit(command: AuditCommand) -> Exit:
    """Print what was found; exit code 0 all proved, 1 something is not, 2 no such session.

    Raises:
        Quit: there is no session of that id, or the composition cannot be used.
    """
    found, missing = anyio.run(_audit, command)
    ok = not missing and all(one.ok for one in found)
    if command.as_json:
        document(
            msgspec.json.encode({"ok": ok, "sessions": [_plain(one) for one in found], "missing": missing})
        )
    else:
        lines = [line for one in found for line in _told(one)] + [f"problem: {one}" for one in missing]
        document(visible("\n".join(lines)))
    return Exit.DONE if ok else Exit.FAILED


async def _audit(command: AuditCommand) -> tuple[list[SessionAudit], list[str]]:
    app = Leadline(
        profile=command.profile or "research",
        patches=command.patches,
        model=command.model,
        base_url=command.base_url,
    )
    async with booted(app):
        store, models = app.ctx.get(SessionStore), app.ctx.get(Models)
        invariants = app.ctx.find(Invariants) or ()
        found: list[SessionAudit] = []
        missing: list[str] = []
        with refusing():
            line = await _line(store, await app.sessions.resolve(command.id))
        for session_id in line:
            session = await store.read(session_id)
            found.append(audit(session, models, invariants))
            missing += _missing(session, line)
        return found, missing


async def _line(store: SessionStore, session_id: str) -> Sequence[str]:
    """The session and all that it started, parents before children; a fork is nobody's child.

    Raises:
        SessionNotFound: there is no session of that id.
    """
    await store.read(session_id)
    children: dict[str, list[str]] = {}
    for entry in await store.list():
        if entry.parent is not None and entry.depth:
            children.setdefault(entry.parent, []).append(entry.id)
    line = [session_id]
    for one in line:
        line.extend(child for child in children.get(one, ()) if child not in line)
    return line


def _missing(session: Session, line: Sequence[str]) -> list[str]:
    """Children that a run names and that are not there to be audited."""
    return [
        f"session {session.id} names session {unit.child} for unit {unit.unit.id}, and the store has none "
        "of that id below it"
        for unit in session.of(UnitStarted)
        if unit.child not in line
    ]


def _plain(found: SessionAudit) -> dict[str, object]:
    return {"ok": found.ok, **msgspec.to_builtins(found)}


def _told(found: SessionAudit) -> list[str]:
    requests = f"{found.proved} of {found.requests} requests proved" if found.requests else "no request sent"
    counts = [requests, f"{found.events} events", f"chain {found.chain}"]
    lines = [f"{found.id} {found.kind}: {'holds' if found.ok else 'does not hold'}: {', '.join(counts)}"]
    lines += _some("problem", found.problems)
    lines += _some("not provable", found.not_provable)
    lines += _some("side effect", [_side_effect(one) for one in found.side_effects])
    lines += _some("approval", [_approval(one) for one in found.approvals])
    lines += _some("in flight", [_in_flight(one) for one in found.in_flight])
    return lines


_BECAME: dict[Became, str] = {
    "done": "done",
    "failed": "failed, and may have done part of it",
    "not-started": "not started",
    "unknown": "outcome unknown: its process died in it",
    "open": "no result: the log ends before it",
}


def _side_effect(one: SideEffect) -> str:
    """A call, what it declares, and what became of it."""
    whose = f" for call {one.root_call_id}" if one.root_call_id is not None else ""
    code = f" ({one.error_code})" if one.error_code and one.became != "unknown" else ""
    result = "" if one.result_seq is None else f", result in event {one.result_seq}"
    effects = ", ".join(one.effects)
    return f"event {one.seq}: {one.tool} ({effects}){whose}: {_BECAME[one.became]}{code}{result}"


def _approval(one: AskedCall) -> str:
    """A question about a call, and its answer."""
    said = f": {visible(one.answer)}" if one.answer else ""
    answer = "no answer" if one.outcome is None else f"{one.outcome}{said}, in event {one.answer_seq}"
    return f"event {one.seq}: {one.tool or one.call_id} ({visible(one.reason)}): {answer}"


def _in_flight(one: InFlight) -> str:
    """A request without an answer."""
    return f"event {one.seq}: {one.model}, attempt {one.attempt}, key {one.idempotency_key}: may have been billed"


def _some(what: str, findings: Sequence[Finding | str]) -> list[str]:
    lines = [f"  {what}: {finding}" for finding in findings[:_SHOWN]]
    rest = len(findings) - _SHOWN
    return [*lines, f"  {what}: {rest} more; --json names all of them"] if rest > 0 else lines
