"""Puts a work through crashes: each image is taken up anew, and must come to what the undisturbed work came to."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pprint import pformat

import anyio

from leadline.testing.faults.images import Crash, Image, images
from leadline.testing.faults.journal import Journal
from leadline.testing.faults.work import Work


@dataclass(frozen=True)
class Failure:
    """A crash that the work did not survive."""

    image: Image
    reason: str

    def __str__(self) -> str:
        return f"{self.image.label}: {self.reason}"


@dataclass(repr=False)
class Survival:
    """What became of a work after each of its crashes."""

    tried: int = 0
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def ok(self) -> bool:
        """Whether it survived all of them, and there were any."""
        return self.tried > 0 and not self.failures

    def __str__(self) -> str:
        told = "\n".join(f"- {failure}" for failure in self.failures[:20])
        more = f"\n- and {len(self.failures) - 20} more" if len(self.failures) > 20 else ""
        return f"survived {self.tried - len(self.failures)} of {self.tried} crashes" + (
            f"; not these:\n{told}{more}" if told else ""
        )

    __repr__ = __str__


async def survive(
    work: Work, journal: Journal, scratch: Path, crashes: Sequence[Crash], *, timeout_s: float = 60.0
) -> Survival:
    """Take up the work after each crash and compare what it came to.

    Each image is made in a folder of its own under `scratch`; it stays there where the work did not survive, and
    is removed where it did. A work that does not end within `timeout_s` has not survived.
    """
    found = Survival()
    for image in images(journal, crashes):
        folder = scratch / f"crash-{found.tried}"
        found.tried += 1
        image.write(folder)
        reason = await taken_up(work, image, folder, journal.outcome, timeout_s)
        if reason is None:
            shutil.rmtree(folder)
        else:
            found.failures.append(Failure(image, f"{reason} (left in {folder})"))
    return found


async def taken_up(work: Work, image: Image, folder: Path, outcome: object, timeout_s: float) -> str | None:
    """Why the work, taken up from what is in `folder`, does not come to `outcome`; None where it does."""
    try:
        with anyio.fail_after(timeout_s):
            came_to = await work.resume(folder, image)
    except Exception as error:  # noqa: BLE001 - whatever it raises, it has not survived; the others are tried
        return f"{type(error).__name__}: {error}"
    return None if came_to == outcome else f"it came to something else:\n{_difference(outcome, came_to)}"


def _difference(wanted: object, found: object) -> str:
    """The lines that differ, as a unified diff; `-` is what was wanted."""
    before, after = (pformat(one, width=110).splitlines() for one in (wanted, found))
    lines = [*difflib.unified_diff(before, after, "undisturbed", "after the crash", lineterm="", n=1)]
    return "\n".join(f"    {line}" for line in lines[:40])
