"""A disk that refuses: no space, errors, no permission, short writes, at any attempt that a work makes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from leadline.kernel.errors import LeadlineError
from leadline.testing.faults.images import Crash, Image, images
from leadline.testing.faults.survival import Failure, Survival, taken_up
from leadline.testing.faults.tap import Attempt, Kind, Tap
from leadline.testing.faults.work import Work

CODES: dict[Kind, tuple[int, ...]] = {
    "open": (errno.EACCES,),
    "make": (errno.ENOSPC, errno.EACCES),
    "folder": (errno.ENOSPC, errno.EACCES),
    "write": (errno.ENOSPC, errno.EIO),
    "cut": (errno.EIO,),
    "sync": (errno.EIO, errno.ENOSPC),
    "sync_folder": (errno.EIO,),
    "link": (errno.ENOSPC, errno.EACCES),
    "rename": (errno.ENOSPC, errno.EACCES),
    "remove": (errno.EACCES, errno.EIO),
}
"""The errors that each kind of attempt can meet."""


@dataclass(frozen=True)
class Refusal:
    """One fault of a disk: it meets the first attempt of its kind from number `at` (from 0) on."""

    at: int
    kind: Kind
    code: int
    """`errno.ENOSPC`, ..."""
    short: bool = False
    """A write of which half finds room; what is left of it then fails."""
    lasting: bool = False
    """Every later attempt that could meet the same error fails too."""

    def __str__(self) -> str:
        how = "half of it, then " if self.short else ""
        rest = ", and so from then on" if self.lasting else ""
        return f"{how}{errno.errorcode[self.code]} at attempt {self.at} ({self.kind}){rest}"


class RefusingDisk:
    """The obstacle of a `Tap` that one refusal makes."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self._seen = -1
        self._rest = False
        self.met = 0
        """How often it has refused."""

    def __call__(self, attempt: Attempt) -> int | None:
        """As `Obstacle`."""
        refusal = self._refusal
        self._seen += 1
        if not self.met:
            if self._seen < refusal.at or attempt.kind != refusal.kind:
                return None
            self.met = 1
            if refusal.short and attempt.size > 1:
                self._rest = True
                return attempt.size // 2
        elif self._rest and attempt.kind == "write":
            self._rest = False
        elif not (refusal.lasting and refusal.code in CODES[attempt.kind]):
            return None
        else:
            self.met += 1
        raise OSError(refusal.code, os.strerror(refusal.code), attempt.path)


class Watching:
    """An obstacle that lets everything pass and remembers it."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def __call__(self, attempt: Attempt) -> int | None:
        """As `Obstacle`."""
        self.attempts.append(attempt)
        return None


async def refusals(work: Work, folder: Path) -> tuple[list[Refusal], object]:
    """Every fault that a disk can have while the work is done, and what the work comes to without any.

    The work is done once, in `folder` and in this process. Each attempt is refused once, with each error that it
    can meet; a lack of space also from there on; each write also in its middle.
    """
    watching = Watching()
    await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
    with Tap(folder, watching) as tap:
        outcome = await work.start(folder, tap.note)
    found: list[Refusal] = []
    for at, attempt in enumerate(watching.attempts):
        found += [Refusal(at, attempt.kind, code) for code in CODES[attempt.kind]]
        if errno.ENOSPC in CODES[attempt.kind]:
            found.append(Refusal(at, attempt.kind, errno.ENOSPC, lasting=True))
        if attempt.kind == "write" and attempt.size > 1:
            found.append(Refusal(at, "write", errno.ENOSPC, short=True))
    return found, outcome


async def endure(
    work: Work, scratch: Path, refusals: Sequence[Refusal], outcome: object, *, timeout_s: float = 60.0
) -> Survival:
    """Do the work on a disk that refuses, once for each of `refusals`, and take it up when the disk is well again.

    The work may come to its end all the same, or tell a `LeadlineError`; what it leaves has to be of a kind that
    it can be taken up from, to the same end. A work that is told of a refusal leaves nothing open.
    """
    found = Survival()
    for refusal in refusals:
        folder = scratch / f"refusal-{found.tried}"
        folder.mkdir(parents=True)
        found.tried += 1
        disk = RefusingDisk(refusal)
        reason: str | None = None
        with Tap(folder, disk) as tap:
            try:
                with anyio.fail_after(timeout_s):
                    await work.start(folder, tap.note)
            except LeadlineError:
                pass  # told, as it should be
            except Exception as error:  # noqa: BLE001 - whatever else it raises is what is looked for
                reason = f"it raised {type(error).__name__}: {error}"
        image = _left(tap, str(refusal))
        if reason is None:
            reason = await taken_up(work, image, folder, outcome, timeout_s)
        if reason is None:
            shutil.rmtree(folder)
        else:
            found.failures.append(Failure(image, f"{reason} (left in {folder})"))
    return found


def _left(tap: Tap, label: str) -> Image:
    (image,) = images(tap.journal, [Crash(len(tap.journal.ops))])
    return Image(image.crash, label, image.contents, image.notes)
