"""Which names of a folder are passed over: hidden, version control, side files, and what ignore files say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

IGNORE_FILES = (".gitignore", ".leadlineignore")
"""Read in this order in each folder; a later pattern decides, and a deeper folder before a higher one."""

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", "CVS", "_darcs"})
_SIDE_FILES = frozenset({"Thumbs.db", "desktop.ini", "Icon\r"})
_MAX_IGNORE_FILE = 1_000_000


@dataclass(frozen=True)
class _Rules:
    folder: str
    """Relative to the root, with a `/` at its end; empty for the root."""
    spec: _Spec


class _Spec:
    """The patterns of one folder's ignore files."""

    def __init__(self, lines: list[str]) -> None:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - few folders have ignore files

        good: list[str] = []
        for line in lines:
            try:
                GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue  # git passes over a pattern that it cannot read, too
            good.append(line)
        self._spec = GitIgnoreSpec.from_lines(good)

    def decide(self, path: str) -> bool | None:
        """True to ignore, False to keep, None if no pattern speaks of it."""
        return self._spec.check_file(path).include


class IgnoreRules:
    """The rules in force in one folder; `below` gives those of a folder in it."""

    def __init__(self, rules: tuple[_Rules, ...] = ()) -> None:
        self._rules = rules

    def below(self, folder: Path, relative: str) -> IgnoreRules:
        """With what the ignore files of `folder` add; `relative` is its path from the root, empty for the root."""
        lines: list[str] = []
        for name in IGNORE_FILES:
            try:
                with (folder / name).open("rb") as file:
                    lines.extend(file.read(_MAX_IGNORE_FILE).decode("utf-8", "replace").splitlines())
            except OSError:
                continue
        if not any(line.strip() for line in lines):
            return self
        return IgnoreRules((*self._rules, _Rules(f"{relative}/" if relative else "", _Spec(lines))))

    def why_left_out(self, name: str, relative: str, *, is_folder: bool) -> str | None:
        """The rule by which an entry is passed over, or None if it belongs to the corpus."""
        if name in _VERSION_CONTROL:
            return "version control"
        if name.startswith("."):
            return "hidden"
        if name in _SIDE_FILES or name.startswith("~$") or (name.endswith("~") and not is_folder):
            return "side file"
        if name.endswith(".leadline") and not is_folder:
            return "bundle"
        for rules in reversed(self._rules):
            inner = relative[len(rules.folder) :] + ("/" if is_folder else "")
            decision = rules.spec.decide(inner)
            if decision is not None:
                return "ignored" if decision else None
        return None


def in_version_control(relative: str) -> bool:
    """Whether a path goes through a version control folder."""
    return not _VERSION_CONTROL.isdisjoint(relative.split("/"))
