"""Finds every file below the roots of a corpus and gives each its location; never leaves a root by a link."""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leadline.capabilities.corpus.providers.ignore import IgnoreRules, in_version_control
from leadline.capabilities.corpus.seam import CorpusUnavailable
from leadline.capabilities.documents.seam import Outcome


@dataclass(frozen=True)
class Root:
    """One path of the corpus, links resolved."""

    name: str
    """Unique in the corpus."""
    path: Path
    is_file: bool


@dataclass(frozen=True)
class Problem:
    """Why a file is not read at all."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class Entry:
    """One file that was found."""

    location: str
    folder: Path
    """The root's folder, free of links; `parts` lead from it to the file."""
    parts: tuple[str, ...]
    size: int
    mtime_ns: int
    ctime_ns: int
    """When content or properties changed; unlike `mtime_ns`, nobody can set it back."""
    inode: int
    problem: Problem | None = None


@dataclass(frozen=True)
class Walked:
    """All files of a corpus by location, and what was passed over by rule."""

    entries: tuple[Entry, ...]
    left_out: Mapping[str, int]


def resolve_roots(paths: Sequence[Path]) -> tuple[Root, ...]:
    """The roots in the order given, each once, with unique names.

    Raises:
        CorpusUnavailable: a path is missing, unreadable or neither file nor folder, or there is none.
    """
    if not paths:
        raise CorpusUnavailable("", "no path was given", "Name at least one folder or file.")
    roots: list[Root] = []
    names: set[str] = set()
    for path in paths:
        real, is_file = _resolved(path)
        if any(root.path == real for root in roots):
            continue
        name = _unique(_shown(real.name) or "root", names)
        roots.append(Root(name, real, is_file))
    return tuple(roots)


def _resolved(path: Path) -> tuple[Path, bool]:
    shown = str(path)
    try:
        real = path.expanduser().resolve(strict=True)
        mode = real.stat().st_mode
        if stat.S_ISDIR(mode):
            with os.scandir(real):
                return real, False
        if stat.S_ISREG(mode):
            with real.open("rb"):
                return real, True
    except FileNotFoundError as error:
        raise CorpusUnavailable(shown, "there is no such file or folder", "Check the path.") from error
    except PermissionError as error:
        raise CorpusUnavailable(shown, "permission denied", "Give yourself read access to it.") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise CorpusUnavailable(shown, f"cannot be opened ({error})", "Check the path.") from error
    raise CorpusUnavailable(shown, "neither a file nor a folder", "Name a folder or a regular file.")


def walk(roots: Sequence[Root], *, except_for: Path | None = None) -> Walked:
    """Every file below `roots` but not below `except_for`; those that cannot or may not be read carry a problem."""
    left_out: Counter[str] = Counter()
    entries: list[Entry] = []
    taken: set[Path] = set()
    seen: set[tuple[int, int]] = set()
    if except_for is not None:
        with contextlib.suppress(OSError):
            info = except_for.stat()
            seen.add((info.st_dev, info.st_ino))  # as if it had been walked
    for root in roots:
        walker = _Walker(root, left_out, seen)
        walker.run()
        prefix = f"{root.name}/" if len(roots) > 1 and not root.is_file else ""
        for entry in _located(walker.found, prefix, root):
            if len(roots) > 1:  # a file may be named beside the folder that it lies in
                path = entry.folder.joinpath(*entry.parts)
                if path in taken:
                    continue
                taken.add(path)
            entries.append(entry)
    return Walked(tuple(sorted(entries, key=lambda entry: entry.location)), dict(left_out))


@dataclass
class _Found:
    shown: tuple[str, ...]
    """The names that led here, through links."""
    parts: tuple[str, ...]
    info: os.stat_result | None
    problem: Problem | None = None


_Folder = tuple[tuple[str, ...], tuple[str, ...], IgnoreRules]
"""A folder to walk: the names that lead to it through links, its own place, and the rules in force around it."""


@dataclass
class _Walker:
    root: Root
    left_out: Counter[str]
    seen: set[tuple[int, int]]
    """Device and inode of folders walked and files taken, in all roots."""
    found: list[_Found] = field(default_factory=list[_Found])
    links: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def run(self) -> None:
        if self.root.is_file:
            self._file((self.root.path.name,), (self.root.path.name,), self.root.path.stat())
            return
        self._folders(((), (), IgnoreRules()))
        # links come last: what they lead to keeps its own name wherever it has one
        handled: set[tuple[str, ...]] = set()
        while pending := sorted(set(self.links) - handled):
            for link in pending:
                handled.add(link)
                self._link(link)

    @property
    def _base(self) -> Path:
        return self.root.path.parent if self.root.is_file else self.root.path

    def _folders(self, first: _Folder) -> None:
        """A folder and all below it, however deep: a tree may be deeper than calls may be nested."""
        pending = [first]
        while pending:
            pending.extend(reversed(self._folder(*pending.pop())))

    def _folder(
        self, shown: tuple[str, ...], parts: tuple[str, ...], rules: IgnoreRules
    ) -> Sequence[_Folder]:
        """Take the files of a folder; returns the folders in it."""
        path = self._base.joinpath(*parts)
        try:
            info = path.stat()
            if not self._first(info):
                return ()
            with os.scandir(path) as listing:
                children = sorted(listing, key=lambda child: child.name)
        except OSError as error:
            reason = f"folder cannot be read: {error.strerror or error}"
            self.found.append(_Found(shown, parts, None, Problem("error", reason)))
            return ()
        rules = rules.below(path, "/".join(parts))
        inner: list[_Folder] = []
        for child in children:
            if self._child(child, (*shown, child.name), (*parts, child.name), rules):
                inner.append(((*shown, child.name), (*parts, child.name), rules))
        return inner

    def _child(
        self, child: os.DirEntry[str], shown: tuple[str, ...], parts: tuple[str, ...], rules: IgnoreRules
    ) -> bool:
        """Take a child that is no folder; returns whether it is one to be walked."""
        is_link = child.is_symlink()
        is_folder = child.is_dir(follow_symlinks=False)
        rule = rules.why_left_out(child.name, "/".join(parts), is_folder=is_folder)
        if rule is not None:
            self.left_out[rule] += 1
        elif is_link:
            self.links.append(shown)
        elif is_folder:
            return True
        else:
            try:
                self._file(shown, parts, child.stat(follow_symlinks=False))
            except OSError as error:
                problem = Problem("error", f"cannot be read: {error.strerror or error}")
                self.found.append(_Found(shown, parts, None, problem))
        return False

    def _file(self, shown: tuple[str, ...], parts: tuple[str, ...], info: os.stat_result) -> None:
        problem = None if stat.S_ISREG(info.st_mode) else Problem("unsupported", _kind(info.st_mode))
        # a second hard link is a file of its own; only what a link leads to must not come twice
        self._first(info)
        self.found.append(_Found(shown, parts, info, problem))

    def _link(self, shown: tuple[str, ...]) -> None:
        path = self._base.joinpath(*shown)
        try:
            target = path.resolve(strict=True)
            info = target.stat()
        except (OSError, RuntimeError) as error:
            reason = "link that leads nowhere" if isinstance(error, FileNotFoundError) else "link in a circle"
            self.found.append(_Found(shown, shown, None, Problem("error", reason)))
            return
        if not target.is_relative_to(self._base):
            problem = Problem("disallowed", "link that leaves the corpus folder; not followed")
            self.found.append(_Found(shown, shown, None, problem))
            return
        parts = target.relative_to(self._base).parts
        if (info.st_dev, info.st_ino) in self.seen:
            self.left_out["link to what has its own place"] += 1
        elif in_version_control("/".join(parts)) or self._ignored(parts):
            self.left_out["link to what is left out"] += 1
        elif stat.S_ISDIR(info.st_mode):
            self._folders((shown, parts, self._rules_of(parts)))
        else:
            self._file(shown, parts, info)

    def _rules_of(self, parts: tuple[str, ...]) -> IgnoreRules:
        """The rules in force inside the folder that holds `parts`."""
        rules = IgnoreRules()
        for depth in range(len(parts)):
            rules = rules.below(self._base.joinpath(*parts[:depth]), "/".join(parts[:depth]))
        return rules

    def _ignored(self, parts: tuple[str, ...]) -> bool:
        """Whether an ignore file, not merely a leading dot, keeps `parts` out."""
        rules = IgnoreRules()
        for depth, name in enumerate(parts):
            rules = rules.below(self._base.joinpath(*parts[:depth]), "/".join(parts[:depth]))
            is_folder = depth < len(parts) - 1
            if rules.why_left_out(name, "/".join(parts[: depth + 1]), is_folder=is_folder) == "ignored":
                return True
        return False

    def _first(self, info: os.stat_result) -> bool:
        key = (info.st_dev, info.st_ino)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True


def _located(found: Sequence[_Found], prefix: str, root: Root) -> list[Entry]:
    taken: set[str] = set()
    entries: list[Entry] = []
    folder = root.path.parent if root.is_file else root.path
    for item in sorted(found, key=lambda one: (not _is_composed(one.shown), one.shown)):
        shown = root.name if root.is_file else _shown("/".join(item.shown))
        if shown in taken:  # names that differ in composition alone: the composed one came first
            shown = _unique(_printable("/".join(item.shown)), taken)
        taken.add(shown)
        info = item.info
        entries.append(
            Entry(
                location=prefix + (shown or "."),
                folder=folder,
                parts=item.parts,
                size=info.st_size if info else 0,
                mtime_ns=info.st_mtime_ns if info else 0,
                ctime_ns=info.st_ctime_ns if info else 0,
                inode=info.st_ino if info else 0,
                problem=item.problem,
            )
        )
    return entries


def _is_composed(names: tuple[str, ...]) -> bool:
    return all(unicodedata.is_normalized("NFC", name) for name in names)


def _shown(name: str) -> str:
    """A name as it is recorded: composed (NFC), so that it is the same on every file system."""
    return unicodedata.normalize("NFC", _printable(name))


def _printable(name: str) -> str:
    """Bytes of a name that are no text are written as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _unique(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"
    taken.add(candidate)
    return candidate


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe, not a file"
    if stat.S_ISSOCK(mode):
        return "a socket, not a file"
    return "a device, not a file"
