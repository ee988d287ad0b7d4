"""What was spilled belongs to its session: it is kept, moved and removed with it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from leadline import Leadline
from leadline.apps.sdk.app import take_turn
from leadline.capabilities.persistence.providers.blob_files import FileBlobs
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import BlobWriteFailed
from leadline.core.session.events import Spilled, ToolAnswered
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import Received
from tests.composition.cli import Command, provider

LONG = "".join(f"Line {at}: 水 {at * 7} litres.\n" for at in range(5_000))


def answering(request: Received) -> Behaviour:
    if request.messages[-1]["role"] == "tool":
        return Behaviour("success", message="It is long.")
    return Behaviour("tool_call_success", calls=(CallSpec("long", {}),))


async def spilled() -> tuple[str, Spilled | None, str]:
    """The session of an agent with a result that was too long, where the whole of it is, and what its model read."""
    app = Leadline()

    @app.tool(side_effects={"reads"})
    async def long() -> str:  # pyright: ignore[reportUnusedFunction]
        """Read what is long."""
        return LONG

    async with app, app.open_agent() as agent:
        await take_turn(agent, "Read it.")
        answered = agent.session.last(ToolAnswered)
        assert answered is not None
        return agent.id, answered.spilled, answered.message.content


@pytest.fixture
def session(command: Command) -> tuple[str, Spilled]:
    with provider(answering) as (_, _, _, url):
        ended = command(
            "models", "add", "fake/tiny", "--base-url", url, "--context-window", "8000", "--default"
        )
        assert ended.code == 0, ended
        session_id, where, _ = anyio.run(spilled)
    assert where is not None
    return session_id, where


def stored(where: Spilled) -> bool:
    async def look() -> bool:
        async with Leadline(profile="base") as app:
            return where.blob in {one.sha256 for one in app.ctx.get(Blobs).entries()}

    return anyio.run(look)


def test_a_collection_leaves_what_a_log_has_spilled_and_takes_it_when_the_log_is_gone(
    command: Command, session: tuple[str, Spilled]
) -> None:
    session_id, where = session
    assert command("sessions", "gc", "--grace", "0s", "--yes").code == 0
    assert stored(where)
    assert command("sessions", "archive", session_id).code == 0
    assert command("sessions", "gc", "--grace", "0s", "--yes").code == 0
    assert stored(where)
    assert command("sessions", "delete", session_id, "--yes").code == 0
    assert command("sessions", "gc", "--grace", "0s", "--yes").code == 0
    assert not stored(where)


def test_an_export_takes_it_along(
    command: Command, session: tuple[str, Spilled], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id, where = session
    assert command("sessions", "export", session_id, tmp_path / "one.leadline-session").code == 0
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "other"))
    assert not stored(where)
    assert command("sessions", "import", tmp_path / "one.leadline-session").code == 0
    assert stored(where)
    assert command("context", session_id, "--json").json["recallable"]


def test_a_disk_that_takes_no_blob_loses_nothing_unsaid(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, data: bytes, *, synced: bool = False) -> str:
        raise BlobWriteFailed("no space left on device")

    monkeypatch.setattr(FileBlobs, "put", refuse)
    with provider(answering) as (_, _, _, url):
        command("models", "add", "fake/tiny", "--base-url", url, "--context-window", "8000", "--default")
        _, where, content = anyio.run(spilled)
    assert where is None
    assert "they are not stored: ask for less at a time" in content
