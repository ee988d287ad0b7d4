"""The commands, their options and their help, as the parser knows them."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from leadline.apps.cli.budget_arguments import budget, kept
from leadline.apps.cli.model_arguments import MODEL_COMMANDS
from leadline.apps.cli.parser import Command, add_patches, names, path, text
from leadline.apps.cli.store_arguments import STORE_COMMANDS


def _research(parser: ArgumentParser) -> None:
    parser.add_argument("question", nargs="*", type=text, metavar="QUESTION", help="what you want to know")
    _corpus(parser, "folder or file to search; repeatable")
    add = parser.add_argument
    add("--method", metavar="NAME", help="how the research is done; default: adaptive")
    add(
        "--breadth",
        metavar="NAME",
        help="focused, balanced or broad: at most 1, 2 or 3 units; default: balanced",
    )
    add("--format", metavar="NAME", help="report, brief or memo; default: report")
    add("--language", type=text, metavar="NAME", help="language of the report; default: that of the question")
    add("--purpose", type=text, metavar="TEXT", help="what the answer is for")
    add(
        "--context",
        type=text,
        metavar="TEXT",
        help="what the researcher should know and the report need not prove",
    )
    budget(parser, "the run")
    kept(parser)
    _files(parser)
    _as_json(parser)
    _composition(parser)


def _agent(parser: ArgumentParser) -> None:
    parser.add_argument("task", nargs="*", type=text, metavar="TASK", help="what the agent should do")
    _corpus(parser, "give it the tool deep_research over this folder or file; repeatable")
    budget(parser, "the turn")
    _as_json(parser)
    _composition(parser)


def _resume(parser: ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help="a run or a session that was interrupted, cancelled or failed"
    )
    parser.add_argument(
        "task",
        nargs="*",
        type=text,
        metavar="TASK",
        help="what an agent should do next; without it, it goes on",
    )
    _corpus(
        parser, "where the corpus of a run is now, or what an agent's deep_research may search; repeatable"
    )
    budget(parser, "the run from its start on, or the turn of the agent")
    kept(parser)
    _files(parser)
    _as_json(parser)
    _composition(parser, "default: the one that it began with; with --base-url where that is not at hand")


def _files(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--output",
        type=path,
        metavar="FILE",
        help="write the report here (.md, .html or .json), not to stdout",
    )
    add(
        "--bundle",
        type=path,
        dest="bundle_to",
        metavar="FILE",
        help="write report, evidence and sources into one file",
    )


def _verify(parser: ArgumentParser) -> None:
    parser.add_argument("bundle", type=path, metavar="BUNDLE", help="a .leadline file")
    parser.add_argument("--expect", metavar="DIGEST", help="sha256 that the file must have")
    _as_json(parser)


def _show(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run or a session; the beginning of an id does")
    parser.add_argument("--report", action="store_true", help="the report of a run instead of the transcript")
    _as_json(parser)


def _export(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run; the beginning of an id does")
    parser.add_argument(
        "file", type=path, metavar="FILE", help="its name says the form: .md, .html, .json, .leadline"
    )


def _event(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise ArgumentTypeError(
            f"{word!r} is no number of an event; leadline context ID lists those that count"
        )
    return int(word)


def _context(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run or a session; the beginning of an id does")
    parser.add_argument("--compact", action="store_true", help="first let the model summarise the older part")
    parser.add_argument(
        "--undo",
        nargs="?",
        const=-1,
        type=_event,
        metavar="EVENT",
        help="first take back a change of the window, by the number of its event; default: the latest",
    )
    _as_json(parser)
    _composition(parser)


def _audit(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run or a session; the beginning of an id does")
    _as_json(parser)
    _composition(parser)


def _usage(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run or a session; the beginning of an id does")
    parser.add_argument(
        "--own", action="store_true", help="without what it started, such as the roles of a run"
    )
    _as_json(parser)


def _replay(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("id", metavar="ID", help="a run that ended; the beginning of an id does")
    add(
        "--model",
        metavar="PROVIDER/NAME",
        help="ask this model instead of playing what was recorded; makes a new run",
    )
    add("--base-url", metavar="URL", help="address of an OpenAI-compatible server for --model")
    add(
        "--roles",
        type=names,
        default=(),
        metavar="NAMES",
        help="whom --model answers for: planner, researcher, writer; default: all",
    )
    add("--method", metavar="NAME", help="do the research in another way; makes a new run")
    add(
        "--checks",
        type=names,
        default=(),
        metavar="NAMES",
        help="judge the sentences by these checks alone; makes a new run",
    )
    _as_json(parser)
    _profile(parser)


def _config(parser: ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="show", choices=["show"], help="print the plugins with the origin of each value"
    )
    _profile(parser)


def _doctor(parser: ArgumentParser) -> None:
    """Takes nothing."""


def _corpus(parser: ArgumentParser, says: str) -> None:
    parser.add_argument("--corpus", type=path, action="append", default=[], metavar="PATH", help=says)


def _as_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", dest="as_json", action="store_true", help="print one JSON object")


def _composition(
    parser: ArgumentParser, model: str = "default: the default model (leadline models default)"
) -> None:
    add = parser.add_argument
    add("--model", metavar="PROVIDER/NAME", help=model)
    add("--base-url", metavar="URL", help="address of an OpenAI-compatible server for --model")
    _profile(parser)


def _profile(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--profile",
        metavar="NAME",
        help="composition to start from: base, headless, research, or a YAML file",
    )
    add_patches(parser)


COMMANDS = (
    Command("research", "Answer a question from documents, with citations that can be checked.", _research),
    Command("agent", "Run one agent for one turn with the tools of the profile.", _agent),
    Command(
        "resume",
        "Go on with a run or an agent where it stopped; nothing that is logged is asked again.",
        _resume,
    ),
    Command("verify", "Check a bundle offline: every byte, every quote, every deterministic check.", _verify),
    Command("show", "Print the transcript of a session, or the report of a run.", _show, over_store=True),
    Command(
        "context", "Show what fills the window of a session's next request, or make room in it.", _context
    ),
    Command("audit", "Prove from the log what was sent to a model: every request, digest by digest.", _audit),
    Command("usage", "Tell what a run or a session used and what it cost.", _usage, over_store=True),
    Command(
        "replay",
        "Run it again from its recorded answers and sources, or with another model over the same sources.",
        _replay,
    ),
    Command("export", "Write a run that ended into a file.", _export, over_store=True),
    *STORE_COMMANDS,
    *MODEL_COMMANDS,
    Command("config", "Print the composed plugins with the origin of each value.", _config),
    Command("doctor", "Say what works here and what is missing, one line each.", _doctor),
)

GROUPS = tuple(dict.fromkeys(command.name.split()[0] for command in COMMANDS if " " in command.name))
"""The first words of commands that have two."""

_STORED = ("What is stored", "Everything that is stored: find it, go on from it, keep it, remove it.")
_GROUP = {
    "sessions": _STORED,
    "runs": _STORED,
    "models": ("Which models there are", "Models: see which there are, add them, try them, choose one."),
}
"""What a group is about: in the help of the program, and in its own."""


def overview(group: str = "") -> str:
    """The help of the program as a whole, or of a group of commands."""
    told: dict[str, str] = {}
    for command in COMMANDS:
        first, _, second = command.name.partition(" ")
        if group:
            told |= {command.name: command.says} if first == group else {}
        elif second:
            told[first] = f"{told[first]}, {second}" if first in told else f"{_GROUP[first][0]}: {second}"
        else:
            told[first] = command.says
    width = max(map(len, told))
    lines = [
        f"usage: leadline {group} COMMAND …" if group else "usage: leadline COMMAND …",
        "",
        _GROUP[group][1]
        if group
        else "Deep research you can audit: a report in which every sentence can be checked.",
        "",
        *(f"  {name:<{width}}  {says}" for name, says in told.items()),
        "",
        "leadline COMMAND --help tells the options of a command; leadline --version the version.",
    ]
    return "\n".join(lines)
