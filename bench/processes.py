"""Programs in processes of their own, as a user has them: byte code compiled once and found again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("leadline")


def environment(folder: Path) -> dict[str, str]:
    """The environment with a home in `folder` and byte code kept there: the first run compiles."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **inherited,
        "LEADLINE_HOME": str(folder / "home"),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }
