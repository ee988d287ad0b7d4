"""How a command line is read: what may be typed, the parser of a command, its one-line complaints."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, HelpFormatter, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import NoReturn

from leadline.apps.cli.exits import Exit, Quit
from leadline.apps.cli.times import Moment
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
    roles: tuple[str, ...]
    checks: tuple[str, ...]
    id: str
    report: bool
    own: bool
    file: Path
    file_to: Path | None
    ids: list[str]
    words: list[str]
    turn: int | None
    title_to: str | None
    kind: str | None
    kinds: list[str]
    status: list[str]
    since: Moment | None
    until: Moment | None
    title_has: str | None
    words_in: str | None
    corpus_has: str | None
    min_cost: float | None
    max_cost: float | None
    max_tokens: int | None
    max_calls: int | None
    max_time: float | None
    keep: float | None
    parent: str | None
    children: bool
    limit: int | None
    cursor: str | None
    dry_run: bool
    yes: bool
    grace: float | None
    stale_index: float | None
    older_than: float
    interrupted: bool
    model_id: str | None
    provider: str
    all_of_them: bool
    discover: bool
    like: str | None
    key_env: str | None
    context_window: int | None
    max_output: int | None
    no_tools: bool
    as_default: bool
    model_roles: list[str]
    model_role: str | None
    unset: bool
    input_price: float | None
    output_price: float | None
    cached_price: float | None
    write_price: float | None
    reasoning_price: float | None
    call_price: float | None
    free: bool
    most_at_once: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    store: str | None
    remove: bool
    timeout: float | None
    compact: bool
    undo: int | None


def text(word: str) -> str:
    """A word as text: where the locale could not read its bytes, they are UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return os.fsencode(word).decode("utf-8", "replace")
    return word


def decimal(word: str) -> float:
    """The number that a word writes; NaN, which is within no bounds, where it writes none."""
    try:
        return float(word)
    except ValueError:
        return nan


def names(word: str) -> tuple[str, ...]:
    """A word as names with commas between them.

    Raises:
        ArgumentTypeError: there is no name in it.
    """
    found = tuple(name.strip() for name in word.split(",") if name.strip())
    if not found:
        raise ArgumentTypeError("no name was given; write them with commas between: a,b")
    return found


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
            self.error("'--' is for what is told in words, such as questions")
        getattr(given, many).extend(text(word) for word in words)


@dataclass(frozen=True)
class Command:
    """One command of the program."""

    name: str
    says: str
    """What it does, in a sentence."""
    options: Callable[[ArgumentParser], None]
    over_store: bool = False
    """Whether it works on what is stored alone, so that of a composition only patches matter to it."""

    def parser(self) -> Parser:
        """The parser of the command's own arguments."""
        parser = Parser(
            f"leadline {self.name}",
            description=self.says,
            allow_abbrev=False,
            formatter_class=lambda prog: HelpFormatter(prog, max_help_position=30, width=100),
        )
        self.options(parser)
        if self.over_store:
            add_patches(parser)
        return parser


def add_patches(parser: ArgumentParser) -> None:
    """The option that changes the composition."""
    parser.add_argument(
        "--patch",
        type=path,
        action="append",
        default=[],
        metavar="FILE",
        help="YAML patch over the composition; repeatable",
    )
