"""Rules for every test: asyncio alone, no network beyond loopback, shared data by LEADLINE_DATA."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

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
def shared_data() -> Path:
    """The folder of public test documents; the test is left out where there is none."""
    folder = os.environ.get("LEADLINE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LEADLINE_DATA is not set: left out")
    return Path(folder)
