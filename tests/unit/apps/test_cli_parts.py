"""The small parts of the command line: what is visible, what a file is called, how an error is told."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.apps.cli.arguments import COMMANDS
from leadline.apps.cli.exits import Exit, Quit, told
from leadline.apps.cli.files import check_writable, form_of
from leadline.apps.cli.parser import Given, Parser
from leadline.apps.cli.streams import visible
from leadline.apps.cli.times import moment
from leadline.apps.cli.widths import Column, columns_of, fitting, table
from leadline.kernel.errors import BootFailed, LeadlineError

RESEARCH = next(one for one in COMMANDS if one.name == "research")


def parsed(*words: str) -> Given:
    return RESEARCH.parser().given(words)


@given(st.text())
def test_visible_text_holds_no_control_character_but_line_ends_and_tabs(text: str) -> None:
    shown = visible(text)
    assert all(c in "\n\t" or (ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0) for c in shown)
    if text.isprintable():
        assert "\\" not in shown or "\\" in text


def test_a_change_of_direction_is_visible() -> None:
    assert visible("pay \u202e08 RUE") == "pay \\u202e08 RUE"


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.md", "markdown"), ("a", "markdown"), ("a.txt", "markdown"), ("a.HTM", "html"), ("a.json", "json")],
)
def test_the_name_of_a_file_says_its_form(name: str, form: str) -> None:
    assert form_of(Path(name), bundle=False) == form


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.leadline"])
def test_a_form_that_is_not_written_is_refused(name: str) -> None:
    with pytest.raises(Quit) as refused:
        form_of(Path(name), bundle=False)
    assert refused.value.code == Exit.USAGE
    assert form_of(Path("a.leadline"), bundle=True) == "bundle"


def test_checking_a_file_does_not_make_it(tmp_path: Path) -> None:
    check_writable(tmp_path / "a.md", "markdown")
    assert list(tmp_path.iterdir()) == []


def test_an_error_is_one_line() -> None:
    assert told(LeadlineError("first\n  second")) == "first second"


def test_a_boot_that_failed_is_told_by_its_roots() -> None:
    error = BootFailed(
        ["a.yml:1: home: failed: no room", "a.yml:2: store: inactive: needs home (home failed: no room)"]
    )
    assert told(error) == "cannot start: a.yml:1: home: failed: no room"
    only = BootFailed(["a.yml:2: store: inactive: needs home"])
    assert told(only) == "cannot start: a.yml:2: store: inactive: needs home"


def test_options_and_words_mix() -> None:
    given_ = parsed("what", "--corpus", "a", "is", "--corpus=b", "this", "--json")
    assert given_.question == ["what", "is", "this"]
    assert given_.corpus == [Path("a"), Path("b")]
    assert given_.as_json


def test_a_question_may_look_like_an_option() -> None:
    assert parsed("--", "--corpus", "is", "what?").question == ["--corpus", "is", "what?"]
    assert parsed("-5 degrees outside?").question == ["-5 degrees outside?"]


def test_one_call_leaves_nothing_for_the_next() -> None:
    parsed("q", "--corpus", "a")
    assert parsed("q").corpus == []


def test_bytes_that_the_locale_could_not_read_are_utf8() -> None:
    word = "café".encode().decode("ascii", "surrogateescape")
    assert parsed(word, "--context", word).question == ["café"]
    assert parsed("q", "--context", word).context == "café"
    assert parsed(b"caf\xe9".decode("utf-8", "surrogateescape")).question == ["caf\ufffd"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_option_says_what_it_does(command: object) -> None:
    parser: Parser = command.parser()  # pyright: ignore[reportAttributeAccessIssue]
    for action in parser._actions:
        assert action.help


@given(st.text(alphabet="aé飯店 ", max_size=60), st.integers(0, 40))
def test_a_status_never_wraps(text: str, columns: int) -> None:
    shown = fitting(text, columns)
    assert text.startswith(shown)
    assert sum(2 if c in "飯店" else 1 for c in shown) <= columns


CELLS = st.lists(st.text(alphabet="aé飯店 \n\x1b́", max_size=30), min_size=3, max_size=3)


@given(CELLS, CELLS, CELLS, st.integers(20, 100))
def test_a_table_is_never_wider_than_the_terminal(
    first: list[str], second: list[str], last: list[str], width: int
) -> None:
    lines = table([Column("ID", first), Column("KIND", second, drop=1), Column("TITLE", last)], width).split(
        "\n"
    )
    assert len(lines) == 4
    assert all(columns_of(line) <= width for line in lines)


def test_a_narrow_table_loses_columns_before_its_last_one_is_cut_short() -> None:
    columns = [Column("ID", ["s-1"]), Column("KIND", ["research"], drop=1), Column("TITLE", ["a long title"])]
    assert table(columns, 60, 12) == "ID   KIND      TITLE\ns-1  research  a long title"
    assert table(columns, 20, 12) == "ID   TITLE\ns-1  a long title"
    assert table(columns, 15, 12) == "ID   TITLE\ns-1  a long ti…"


def test_a_table_that_goes_into_a_file_is_whole() -> None:
    assert table([Column("N", ["7", "12"], right=True), Column("T", ["x" * 300, "店"])], None) == (
        f" N  T\n 7  {'x' * 300}\n12  店"
    )


@pytest.mark.parametrize(
    ("word", "iso"),
    [
        ("1970-01-02", "1970-01-02"),
        (" 1970-01-01T01:00+01:00 ", "1970-01-01T01:00+01:00"),
        ("1d", "2001-09-08T01:46:40+00:00"),
        ("1.5H", "2001-09-09T00:16:40+00:00"),
        ("9999999w", "1970-01-01T00:00:00+00:00"),
    ],
)
def test_a_moment_is_a_date_or_an_age(word: str, iso: str) -> None:
    assert moment(word).iso(1_000_000_000.0) == iso


@pytest.mark.parametrize("word", ["", "yesterday", "7", "7y", "-1d", "2026-13-01"])
def test_what_is_no_moment_is_refused_with_an_example(word: str) -> None:
    with pytest.raises(ArgumentTypeError, match="write 2026-11-30"):
        moment(word)
