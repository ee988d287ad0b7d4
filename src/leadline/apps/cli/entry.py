"""The `leadline` program: answers `--version` at once, loads the commands for everything else."""

from __future__ import annotations

import sys

from leadline.version import __version__


def main() -> None:
    """Run the command line; the process ends with the exit code of the command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"leadline {__version__}\n")
        return
    try:
        from leadline.apps.cli.main import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run(sys.argv[1:])
