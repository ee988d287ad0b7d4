"""The commands, their options and their help, as the parser knows them."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, HelpFormatter, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from leadline.apps.cli.exits import Exit, Quit
from leadline.kernel.errors import did_you_mean


class Given(Namespace):
    """What was typed; each command has only its own part of it."""

    question: list[str]
    task: list[str]
    corpus: list[Path]
    method: str | None
    breadth: str | None
    format: str | None
    language: str | None
    purpose: str | None
    context: str | None
    output: Path | None
    bundle: Path
    bundle_to: Path | None
    as_json: bool
    model: str | None
    base_url: str | None
    profile: str | None
    patch: list[Path]
    expect: str | None
    id: str
    report: bool
    file: Path


def text(word: str) -> str:
    """A word as text: where the locale could not read its bytes, they are UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode("utf-8", "replace")
    return word


def path(word: str) -> Path:
    """A word as a path; `~` is the home folder also where the shell left it alone.

    Raises:
        ArgumentTypeError: it is blank, as a variable is that was never set.
    """
    if not word.strip():
        raise ArgumentTypeError("the path is blank; name a file or a folder")
    try:
        return Path(word).expanduser()
    except RuntimeError:
        return Path(word)


class Parser(ArgumentParser):
    """A parser of one command, whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        raise Quit(Exit.USAGE, f"{message}; see: {self.prog} --help")

    def given(self, arguments: Sequence[str]) -> Given:
        """What was typed. Words and options may stand in any order; after `--` there are only words.

        Raises:
            Quit: an option that is not there, or a value that is missing.
        """
        at = arguments.index("--") if "--" in arguments else len(arguments)
        given, unknown = self.parse_known_intermixed_args(list(arguments[:at]), Given())
        if unknown:
            known = [option for action in self._actions for option in action.option_strings]
            hint = did_you_mean(unknown[0].split("=")[0], known) if unknown[0].startswith("-") else ""
            self.error(f"{unknown[0]!r} is not known here{hint if 'mean' in hint else ''}")
        if words := arguments[at + 1 :]:
            self._append(given, words)
        return given

    def _append(self, given: Given, words: Sequence[str]) -> None:
        # argparse forgets what `--` said when words and options are mixed.
        many = next((one.dest for one in self._actions if not one.option_strings and one.nargs == "*"), None)
        if many is None:
            self.error("'--' is for questions and tasks")
        getattr(given, many).extend(text(word) for word in words)


@dataclass(frozen=True)
class Command:
    """One command of the program."""

    name: str
    says: str
    """What it does, in a sentence."""
    options: Callable[[ArgumentParser], None]

    def parser(self) -> Parser:
        """The parser of the command's own arguments."""
        parser = Parser(
            f"leadline {self.name}",
            description=self.says,
            allow_abbrev=False,
            formatter_class=lambda prog: HelpFormatter(prog, max_help_position=30, width=100),
        )
        self.options(parser)
        return parser


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
    _as_json(parser)
    _composition(parser)


def _agent(parser: ArgumentParser) -> None:
    parser.add_argument("task", nargs="*", type=text, metavar="TASK", help="what the agent should do")
    _corpus(parser, "give it the tool deep_research over this folder or file; repeatable")
    _as_json(parser)
    _composition(parser)


def _verify(parser: ArgumentParser) -> None:
    parser.add_argument("bundle", type=path, metavar="BUNDLE", help="a .leadline file")
    parser.add_argument("--expect", metavar="DIGEST", help="sha256 that the file must have")
    _as_json(parser)


def _show(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run or a session")
    parser.add_argument("--report", action="store_true", help="the report of a run instead of the transcript")
    _as_json(parser)


def _export(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run")
    parser.add_argument(
        "file", type=path, metavar="FILE", help="its name says the form: .md, .html, .json, .leadline"
    )


def _audit(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="a run or a session")
    _as_json(parser)
    _composition(parser)


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


def _composition(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--model",
        metavar="PROVIDER/NAME",
        help="default: the embedded extractive one, without key and network",
    )
    add("--base-url", metavar="URL", help="address of an OpenAI-compatible server for --model")
    _profile(parser)


def _profile(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--profile",
        metavar="NAME",
        help="composition to start from: base, headless, research, or a YAML file",
    )
    add(
        "--patch",
        type=path,
        action="append",
        default=[],
        metavar="FILE",
        help="YAML patch over it; repeatable",
    )


COMMANDS = (
    Command("research", "Answer a question from documents, with citations that can be checked.", _research),
    Command("agent", "Run one agent for one turn with the tools of the profile.", _agent),
    Command("verify", "Check a bundle offline: every byte, every quote, every deterministic check.", _verify),
    Command("show", "Print the transcript of a session, or the report of a run.", _show),
    Command("audit", "Prove from the log what was sent to a model: every request, digest by digest.", _audit),
    Command("export", "Write a run that ended into a file.", _export),
    Command("config", "Print the composed plugins with the origin of each value.", _config),
    Command("doctor", "Say what works here and what is missing, one line each.", _doctor),
)


def overview() -> str:
    """The help of the program as a whole."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [
        "usage: leadline COMMAND …",
        "",
        "Deep research you can audit: a report in which every sentence can be checked.",
        "",
        *(f"  {command.name:<{width}}  {command.says}" for command in COMMANDS),
        "",
        "leadline COMMAND --help tells the options of a command; leadline --version the version.",
    ]
    return "\n".join(lines)
