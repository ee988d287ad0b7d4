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
from leadline.core.loop.audit import Finding, SessionAudit, audit
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
        found: list[SessionAudit] = []
        missing: list[str] = []
        with refusing():
            line = await _line(store, await app.sessions.resolve(command.id))
        for session_id in line:
            session = await store.read(session_id)
            found.append(audit(session, models))
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
    return lines


def _some(what: str, findings: Sequence[Finding]) -> list[str]:
    lines = [f"  {what}: {finding}" for finding in findings[:_SHOWN]]
    rest = len(findings) - _SHOWN
    return [*lines, f"  {what}: {rest} more; --json names all of them"] if rest > 0 else lines
