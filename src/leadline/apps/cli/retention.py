"""`leadline sessions export|import|archive|delete|gc|prune`: hand over, put away and remove what is stored."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from leadline.apps.cli.exits import Exit, Quit, refusing
from leadline.apps.cli.parser import text
from leadline.apps.cli.running import from_store
from leadline.apps.cli.stored import check_run
from leadline.apps.cli.stored import run_export as export_report
from leadline.apps.cli.streams import document, put, say

if TYPE_CHECKING:
    from leadline.apps.cli.parser import Given
    from leadline.apps.sdk.app import Leadline
    from leadline.capabilities.retention.seam import (
        ArchiveReport,
        CollectReport,
        DeleteReport,
        ExportReport,
        ImportReport,
        Part,
        PruneReport,
    )

R = TypeVar("R")
Removal = Callable[["Leadline", bool], Awaitable[R]]
"""Removes something; where the second argument is true it only says what it would remove."""

_YES = ("y", "yes")


def run_export(session_id: str, path: Path | None, *, as_json: bool, only_run: bool = False) -> Exit:
    """Write a session or a run, with all that belongs to it, into one new file; by default one of its own name.

    Raises:
        Quit: there is no such session, or the file is there already or cannot be written.
    """
    from leadline.capabilities.retention.seam import SUFFIX

    async def work(app: Leadline) -> ExportReport:
        found = await app.sessions.resolve(session_id)
        if only_run:
            await check_run(app, found)
        return await app.sessions.export(found, path or Path(found + SUFFIX))

    report = from_store(work)
    _tell_problems(report.problems)
    for blob in report.damaged_blobs:
        say(f"leadline: left out, as it is damaged: blob {blob}")
    if as_json:
        _print({"id": report.root, **_plain(report)})
    else:
        say(
            f"{report.path}: {_sessions(report.parts)}, {_count(report.blobs, 'stored text')}, "
            f"{_size(report.bytes)}, sha256 {report.sha256}"
        )
    return Exit.DONE


def run_run_export(run_id: str, path: Path) -> Exit:
    """Write a run into a file: its report or bundle, or with the name of an export all that belongs to it.

    Raises:
        Quit: there is no such run, no report where one was asked for, or the file cannot be written.
    """
    from leadline.capabilities.retention.seam import SUFFIX

    if path.suffix.lower() != SUFFIX:
        return export_report(run_id, path)
    return run_export(run_id, path, as_json=False, only_run=True)


def run_import(given: Given) -> Exit:
    """Take in a file that an export wrote; prints the id of what was in it.

    Raises:
        Quit: the file is something else, or cannot be taken in; the store is as before.
    """
    report = from_store(lambda app: app.sessions.import_(given.file, dry_run=given.dry_run))
    _tell_problems(report.problems)
    if given.as_json:
        _print({"id": report.root, **_plain(report)})
        return Exit.DONE
    document(report.root)
    would = "would be " if report.dry_run else ""
    say(
        f"{_count(len(report.added), 'session')} {would}added, {len(report.present)} there already, "
        f"{_count(report.blobs, 'stored text')} new"
    )
    # A run goes on with its children, so they are not named beside it.
    for one in [report.root] if report.root in report.interrupted else report.interrupted:
        say(f"{one} stopped in mid-work; to go on with it: leadline resume {one}")
    return Exit.DONE


def run_archive(given: Given) -> Exit:
    """Compress sessions and runs that nobody writes.

    Raises:
        Quit: there is no such session, or somebody writes it now.
    """

    async def work(app: Leadline) -> list[ArchiveReport]:
        return [await app.sessions.archive(one, dry_run=given.dry_run) for one in await _ids(app, given.ids)]

    reports = from_store(work)
    if given.as_json:
        _print({"archived": [{"id": one.root, **_plain(one)} for one in reports], "dry_run": given.dry_run})
        return Exit.DONE
    for one in reports:
        if not one.parts:
            say(f"{one.root} is archived already")
        elif one.dry_run:
            say(f"{one.root} would be archived: {_sessions(one.parts)}, {_size(one.bytes_before)}")
        else:
            say(
                f"{one.root} is archived: {_sessions(one.parts)}, "
                f"{_size(one.bytes_before)} became {_size(one.bytes_after)}"
            )
    return Exit.DONE


def run_delete(given: Given, *, runs: bool) -> Exit:
    """Delete sessions or runs with all that they started, after asking; where nobody can be asked, whole ids do.

    Raises:
        Quit: there is no such session, somebody writes it now, or nobody said yes; nothing was deleted.
    """

    async def work(app: Leadline, dry_run: bool) -> list[DeleteReport]:
        with refusing():
            found = await _ids(app, given.ids)
            for one in found if runs else ():
                await check_run(app, one)
            # Whatever stands against one of them is found before the first is gone.
            reports = [await app.sessions.delete(one, dry_run=True) for one in found]
        # What goes with another of them is not there any more when its turn comes.
        within = {part.id for one in reports for part in one.parts if part.id != one.root}
        reports = [one for one in reports if one.root not in within]
        return reports if dry_run else [await app.sessions.delete(one.root) for one in reports]

    def told(reports: Sequence[DeleteReport]) -> list[str]:
        return [_deleted(one) for one in reports]

    def typed_out(reports: Sequence[DeleteReport]) -> bool:
        return {part.id for one in reports for part in one.parts}.issuperset(given.ids)

    reports = _removed(
        given,
        work,
        told,
        consent=typed_out,
        instead="a beginning of an id could mean another session by now: give the whole id, or add --yes",
    )
    if given.as_json:
        _print(
            {
                "deleted": [{"id": one.root, **_plain(one)} for one in reports],
                "bytes": sum(one.bytes for one in reports),
                "dry_run": given.dry_run,
            }
        )
    return Exit.DONE


def run_collect(given: Given) -> Exit:
    """Remove stored texts and indexes that nothing needs, after asking where there is somebody to ask.

    Raises:
        Quit: a log cannot be read, so that nobody knows what it needs, or somebody said no.
    """

    async def work(app: Leadline, dry_run: bool) -> CollectReport:
        with refusing():
            return await app.sessions.collect(
                dry_run=dry_run, grace_s=given.grace, stale_index_s=given.stale_index
            )

    def told(report: CollectReport) -> list[str]:
        would = "would be " if report.dry_run else ""
        gone = (
            f"{_count(len(report.blobs), 'stored text')}, {_count(len(report.indexes), 'index', 'indexes')} "
            f"and {_count(report.leftovers, 'leftover')} {would}removed, {_size(report.bytes)}"
        )
        kept = f"{_count(report.needed, 'stored text')} needed, {report.recent} kept as too recent to tell"
        return [gone, kept, *report.notes]

    report = _removed(
        given,
        work,
        told,
        anything=lambda one: bool(one.blobs or one.indexes or one.leftovers),
        harmless=True,
    )
    if given.as_json:
        _print(_plain(report))
    return Exit.DONE


def run_prune(given: Given) -> Exit:
    """Delete what was not written for a while, after asking.

    Raises:
        Quit: nobody said yes; nothing was deleted.
    """

    async def work(app: Leadline, dry_run: bool) -> PruneReport:
        with refusing():
            return await app.sessions.prune(
                given.older_than, kinds=given.kinds, interrupted=given.interrupted, dry_run=dry_run
            )

    def told(report: PruneReport) -> list[str]:
        lines = [_deleted(one) for one in report.deleted] or ["nothing that old is stored"]
        return [*lines, *(f"{one} stays: {why}" for one, why in report.skipped)]

    report = _removed(given, work, told, anything=lambda one: bool(one.deleted))
    if given.as_json:
        _print({**_plain(report), "deleted": [{"id": one.root, **_plain(one)} for one in report.deleted]})
    return Exit.DONE


async def _ids(app: Leadline, given: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([await app.sessions.resolve(one) for one in given]))


def _removed(
    given: Given,
    work: Removal[R],
    told: Callable[[R], list[str]],
    *,
    anything: Callable[[R], bool] = lambda _: True,
    consent: Callable[[R], bool] = lambda _: False,
    harmless: bool = False,
    instead: str = "add --yes, or --dry-run to see more",
) -> R:
    """What was removed, or would be; says on stderr what came of it.

    Args:
        given: with `dry_run` nothing is removed; with `yes` nobody is asked.
        work: removes.
        told: the lines that say what it removed.
        anything: whether there is something to ask about.
        consent: whether the command says clearly enough what is to go, where there is no terminal to ask at.
        harmless: nobody misses what goes, so that nobody is asked where there is no terminal.
        instead: what to do where somebody would have to be asked and cannot.

    Raises:
        Quit: nobody said yes.
    """
    terminal = bool(sys.stdin) and sys.stdin.isatty()
    if given.dry_run or not (given.yes or (harmless and not terminal)):
        would = from_store(lambda app: work(app, True), refuse=False)
        if given.dry_run:
            _say(given, told(would))
            return would
        if terminal and anything(would):
            _ask(told(would))
        elif anything(would) and not consent(would):
            for line in told(would):
                say(line)
            raise Quit(Exit.USAGE, f"nothing was removed, as there is no terminal to ask at: {instead}")
    done = from_store(lambda app: work(app, False), refuse=False)
    _say(given, told(done))
    return done


def _say(given: Given, lines: Sequence[str]) -> None:
    if not given.as_json:
        for line in lines:
            say(line)


def _ask(lines: Sequence[str]) -> None:
    for line in lines:
        say(line)
    put("Go ahead? [y/N] ")
    if sys.stdin.readline().strip().lower() not in _YES:
        raise Quit(Exit.USAGE, "nothing was removed")


def _deleted(one: DeleteReport) -> str:
    verb = "would be deleted" if one.dry_run else "is deleted"
    kept = f"; {_count(len(one.kept), 'session')} stay, as a fork needs them" if one.kept else ""
    return f"{one.root} {verb}: {_sessions(one.parts)}, {_size(one.bytes)}{kept}"


def _sessions(parts: Sequence[Part]) -> str:
    return _count(len(parts), "session")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _size(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _tell_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        say(f"leadline: {problem}")


def _plain(
    report: ExportReport | ImportReport | ArchiveReport | DeleteReport | CollectReport | PruneReport,
) -> Mapping[str, object]:
    return asdict(report)


def _print(found: Mapping[str, object]) -> None:
    document(msgspec.json.encode(found, enc_hook=_text))


def _text(value: object) -> str:
    if isinstance(value, Path):
        return text(str(value))
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
