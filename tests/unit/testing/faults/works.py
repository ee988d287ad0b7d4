"""Works that the tests record in processes of their own."""

from __future__ import annotations

from pathlib import Path

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.clock import Clock
from leadline.core.session.registry import EventTypes
from leadline.core.session.store import SessionStore
from leadline.testing.faults.images import Image
from leadline.testing.faults.store_work import StoreWork
from leadline.testing.faults.work import Note


def jsonl(folder: Path, types: EventTypes) -> SessionStore:
    return JsonlSessions(folder / "home" / "sessions", clock=Clock(), types=types)


async def close(store: SessionStore) -> None:
    assert isinstance(store, JsonlSessions)
    await store.close()


session_files = StoreWork(jsonl, close)


class Careless:
    """Writes a number of lines, and says of each that it is safe; syncs none."""

    lines = 5

    async def start(self, folder: Path, note: Note) -> object:
        return self._go_on(folder, note)

    async def resume(self, folder: Path, image: Image) -> object:
        there = (folder / "lines").read_text().splitlines() if (folder / "lines").exists() else []
        assert len(there) >= len(image.noted("safe")), "a line is gone"
        return self._go_on(folder, lambda name, value: None)

    def _go_on(self, folder: Path, note: Note) -> object:
        path = folder / "lines"
        for n in range(len(path.read_text().splitlines()) if path.exists() else 0, self.lines):
            with path.open("a") as file:
                file.write(f"line {n}\n")
            note("safe", n)
        return path.read_text()


careless = Careless()


class Broken(Careless):
    """Does not even come to its end undisturbed."""

    async def start(self, folder: Path, note: Note) -> object:
        raise RuntimeError("it is broken")


broken = Broken()
no_work = 7
