"""`leadline config show`: what is composed, and where each value was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leadline.apps.cli.exits import Exit, refusing
from leadline.apps.cli.streams import document
from leadline.apps.sdk.composition import Options, composed
from leadline.kernel.loader.compose import Described

_HIDDEN = "(not shown)"
_SECRET = ("key", "secret", "token", "password")


def run_config_show(profile: str | None, patches: tuple[Path, ...]) -> Exit:
    """Print one line a row and a value.

    Raises:
        Quit: the composition cannot be used.
    """
    with refusing():
        lines = composed(Options(profile=profile or "research", patches=patches)).describe()
    lines = [replace(line, value=_HIDDEN) if _secret(line) else line for line in lines]
    width = max((len(line.path) for line in lines), default=0)
    document("\n".join(f"{line.path:<{width}}  {line.value}  ({line.origin})" for line in lines))
    return Exit.DONE


def _secret(line: Described) -> bool:
    """Whether a value may be a secret that somebody wrote into a file. Names of variables are none."""
    *_, above, last = ("", *line.path.split("."))
    named = last.rsplit("_", 1)[-1] in _SECRET or above == "headers"
    return named and not line.value.startswith("!")
