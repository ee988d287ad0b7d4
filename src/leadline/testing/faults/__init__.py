"""Crashes, power cuts, refusing disks, jumping clocks and second writers, for whatever has to survive them."""

from __future__ import annotations

from leadline.testing.faults.images import Crash, Image, crashes, images, spread
from leadline.testing.faults.journal import Journal
from leadline.testing.faults.recorder import RecordingFailed, record
from leadline.testing.faults.survival import Survival, survive
from leadline.testing.faults.work import Note, Work, find_work

__all__ = [
    "Crash",
    "Image",
    "Journal",
    "Note",
    "RecordingFailed",
    "Survival",
    "Work",
    "crashes",
    "find_work",
    "images",
    "record",
    "spread",
    "survive",
]
