"""Records a work in a process of its own, by way of ``python -m leadline.testing.faults``.

The process is dead when its journal is looked at, so that a lease which names it is the lease of a dead one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from leadline.kernel.errors import LeadlineError
from leadline.testing.faults.images import Crash, images
from leadline.testing.faults.journal import Journal


class RecordingFailed(LeadlineError):
    """The work did not come to its end even without a fault."""


def record(
    work: str, folder: Path, *, env: Mapping[str, str] | None = None, timeout_s: float = 300.0
) -> Journal:
    """Do a work from the start in another process; everything that it did to the files in `folder`.

    `work` is a name as `find_work` takes it; relative names are found from the current directory. `folder`
    is made where it is missing, and its journal is written beside it.

    Raises:
        RecordingFailed: the work raised, or did not end in time; with its error. Or it wrote files in a way that
            is not heard.
    """
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder.with_name(folder.name + ".journal")
    command = [sys.executable, "-m", "leadline.testing.faults", work, str(folder), str(journal)]
    path = os.pathsep.join([str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RecordingFailed(f"work {work} did not end within {timeout_s:.0f} s") from error
    if done.returncode:
        raise RecordingFailed(f"work {work} failed without any fault:\n{done.stderr.strip()}")
    found = Journal.load(journal)
    _check_whole(found, folder)
    return found


def _check_whole(journal: Journal, folder: Path) -> None:
    """Refuse a journal that lacks something: what was written behind its back would look like a loss."""
    (end,) = images(journal, [Crash(len(journal.ops))])
    there = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.endswith("-shm")
    }
    heard = {path: content for path, content in end.contents.files.items() if not path.endswith("-shm")}
    if there != heard:
        differ = sorted(path for path in there | heard if there.get(path) != heard.get(path))
        raise RecordingFailed(
            f"these files were written in a way that cannot be heard: {', '.join(differ[:5])}; "
            "write them through os or open, or with a SQLite that is a shared library"
        )
