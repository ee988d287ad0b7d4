"""From the name in a row to the plugin: import paths, what is installed, and the versions it runs with."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import cast

from leadline.kernel.effects import contained
from leadline.kernel.errors import ConfigError, did_you_mean
from leadline.kernel.plugin import Mountable

GROUP = "leadline.plugins"
"""The entry point group under which distributions offer plugins: `name = "import.path:name"`."""


@dataclass(frozen=True)
class Source:
    """A place that offers plugins, such as a project, a user's folder or a distribution."""

    label: str
    targets: Mapping[str, str]
    """Plugin name to `import.path:name`."""


@dataclass(frozen=True)
class Discovered:
    """A plugin that can be named in a row."""

    name: str
    target: str
    origin: str


@dataclass(frozen=True)
class Catalogue:
    """What was discovered, and what was passed over because an earlier source has the name."""

    found: Mapping[str, Discovered]
    shadowed: tuple[Discovered, ...] = ()

    def report(self) -> list[str]:
        """A line for each name that is offered more than once, with both origins."""
        return [
            f"plugin {it.name!r}: {self.found[it.name].origin} is used, {it.origin} is not"
            for it in self.shadowed
        ]

    def resolve(self, target: str) -> Mountable:
        """The plugin that a row names, by discovered name or by import path.

        Raises:
            ConfigError: it is not known, cannot be imported, or is no plugin.
        """
        if ":" not in target:
            if target not in self.found:
                raise ConfigError(
                    f"no plugin is called {target!r}{did_you_mean(target, self.found)}; "
                    "install it, or write import.path:name"
                )
            target = self.found[target].target
        return import_plugin(target)


def discover(sources: Iterable[Source]) -> Catalogue:
    """What `sources` offer; of several with one name the earliest source has precedence."""
    found: dict[str, Discovered] = {}
    shadowed: list[Discovered] = []
    for source in sources:
        for name, target in source.targets.items():
            offer = Discovered(name, target, source.label)
            if found.setdefault(name, offer) is not offer:
                shadowed.append(offer)
    return Catalogue(found, tuple(shadowed))


def installed() -> list[Source]:
    """One source for each installed distribution that offers plugins, in order of name. Imports nothing."""
    offers: dict[str, dict[str, str]] = {}
    for entry in metadata.entry_points(group=GROUP):
        label = (
            f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown distribution"
        )
        offers.setdefault(label, {})[entry.name] = entry.value
    return [Source(label, offers[label]) for label in sorted(offers)]


def import_plugin(target: str) -> Mountable:
    """The plugin at `import.path:name`.

    Raises:
        ConfigError: the path cannot be imported, has no such name, or the name is no plugin.
    """
    path, _, name = target.partition(":")
    if not path or not name:
        raise ConfigError(f"{target!r} names no plugin; write import.path:name")
    try:
        module = importlib.import_module(path)
    except BaseException as error:
        contained(error)
        raise ConfigError(f"cannot import {path}: {type(error).__name__}: {error}; check the path") from error
    found = getattr(module, name, None)
    if found is None:
        known = [it for it in vars(module) if not it.startswith("_")]
        raise ConfigError(f"{path} has no {name!r}{did_you_mean(name, known)}")
    if not callable(getattr(found, "bind", None)) or not hasattr(found, "needs"):
        raise ConfigError(f"{target} is a {type(found).__name__}, not a Plugin")
    return cast("Mountable", found)


def check_requirement(requirement: str) -> None:
    """Compare what is wanted, such as `leadline>=0.1,<0.3`, with what is installed.

    Raises:
        ConfigError: not installed, or another version; names the wanted and the present one.
    """
    name, wanted = (
        part.strip() for part in cast("re.Match[str]", re.match(r"([\w.-]*)(.*)", requirement)).groups()
    )
    try:
        present = metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise ConfigError(
            f"requires {requirement}, but {name or 'that'} is not installed; install it"
        ) from None
    for clause in filter(None, (part.strip() for part in wanted.split(","))):
        found = re.fullmatch(r"(==|!=|>=|<=|>|<)\s*([\w.+-]+)", clause)
        if found is None:
            raise ConfigError(f"cannot read the requirement {requirement!r}; write NAME>=VERSION,<VERSION")
        if not _holds(_version(present), found[1], _version(found[2])):
            raise ConfigError(
                f"requires {requirement}, present is {name} {present}; install a version that fits, or disable it"
            )


def _holds(present: tuple[object, ...], operator: str, wanted: tuple[object, ...]) -> bool:
    before = cast("tuple[int, ...]", present) < cast("tuple[int, ...]", wanted)
    equal = present == wanted
    return {
        "==": equal,
        "!=": not equal,
        ">=": not before,
        "<=": before or equal,
        ">": not before and not equal,
        "<": before,
    }[operator]


def _version(text: str) -> tuple[object, ...]:
    """A key that sorts releases by number, and what comes before a release before it."""
    found = re.match(r"v?(\d+(?:\.\d+)*)(.*)", text)
    if found is None:
        raise ConfigError(f"{text!r} is no version; write numbers with dots")
    numbers = [int(part) for part in found[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    early = re.match(r"[._-]?(a|b|rc|dev|alpha|beta)", found[2])
    return (tuple(numbers), 0 if early else 1, found[2] if early else "")
