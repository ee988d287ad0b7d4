"""Whole runs as works, with either store and with a clock that jumps."""

from __future__ import annotations

from pathlib import Path

from leadline.testing.faults.research_work import ResearchWork

HERE = Path(__file__).parent

files = ResearchWork()
database = ResearchWork(patches=[HERE / "sqlite_store.yml"])
jumping = ResearchWork(patches=[HERE / "jumping_clock.yml"])
