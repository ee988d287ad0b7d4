"""Logs of every format that was ever released: what they say must stay readable, whatever changes.

`v1/*.jsonl` were written by real runs and agents of the first release, and `v1/expected.json` holds what that
release itself read in them. They are never edited. A release that changes the format of logs, or the version of an
event, adds a folder of its own logs beside `v1`; what it cannot read in older ones any more goes through
`Event.upcast`.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import cast

import msgspec
import pytest

from leadline.capabilities.persistence.providers.jsonl import JsonlSessions
from leadline.core.session.codec import recompose
from leadline.core.session.derive import derive
from leadline.core.session.events import CORE_EVENTS
from leadline.core.session.load import load
from leadline.core.session.registry import EventTypes
from leadline.research.events import RESEARCH_EVENTS
from leadline.testing.clock import ManualClock
from leadline.testing.conformance.session_store import Noted, raw_of
from tests.composition.cli import Command

HERE = Path(__file__).parent
LOGS = sorted(HERE.glob("v*/*.jsonl"))
RUN = "s-7c614deb090a35e7"

golden = pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")


class Expected(msgspec.Struct, forbid_unknown_fields=True):
    """What the release that wrote a log read in it."""

    id: str
    kind: str
    status: str
    events: int
    digest: str
    problems: int
    messages: int
    messages_sha256: str


def expected(path: Path) -> Expected:
    known = msgspec.json.decode((path.parent / "expected.json").read_bytes(), type=dict[str, Expected])
    return known[path.stem]


def types() -> EventTypes:
    return EventTypes(RESEARCH_EVENTS)


def stored(root: Path, *paths: Path) -> JsonlSessions:
    for path in paths:
        shutil.copy(path, root / f"{expected(path).id}.jsonl")
    return JsonlSessions(root, clock=ManualClock(), types=types())


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


def in_plain_words(message: object) -> object:
    return cast("object", json.loads(msgspec.json.encode(message)))


def test_every_release_has_its_logs() -> None:
    assert {path.parent.name for path in LOGS} == {"v1"}
    for folder in HERE.glob("v*"):
        known = cast("dict[str, object]", json.loads((folder / "expected.json").read_bytes()))
        assert set(known) == {path.stem for path in folder.glob("*.jsonl")}


@golden
def test_a_golden_log_says_what_it_said_when_it_was_written(path: Path) -> None:
    content = path.read_bytes()
    found, said = load(io.BytesIO(content)), expected(path)
    assert found.problems == [] and found.header is not None and found.header_sound
    assert (found.header.id, found.header.kind, len(found.logged)) == (said.id, said.kind, said.events)
    assert found.digest == said.digest and found.end == len(content)
    messages = [in_plain_words(message) for message in derive(found.logged)]
    text = json.dumps(messages, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert len(messages) == said.messages
    assert hashlib.sha256(text.encode()).hexdigest() == said.messages_sha256, (
        "the model would read another history"
    )


@golden
def test_every_event_of_a_golden_log_is_understood(path: Path) -> None:
    for line in load(io.BytesIO(path.read_bytes())).logged:
        assert types().obstacle(line) is None
        event = types().decode(line)
        assert event is not None, f"event {line.seq} ({line.type}, version {line.v}) cannot be read any more"


@golden
def test_a_golden_log_is_written_again_byte_for_byte(path: Path) -> None:
    content = path.read_bytes()
    found = load(io.BytesIO(content))
    lines = [recompose(line, line.seq, line.prev)[0] for line in found.logged]
    assert b"".join([content.splitlines(keepends=True)[0], *lines]) == content


@golden
@pytest.mark.anyio
async def test_a_golden_session_is_listed_archived_opened_and_goes_on(path: Path, tmp_path: Path) -> None:
    store, said, content = stored(tmp_path, path), expected(path), bytes_of(path)
    entry = await store.entry(said.id)
    assert (entry.status, entry.kind) == (said.status, said.kind)
    assert len((await store.read(said.id)).problems) == said.problems
    await store.archive(said.id)
    assert await raw_of(lambda _: store, said.id) == content
    session = await store.open(said.id)
    assert session.append(Noted(text="on")).seq == len(session) - 1 >= said.events
    await session.close()
    assert bytes_of(tmp_path / f"{said.id}.jsonl").startswith(content)


def test_the_golden_logs_hold_every_event_that_the_first_release_wrote() -> None:
    written = {line.type for path in LOGS for line in load(io.BytesIO(path.read_bytes())).logged}
    assert len(written) == 28
    assert written <= {kind.TYPE for kind in (*CORE_EVENTS, *RESEARCH_EVENTS)}


def test_the_program_audits_and_shows_a_run_of_the_first_release(
    command: Command, home: Path, tmp_path: Path
) -> None:
    sessions = home / "sessions"
    sessions.mkdir(parents=True)
    stored(
        sessions, *(HERE / "v1" / f"{name}.jsonl" for name in ("run", "run-plan", "run-unit", "run-write"))
    )
    audited = command("audit", RUN, "--json")
    assert audited.code == 0 and audited.json["ok"], audited.err
    assert len(audited.json["sessions"]) == 4
    shown = command("show", RUN)
    assert shown.code == 0 and "How long may a visitor borrow the telescope?" in shown.out.decode()
