"""The options of the commands over everything that is stored: `leadline sessions …` and `leadline runs …`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import replace

from leadline.apps.cli.parser import Command, decimal, path, text
from leadline.apps.cli.times import age, moment


def _listed(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--kind", metavar="NAME", help="only sessions of this kind: agent, research, …")
    _filters(parser)
    add("--parent", metavar="ID", help="only what was made for or forked from this session")
    add("--children", action="store_true", help="also what agents and runs started for themselves")
    _paged(parser, 50)


def _runs_listed(parser: ArgumentParser) -> None:
    _filters(parser)
    _paged(parser, 50)


def _filters(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--status",
        action="append",
        default=[],
        metavar="NAME",
        help="running, interrupted, completed, partial, failed, cancelled, finished, idle or unreadable; repeatable",
    )
    add("--since", type=moment, metavar="WHEN", help="created then or later: 2026-11-30, or how long ago: 7d")
    add("--until", type=moment, metavar="WHEN", help="created then or earlier; a date includes its day")
    add("--title", type=text, dest="title_has", metavar="TEXT", help="letters that stand in the title")
    add("--text", type=text, dest="words_in", metavar="TEXT", help="words that a search would find in it")
    add("--corpus", type=text, dest="corpus_has", metavar="NAME", help="letters of a folder or file searched")
    add("--model", metavar="NAME", help="letters of a model that was used")
    add("--min-cost", type=_amount, metavar="AMOUNT", help="cost that much or more")
    add("--max-cost", type=_amount, metavar="AMOUNT", help="cost that much or less")


def _search(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", type=text, metavar="TEXT", help="words to look for")
    parser.add_argument("--kind", metavar="NAME", help="only sessions of this kind: agent, research, …")
    _paged(parser, 20)


def _show(parser: ArgumentParser) -> None:
    _one(parser, "a run or a session")
    parser.add_argument("--report", action="store_true", help="the report of a run instead of the transcript")
    _as_json(parser)


def _fork(parser: ArgumentParser) -> None:
    _one(parser, "a session of an agent")
    parser.add_argument("--turn", type=_whole, metavar="N", help="keep turns 1 to N; default: all that ended")
    parser.add_argument(
        "--title", type=text, dest="title_to", metavar="TEXT", help="title of the new session"
    )
    _as_json(parser)


def _rename(parser: ArgumentParser) -> None:
    _one(parser, "a run or a session")
    parser.add_argument("words", nargs="*", type=text, metavar="TITLE", help="the new title")
    _as_json(parser)


def _delete(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="what to delete, with all that it started")
    _careful(parser)


def _export(parser: ArgumentParser) -> None:
    _one(parser, "a run or a session")
    parser.add_argument(
        "file_to",
        nargs="?",
        type=path,
        metavar="FILE",
        help="a file that is not there yet; default: ID.leadline-session, here",
    )
    _as_json(parser)


def _run_export(parser: ArgumentParser) -> None:
    _one(parser, "a run")
    parser.add_argument(
        "file",
        type=path,
        metavar="FILE",
        help="its name says the form: .md, .html, .json, .leadline, or .leadline-session for all that is stored",
    )


def _import(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=path, metavar="FILE", help="a file that `sessions export` wrote")
    _dry_run(parser, "only check the file and say what is in it")
    _as_json(parser)


def _archive(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="sessions or runs that nobody writes")
    _dry_run(parser, "only say what would be compressed")
    _as_json(parser)


def _collect(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--grace", type=age, metavar="AGE", help="leave what was stored or used since: 1h, 7d; default: 1d")
    add("--stale-index", type=age, metavar="AGE", help="leave indexes of folders used since; default: 90d")
    _careful(parser)


def _prune(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--older-than", type=age, required=True, metavar="AGE", help="not written for so long: 30d, 12h")
    add(
        "--kind", action="append", dest="kinds", default=[], metavar="NAME", help="only this kind; repeatable"
    )
    add("--interrupted", action="store_true", help="also what stopped in mid-work and could be resumed")
    _careful(parser)


def _one(parser: ArgumentParser, says: str) -> None:
    parser.add_argument("id", metavar="ID", help=f"{says}; the beginning of an id does, if only one has it")


def _paged(parser: ArgumentParser, limit: int) -> None:
    parser.add_argument("--limit", type=_whole, metavar="N", help=f"at most so many; default: {limit}")
    parser.add_argument("--cursor", metavar="WORD", help="go on where the page before, which told it, ended")
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON array")


def _careful(parser: ArgumentParser) -> None:
    _dry_run(parser, "only say what would be removed")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    _as_json(parser)


def _dry_run(parser: ArgumentParser, says: str) -> None:
    parser.add_argument("--dry-run", action="store_true", help=says)


def _as_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON object")


def _whole(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise ArgumentTypeError(f"{word!r} is no whole number")
    return int(word)


def _amount(word: str) -> float:
    number = decimal(word)
    if not 0 <= number < float("inf"):
        raise ArgumentTypeError(f"{word!r} is no amount of money; write for example 0.25")
    return number


_COMMANDS = (
    Command("sessions list", "List what is stored, newest first.", _listed),
    Command("sessions search", "Find words in titles, questions, reports, quotes and transcripts.", _search),
    Command("sessions show", "Print the transcript of a session, or the report of a run.", _show),
    Command("sessions fork", "Start a new session with the turns that an agent's session has had.", _fork),
    Command("sessions rename", "Give a session or a run a title.", _rename),
    Command("sessions delete", "Delete sessions or runs, with all that they started.", _delete),
    Command(
        "sessions export", "Write a session or a run, with all that belongs to it, into one file.", _export
    ),
    Command("sessions import", "Take in a file that `sessions export` wrote.", _import),
    Command("sessions archive", "Compress what nobody writes any more; it stays readable.", _archive),
    Command("sessions gc", "Remove stored texts and files that nothing refers to.", _collect),
    Command("sessions prune", "Delete what was not written for a while.", _prune),
    Command("runs list", "List the runs, newest first.", _runs_listed),
    Command("runs show", "Print the transcript of a run, or its report.", _show),
    Command("runs export", "Write a run into a file, in the form that its name asks for.", _run_export),
    Command("runs delete", "Delete runs, with all that they started.", _delete),
)

STORE_COMMANDS = tuple(replace(command, over_store=True) for command in _COMMANDS)
