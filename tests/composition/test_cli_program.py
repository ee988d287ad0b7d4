"""The program itself: help, version, doctor, configuration, and what none of them may cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from leadline import __version__
from leadline.apps.cli.arguments import COMMANDS, GROUPS
from tests.composition.cli import Command, program


def test_the_version_is_one_line(home: Path) -> None:
    ended = program("--version")
    assert (ended.code, ended.out.decode(), ended.err) == (0, f"leadline {__version__}\n", "")
    assert not home.exists()


def test_without_a_command_the_help_goes_to_stderr_and_the_exit_code_is_2(command: Command) -> None:
    ended = command()
    assert (ended.code, ended.out) == (2, b"")
    assert "usage: leadline COMMAND" in ended.err


def test_help_names_every_command(command: Command) -> None:
    ended = command("--help")
    assert (ended.code, ended.err) == (0, "")
    for one in COMMANDS:
        assert f"  {one.name.split()[0]} " in ended.out.decode()


@pytest.mark.parametrize("group", GROUPS)
def test_help_of_a_group_names_each_of_its_commands(command: Command, group: str) -> None:
    ended = command(group, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert command(group).err.encode() == ended.out
    assert command(group).code == 2
    for one in COMMANDS:
        assert (f"  {one.name} " in ended.out.decode()) == one.name.startswith(f"{group} ")


@pytest.mark.parametrize("name", [one.name for one in COMMANDS])
def test_every_command_has_help(command: Command, home: Path, name: str) -> None:
    ended = command(*name.split(), "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"usage: leadline {name}".encode())
    assert not home.exists()


def test_an_unknown_command_is_named_with_the_nearest(command: Command) -> None:
    ended = command("reserch", "x")
    assert (ended.code, ended.out) == (2, b"")
    assert "did you mean 'research'?" in ended.complaint


def test_an_unknown_command_of_a_group_is_named_with_the_nearest(command: Command) -> None:
    ended = command("sessions", "serch", "x")
    assert (ended.code, ended.out) == (2, b"")
    assert "did you mean 'search'?" in ended.complaint


def test_an_option_in_the_place_of_the_command_is_not_taken_for_a_misspelt_one(command: Command) -> None:
    ended = command("--versoin")
    assert (ended.code, ended.out) == (2, b"")
    assert ended.complaint == "leadline: '--versoin' stands where the command has to; see: leadline --help"


def test_doctor_finds_everything_here(command: Command) -> None:
    ended = command("doctor")
    assert ended.code == 0, ended.out.decode()
    assert "extractive/extractive" in ended.out.decode()
    assert "missing" not in ended.out.decode()


def test_doctor_says_what_is_wrong(command: Command, home: Path) -> None:
    home.mkdir()
    (home / "leadline.yml").write_text("- {id: modls, disabled: true}\n")
    ended = command("doctor")
    assert ended.code == 1
    assert "missing" in ended.out.decode()
    assert "did you mean 'models'?" in ended.out.decode()


def test_configuration_tells_where_each_value_is_from(command: Command, tmp_path: Path) -> None:
    patch = tmp_path / "patch.yml"
    patch.write_text("- {id: research, merge: {source_calls: 6}}\n")
    lines = command("config", "show", "--patch", patch).out.decode().splitlines()
    (line,) = [line for line in lines if line.startswith("research.config.source_calls")]
    assert line.split()[1:] == ["6", f"({patch}:1)"]
    assert any(line.startswith("models.config.default") and "profiles/headless.yml" in line for line in lines)


def test_configuration_never_shows_a_secret(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    patch = tmp_path / "patch.yml"
    patch.write_text("- {id: models, merge: {providers: {mine: {api_key: !env MY_KEY}}}}\n")
    assert b"sk-secret" not in command("config", "show", "--patch", patch).out


def test_starting_an_agent_loads_only_what_an_agent_needs(home: Path) -> None:
    code = (
        "import sys\n"
        "from leadline.apps.cli.main import exit_code\n"
        "assert exit_code(['agent', 'hi', '--model', 'nobody/x']) == 2\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "leadline.core.loop.turn" in loaded
    heavy = "aiohttp trafilatura lxml mammoth pypdfium2 jsonschema sqlite3 typer rich"
    assert not set(heavy.split()) & loaded
    research = {name for name in loaded if name.startswith("leadline.research.")}
    known = {"events", "projections", "ledger", "ledger.leaves"}  # what lists are told of runs
    known |= {f"extractive{part}" for part in ("", ".plugin", ".adapter")}
    assert research <= {f"leadline.research.{name}" for name in known}


def test_the_program_runs_as_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "leadline", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == f"leadline {__version__}\n"
