"""Commands that read what is in the store: a session as a person reads it, the report of a run, a run as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from leadline.apps.cli.exits import Exit, Quit, told
from leadline.apps.cli.running import from_store
from leadline.apps.cli.streams import document, say
from leadline.apps.sdk.app import Leadline
from leadline.core.session.log import Session
from leadline.core.session.store import SessionStore
from leadline.kernel.errors import LeadlineError

if TYPE_CHECKING:
    from leadline.research.report.result import ResearchResult
    from leadline.research.stored import StoredRun

_AT_WORK = "is still at work"


def run_show(session_id: str, *, report: bool, as_json: bool, only_run: bool = False) -> Exit:
    """Print a session, or the report of a run. Works on a log in any state, also while somebody writes it.

    Raises:
        Quit: there is no such session, or no report in it, or it is no run where only a run will do.
    """

    async def work(app: Leadline) -> bytes:
        if only_run:
            await check_run(app, await app.sessions.resolve(session_id))
        return await (_report if report else _transcript)(app, session_id, as_json)

    document(from_store(work))
    return Exit.DONE


def run_export(run_id: str, path: Path) -> Exit:
    """Write a run into a file, in the form that the file's name asks for.

    Raises:
        Quit: there is no such run, it has no report, or the file cannot be written.
    """
    from leadline.apps.cli.files import check_writable, form_of

    check_writable(path, form_of(path, bundle=True))
    from_store(lambda app: _export(app, run_id, path))
    return Exit.DONE


async def _transcript(app: Leadline, session_id: str, as_json: bool) -> bytes:
    from leadline.apps.cli.transcript import transcript
    from leadline.core.session.spending import total

    session = await app.session(session_id)
    _tell_problems(session)
    if as_json:
        lines = [{"seq": one.seq, "t": one.t, "type": one.type, "data": one.data} for one in session.logged]
        return msgspec.json.encode({"header": session.header, "events": lines})
    whole = total(await app.sessions.usage(session.id))
    return transcript(session, whole).encode("utf-8", "replace")


def _tell_problems(session: Session) -> None:
    for problem in session.problems:
        say(f"leadline: {problem}")


async def _report(app: Leadline, run_id: str, as_json: bool) -> bytes:
    run = await app.stored(run_id)
    _tell_problems(await app.session(run.id))
    result = run.result()
    if run.interrupted and (result.report or as_json):
        say(f"leadline: run {run.id} {await _state(app, run.id)}; this is what it had found")
    if as_json:
        return result.to_json()
    if not result.report:
        raise await _no_report(app, run, result)
    return result.report.encode("utf-8", "replace")


async def _no_report(app: Leadline, run: StoredRun, result: ResearchResult) -> Quit:
    go_on = f"; go on with it: leadline resume {run.id}"
    if not run.interrupted:
        why = result.error or result.status
        return Quit(
            Exit.FAILED,
            f"run {run.id} has no report: {why}{go_on if result.status == 'cancelled' else ''}",
        )
    state = await _state(app, run.id)
    return Quit(
        Exit.FAILED, f"run {run.id} has no report yet: it {state}{'' if state == _AT_WORK else go_on}"
    )


async def _state(app: Leadline, run_id: str) -> str:
    entry = await app.ctx.get(SessionStore).entry(run_id)
    return _AT_WORK if entry.status == "running" else "was interrupted before its end"


async def check_run(app: Leadline, session_id: str) -> None:
    """Refuse what is no run.

    Raises:
        Quit: it is something else.
        SessionNotFound: there is no session of that id.
    """
    kind = (await app.ctx.get(SessionStore).entry(session_id)).kind
    if kind not in ("research", ""):
        raise Quit(
            Exit.USAGE,
            f"session {session_id} is of kind {kind!r}, not a research run; see: leadline sessions --help",
        )


async def _export(app: Leadline, run_id: str, path: Path) -> None:
    from leadline.apps.cli.files import form_of, write_report

    run = await app.stored(run_id)
    result = run.result()
    form = form_of(path, bundle=True)
    if not result.report:
        raise await _no_report(app, run, result)
    try:
        say(write_report(path, form, run, result))
    except (OSError, LeadlineError) as error:
        why = told(error) if isinstance(error, LeadlineError) else error.strerror or str(error)
        raise Quit(Exit.FAILED, f"cannot write {path}: {why}") from error
