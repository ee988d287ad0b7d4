"""`leadline show`: a session as a person reads it, or the report of a run."""

from __future__ import annotations

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, Quit, document, say, usage_errors
from leadline.apps.cli.transcript import transcript
from leadline.apps.sdk.app import Leadline


def run_show(session_id: str, *, report: bool, as_json: bool) -> None:
    """Print it. Works on a log in any state, also while somebody writes it.

    Raises:
        Quit: there is no such session, or no report in it.
    """
    shown = anyio.run(_report if report else _transcript, session_id, as_json)
    document(shown)


async def _transcript(session_id: str, as_json: bool) -> bytes:
    async with usage_errors(), Leadline(profile="base") as app:
        session = await app.session(session_id)
    for problem in session.problems:
        say(f"leadline: {problem}")
    if as_json:
        lines = [{"seq": one.seq, "t": one.t, "type": one.type, "data": one.data} for one in session.logged]
        return msgspec.json.encode({"header": session.header, "events": lines})
    return transcript(session).encode("utf-8", "replace")


async def _report(session_id: str, as_json: bool) -> bytes:
    async with usage_errors(), Leadline(profile="base") as app:
        run = await app.stored(session_id)
    result = run.result()
    if run.interrupted:
        say(f"leadline: run {run.id} was interrupted before its end; this is what it had found")
    if as_json:
        return result.to_json()
    if not result.report:
        raise Quit(Exit.FAILED, f"run {run.id} has no report: {result.error or result.status}")
    return result.report.encode()
