"""Does a work from the start and writes its journal: ``python -m leadline.testing.faults WORK FOLDER JOURNAL``."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

import anyio

from leadline.testing.faults.journal import Journal
from leadline.testing.faults.tap import Tap
from leadline.testing.faults.work import find_work


async def recorded(work: str, folder: Path) -> Journal:
    """Do the work in this process, listened to."""
    found = find_work(work)
    with ExitStack() as taps:
        tap = taps.enter_context(Tap(folder))
        tap.journal.outcome = await found.start(folder, tap.note)
    return tap.journal


def main() -> None:
    """Read the arguments, do the work, write the journal."""
    parser = argparse.ArgumentParser(prog="python -m leadline.testing.faults")
    parser.add_argument("work", help="package.module:attribute or file.py:attribute")
    parser.add_argument("folder", type=Path, help="where the work keeps its files")
    parser.add_argument("journal", type=Path, help="file that receives the journal")
    args = parser.parse_args()
    journal = anyio.run(recorded, args.work, args.folder)
    journal.save(args.journal)


if __name__ == "__main__":
    main()
