"""The `leadline` program: answers `--version` at once, loads the commands for everything else."""

from __future__ import annotations

import gc
import signal
import sys

from leadline.version import __version__

_COLLECT_AFTER = 20_000


def collect_seldom() -> None:
    """Let Python look for garbage seldom: starting, and agents at work, make many objects and drop few in cycles."""
    gc.set_threshold(_COLLECT_AFTER, 20, 50)


def main() -> None:
    """Run the command line; the process ends with the exit code of the command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"leadline {__version__}\n")
        return
    collect_seldom()
    try:
        # Until a command says what else it does with it, SIGTERM is what SIGINT is.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from leadline.apps.cli.main import run

        run(sys.argv[1:])
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        # All that is left goes with the process: looking through it for garbage once more would take a
        # fifth of the time of a short command.
        gc.freeze()
