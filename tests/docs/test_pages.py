"""The documentation names everything there is: every option, every row, every field of a configuration."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from leadline.apps.cli.arguments import COMMANDS
from leadline.apps.cli.exits import Exit
from leadline.apps.cli.parser import Command
from leadline.apps.sdk.composition import Options, composed

ROOT = Path(__file__).parents[2]
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    found = re.search(rf"^## leadline {name}.*?(?=^## |\Z)", CLI, re.M | re.S)
    assert found, f"docs/cli.md has no section on {name}"
    return found.group()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_option_is_on_the_page_of_the_command_line(command: Command) -> None:
    text = section(command.name)
    actions = [one for one in command.parser()._actions if "--help" not in one.option_strings]
    for action in actions:
        for option in action.option_strings:
            value = f" {action.metavar}" if action.metavar else ""
            assert f"`{option}{value}`" in text, f"{option} of {command.name}"
    told = set(re.findall(r"`(--[a-z-]+)", text))
    assert told <= {option for action in actions for option in action.option_strings}


def test_every_exit_code_is_on_the_page() -> None:
    assert set(map(int, re.findall(r"^\| (\d+) \|", CLI, re.M))) == set(Exit)


def test_the_reference_is_what_the_generator_writes() -> None:
    source = ROOT / "docs" / "build_reference.py"
    spec = importlib.util.spec_from_file_location("build_reference", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.reference() == module.TARGET.read_text(encoding="utf-8"), "run: make docs"


def test_the_reference_names_every_row(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for row in composed(Options(home=tmp_path)).rows:
        assert f"### `{row.id}`\n\n`{row.plugin}`\n" in text
    for line in re.findall(r"^\| `.*$", text, re.M):
        assert line.split(" | ")[-1].strip(" |"), f"a field without a meaning: {line}"
