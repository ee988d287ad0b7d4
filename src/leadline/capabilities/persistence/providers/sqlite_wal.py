"""What stands in a write-ahead log, so that damage in it is noticed.

The engine takes a write-ahead log up to the first frame that is not sound, and writes over the rest as if it
had never been. Where commits stand behind that frame, it was damage: each of them was begun after the one
before had succeeded. The last commit alone proves nothing; a process may have died while it wrote it.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

_HEAD = struct.Struct(">8I")
_FRAME = struct.Struct(">4I")
_FRAME_BYTES = 24
_MAGIC = (0x377F0682, 0x377F0683)


def commits(path: Path) -> list[int]:
    """The numbers of the frames, from 1, that end a transaction in the log `path`; empty where there is no log."""
    found: list[int] = []
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return []
            magic, _, page, _, *salts, _, _ = _HEAD.unpack(head)
            if magic not in _MAGIC or not 512 <= page <= 65536:
                return []
            whole = (path.stat().st_size - _HEAD.size) // (_FRAME_BYTES + page)
            for number in range(1, whole + 1):
                file.seek(_HEAD.size + (number - 1) * (_FRAME_BYTES + page))
                _, pages, *own = _FRAME.unpack(file.read(_FRAME.size))
                if own == salts and pages:
                    found.append(number)
    except (OSError, struct.error):
        return []
    return found


def keep_copy(log: Path, database: Path) -> str:
    """Copy a damaged log beside the database, under a name of its own, which is given."""
    number = 1
    while (kept := database.with_name(f"{database.name}.damaged-{number}")).exists():
        number += 1
    shutil.copyfile(log, kept)
    kept.chmod(0o600)
    return kept.name
