"""`leadline config show`: what is composed, and where each value was written."""

from __future__ import annotations

from pathlib import Path

from leadline.apps.cli.exits import Exit, refusing
from leadline.apps.cli.streams import document
from leadline.apps.sdk.composition import Options, composed


def run_config_show(profile: str | None, patches: tuple[Path, ...]) -> Exit:
    """Print one line a row and a value.

    Raises:
        Quit: the composition cannot be used.
    """
    with refusing():
        lines = composed(Options(profile=profile or "research", patches=patches)).describe()
    width = max((len(line.path) for line in lines), default=0)
    document("\n".join(f"{line.path:<{width}}  {line.value}  ({line.origin})" for line in lines))
    return Exit.DONE
