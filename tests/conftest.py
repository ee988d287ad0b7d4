"""Rules for every test: asyncio alone, no network beyond loopback, shared data by LEADLINE_DATA."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from leadline.core.session.invariants import InvariantBroken, Invariants

_LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to anything but loopback fails the test that made it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0]) if isinstance(address, tuple) else str(address)
            if not host.startswith(_LOOPBACK):
                raise AssertionError(f"a test tried to reach {host}; tests stay on loopback")
        connect(self, address)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def broken_invariants(monkeypatch: pytest.MonkeyPatch) -> list[InvariantBroken]:
    """What was broken. A test that breaks an invariant on purpose takes out of the list what it expects."""
    monkeypatch.setenv("LEADLINE_INVARIANTS", "true")
    broken: list[InvariantBroken] = []
    tell = Invariants.broken

    def noted(self: Invariants, name: str, where: str, reason: str) -> InvariantBroken | None:
        broken.append(InvariantBroken(name, where, reason))
        return tell(self, name, where, reason)

    monkeypatch.setattr(Invariants, "broken", noted)
    return broken


@pytest.fixture(autouse=True)
def invariants_hold(broken_invariants: list[InvariantBroken]) -> Generator[None]:
    """Every invariant is on in every test, processes that it starts included; one that is broken fails the test."""
    yield
    assert not broken_invariants, "\n".join(map(str, broken_invariants))


@pytest.fixture
def shared_data() -> Path:
    """The folder of public test documents; the test is left out where there is none."""
    folder = os.environ.get("LEADLINE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LEADLINE_DATA is not set: left out")
    return Path(folder)
