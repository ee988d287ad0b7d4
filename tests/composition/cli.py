"""The command line in tests: in a process of its own, or in this one where that is enough."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received

PROGRAM = Path(sys.executable).with_name("leadline")
QUESTION = "What may a hotel night cost?"


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        """stdout as the one JSON object that it is."""
        assert self.out.endswith(b"\n")
        assert self.out.count(b"\n") == 1
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The only line on stderr that does not belong to the progress of a run."""
        (line,) = [one for one in self.err.splitlines() if one.startswith("leadline: ")]
        assert "Traceback" not in self.err
        return line


Command = Callable[..., Ended]


def program(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, **options: Any
) -> Ended:
    """Run the installed program to its end."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=60,
        check=False,
        **options,
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    """The installed program, running."""
    return subprocess.Popen(
        [PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def until(process: subprocess.Popen[str], mark: str) -> list[str]:
    """The lines on stderr up to the first one that holds `mark`."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line.rstrip())
        if mark in line:
            return lines
    raise AssertionError(f"the program ended before it said {mark!r}: {lines}")


def run_id(lines: Sequence[str]) -> str:
    """The id of the run that told these lines."""
    return next(line for line in lines if line.startswith("run ")).split()[1].rstrip(":")


@contextmanager
def provider(answers: Callable[[Received], Behaviour] | Sequence[Behaviour | str]) -> Generator[list[str]]:
    """A provider on loopback in a thread of its own; gives the options that choose it."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ProviderServer(answers)) as server,
    ):
        yield ["--model", "local/fake", "--base-url", server.base_url]
