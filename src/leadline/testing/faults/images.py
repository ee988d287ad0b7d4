"""Crash images: the folder as it stands on the disk after the process died, or the power was cut, at some operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from leadline.testing.faults.disk import Contents, Disk, Loss
from leadline.testing.faults.journal import Journal, Noted, Wrote, told

T = TypeVar("T")

LOSSES: tuple[Loss, ...] = ("dropped", "torn", "scattered")


@dataclass(frozen=True, order=True)
class Crash:
    """A moment and a kind of crash."""

    at: int
    """How many operations had happened."""
    part: int = 0
    """Bytes that came through of the write that comes next."""
    loss: Loss | None = None
    """What a power cut did to unsynced bytes; None: the process died, the machine did not."""
    seed: int = 0
    """Chooses what is left where `loss` leaves a choice."""


@dataclass(frozen=True)
class Image:
    """What a crash leaves."""

    crash: Crash
    label: str
    """Where the crash was, in words."""
    contents: Contents
    notes: tuple[Noted, ...]
    """What the work had said before."""

    @property
    def power_cut(self) -> bool:
        """Whether what was not synced may be lost."""
        return self.crash.loss is not None

    def noted(self, name: str) -> list[object]:
        """The values of the notes of one name, in order."""
        return [note.value for note in self.notes if note.name == name]

    def write(self, folder: Path) -> None:
        """Make the files in `folder`."""
        self.contents.write(folder)


def crashes(
    journal: Journal, *, kills: bool = True, losses: Sequence[Loss] = LOSSES, seed: int = 0
) -> list[Crash]:
    """Every crash that a journal has.

    A kill behind every operation and in the middle of every write, and a power cut of each of `losses`
    behind every operation, so before and after every sync.
    """
    found: list[Crash] = []
    for at in range(len(journal.ops) + 1):
        op = journal.ops[at] if at < len(journal.ops) else None
        if isinstance(op, Noted):
            continue  # the files stay as they are, and what is said is to hold
        if kills:
            found.append(Crash(at))
            if isinstance(op, Wrote) and len(op.data) > 1:
                found.append(Crash(at, part=1 + (seed + at * 7919) % (len(op.data) - 1)))
        found += [Crash(at, loss=loss, seed=seed * 1_000_003 + at) for loss in losses]
    return found


def spread(faults: Sequence[T], count: int) -> list[T]:
    """`count` of them, the first and the last included, as far apart as they can be; all where there are no more."""
    if count >= len(faults):
        return [*faults]
    if count < 2:
        return [*faults[-1:]][:count]
    step = (len(faults) - 1) / (count - 1)
    return [faults[round(n * step)] for n in range(count)]


def images(journal: Journal, crashes: Sequence[Crash]) -> Iterator[Image]:
    """The image of each crash, in the order of their moments; the journal is played once."""
    disk, done = Disk(), 0
    for crash in sorted(crashes, key=lambda crash: crash.at):
        while done < crash.at:
            disk.apply(done, journal.ops[done])
            done += 1
        yield _image(journal, disk, crash)


def _image(journal: Journal, disk: Disk, crash: Crash) -> Image:
    place = f"operation {crash.at} of {len(journal.ops)}"
    names = disk.names()
    if crash.loss is not None:
        contents = disk.after_power_cut(crash.loss, crash.seed)
        before = _before(journal, crash.at, names)
        label = f"power cut ({crash.loss}, seed {crash.seed}) after {before} ({place})"
    elif crash.part:
        unfinished = journal.ops[crash.at]
        assert isinstance(unfinished, Wrote), f"there is no write at {place}"
        contents = disk.after_kill(unfinished, crash.part)
        label = f"kill after {crash.part} bytes of the {told(unfinished, names)} ({place})"
    else:
        contents = disk.after_kill()
        before = _before(journal, crash.at, names)
        label = f"kill after {before} ({place})"
    return Image(crash, label, contents, tuple(disk.notes))


def _before(journal: Journal, at: int, names: dict[int, str]) -> str:
    for op in reversed(journal.ops[:at]):
        if not isinstance(op, Noted):
            return told(op, names)
    return "nothing"
