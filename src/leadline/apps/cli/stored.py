"""Commands that read what is in the store: a session as a person reads it, the report of a run, a run as a file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, Quit, refusing, told
from leadline.apps.cli.running import booted
from leadline.apps.cli.streams import document, say
from leadline.apps.sdk.app import Leadline
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.kernel.errors import LeadlineError

T = TypeVar("T")


def run_show(session_id: str, *, report: bool, as_json: bool) -> Exit:
    """Print a session, or the report of a run. Works on a log in any state, also while somebody writes it.

    Raises:
        Quit: there is no such session, or no report in it.
    """
    document(_from_store(lambda app: (_report if report else _transcript)(app, session_id, as_json)))
    return Exit.DONE


def run_export(run_id: str, path: Path) -> Exit:
    """Write a run into a file, in the form that the file's name asks for.

    Raises:
        Quit: there is no such run, it has no report, or the file cannot be written.
    """
    from leadline.apps.cli.files import check_writable, form_of

    check_writable(path, form_of(path, bundle=True))
    _from_store(lambda app: _export(app, run_id, path))
    return Exit.DONE


def _from_store(work: Callable[[Leadline], Awaitable[T]]) -> T:
    async def run() -> T:
        async with booted(Leadline(profile="base")) as app:
            with refusing():
                return await work(app)

    return anyio.run(run)


async def _transcript(app: Leadline, session_id: str, as_json: bool) -> bytes:
    from leadline.apps.cli.transcript import transcript

    session = await app.session(session_id)
    _tell_problems(session)
    if as_json:
        lines = [{"seq": one.seq, "t": one.t, "type": one.type, "data": one.data} for one in session.logged]
        return msgspec.json.encode({"header": session.header, "events": lines})
    return transcript(session).encode("utf-8", "replace")


def _tell_problems(session: Session) -> None:
    for problem in session.problems:
        say(f"leadline: {problem}")


async def _report(app: Leadline, run_id: str, as_json: bool) -> bytes:
    run = await app.stored(run_id)
    _tell_problems(await app.session(run_id))
    result = run.result()
    if run.interrupted:
        say(f"leadline: run {run.id} {await _state(app, run_id)}; this is what it had found")
    if as_json:
        return result.to_json()
    if not result.report:
        raise Quit(Exit.FAILED, f"run {run.id} has no report: {result.error or result.status}")
    return result.report.encode("utf-8", "replace")


async def _state(app: Leadline, run_id: str) -> str:
    entries = await app.ctx.get(SessionStore).list()
    running = any(one.status == "running" for one in entries if one.id == run_id)
    return "is still at work" if running else "was interrupted before its end"


async def _export(app: Leadline, run_id: str, path: Path) -> None:
    from leadline.apps.cli.files import form_of, write_report

    run = await app.stored(run_id)
    result = run.result()
    form = form_of(path, bundle=True)
    if not result.report:
        raise Quit(Exit.FAILED, f"run {run.id} has no report: {result.error or result.status}")
    try:
        say(write_report(path, form, run, result))
    except (OSError, LeadlineError) as error:
        why = told(error) if isinstance(error, LeadlineError) else error.strerror or str(error)
        raise Quit(Exit.FAILED, f"cannot write {path}: {why}") from error
