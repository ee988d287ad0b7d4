"""Measure every bar, print a table, write `bench/results.json`: `python -m bench [SUITE ...]`."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypedDict


class Row(TypedDict):
    """One measured figure of a bar."""

    bar: str
    value: float
    unit: str
    floor: float | None
    """What the same work costs without Leadline, measured in the same run; None where there is none."""
    ratio: float | None
    """value / floor."""


SUITES = (
    "agent_loop",
    "many_agents",
    "agents",
    "stream",
    "prefix",
    "prefix",
    "research_path",
    "startup",
    "session_append",
    "session_index",
    "session_load",
    "session_sync",
    "session_stores",
    "corpus",
    "research_cold",
    "resume",
    "limiter",
)
LONG = ("faults",)
"""Suites that take many minutes and prove more than they measure: only by name."""
RESULTS = Path(__file__).parent / "results.json"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in SUITES + LONG]
    if unknown:
        print(f"no such suite: {', '.join(unknown)}; there are {', '.join(SUITES + LONG)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or SUITES:
        measure: Callable[[], list[Row]] = import_module(f"bench.{name}").measure
        for row in measure():
            rows.append(row)
            print(_line(row), flush=True)
    if not names:
        found = {"machine": _machine(), "load": [round(one, 2) for one in os.getloadavg()], "rows": rows}
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"written: {RESULTS}")
    return 0


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _line(row: Row) -> str:
    beside = f"floor {row['floor']:.4g}  ratio {row['ratio']:.2f}" if row["floor"] and row["ratio"] else ""
    return f"{row['bar']:<84} {row['value']:>10.4g} {row['unit']:<6} {beside}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
