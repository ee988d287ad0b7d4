"""What the tests of the laws share: the fixtures of whole compositions, and logs to look at and to forge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leadline import Leadline
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.counting import ServerPrice
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import FakeResearcher, corpus, home, researcher

__all__ = ["corpus", "home", "researcher"]

QUESTION = "What may a hotel night cost?"

Edit = Callable[[dict[str, Any]], None]


@asynccontextmanager
async def running(
    answers: FakeResearcher | Callable[[Received], Behaviour],
    *patches: Path,
    strict: bool = True,
    prices: ServerPrice | None = None,
) -> AsyncGenerator[tuple[Leadline, ProviderServer]]:
    """The shipped research profile with a provider on loopback that gives `answers`."""
    async with (
        ProviderServer(answers, strict=strict, prices=prices) as server,
        Leadline(model="local/fake", base_url=server.base_url, patches=patches) as app,
    ):
        yield app, server


def logs(home: Path) -> dict[str, Path]:
    """The session logs under a home, by id."""
    return {path.stem: path for path in sorted((home / "sessions").glob("*.jsonl"))}


def events(path: Path) -> list[dict[str, Any]]:
    """The events of a log as JSON, without its header."""
    return [json.loads(line) for line in path.read_bytes().splitlines()[1:]]


def written(home: Path) -> dict[str, int]:
    """Every file under a home and its size."""
    return {
        str(path.relative_to(home)): path.stat().st_size for path in sorted(home.rglob("*")) if path.is_file()
    }


def forge(path: Path, seq: int, edit: Edit) -> None:
    """Change one event and chain the log anew, as somebody would who wants it not to be seen."""
    header, *lines = path.read_bytes().splitlines()
    prev = hashlib.sha256(header).hexdigest()[:32]
    forged = [header]
    for line in lines:
        event = json.loads(line)
        if event["seq"] == seq:
            edit(event["data"])
        event["prev"] = prev
        forged.append(json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode())
        prev = hashlib.sha256(forged[-1]).hexdigest()[:32]
    path.write_bytes(b"\n".join(forged) + b"\n")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ended]


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Runs a `leadline` command in this process."""

    from leadline.apps.cli.main import run

    def call(*arguments: str | Path) -> Ended:
        capfdbinary.readouterr()
        code = 0
        try:
            run([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capfdbinary.readouterr()
        return Ended(code, out.decode(), err.decode())

    return call
