"""A bundle is the same bytes everywhere, and no change to it goes unseen."""

from __future__ import annotations

import hashlib
import json
import os
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.core.session.codec import Header
from leadline.research.bundle.archive import BundleTooLarge, NotABundle, is_safe_name, pack
from leadline.research.bundle.ledger_lines import bundled
from leadline.research.bundle.manifest import MANIFEST, Manifest, root_of, table_of
from leadline.research.bundle.verify import Verification, verify_bundle
from leadline.research.bundle.write import bundle_members, write_bundle
from leadline.research.engine.interrupted import Placed
from leadline.research.events import Leaf, QuoteRecorded, VerdictGiven
from leadline.research.report.build import ResultNotEnded
from leadline.research.report.evidence_list import evidence_list
from leadline.testing.sessions import MemorySessions

Maker = Callable[..., Any]


@pytest.fixture
def bundle(pump: Any, tmp_path: Path) -> Path:
    path = tmp_path / "run.leadline"
    write_bundle(path, pump.lines, pump.texts, tool_version="0.1.0")
    return path


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _repacked(path: Path, members: dict[str, bytes], **manifest: Any) -> Path:
    """Write members with a manifest that fits them: a forger who knows the format."""
    table = table_of(members)
    old = msgspec.json.decode(members[MANIFEST], type=Manifest)
    new = msgspec.structs.replace(old, **{"members": table, "root": root_of(table), **manifest})
    path.write_bytes(b"".join(pack({**members, MANIFEST: new.to_json()})))
    return path


def _forged(pump: Any, path: Path) -> Verification:
    """A bundle made by the writer itself from changed events: everything rendered fits."""
    write_bundle(path, pump.lines, pump.texts, tool_version="0.1.0")
    return verify_bundle(path)


def test_a_bundle_that_was_written_holds(bundle: Path) -> None:
    found = verify_bundle(bundle)
    assert found.ok, found.problems
    assert found.digest == hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert found.status == "completed" and found.run == "r-1"
    assert (
        found.counts["sentences"] == 4
        and found.counts["contradicted"] == 1
        and found.counts["snapshots"] == 2
    )


def test_an_expected_digest_is_compared(bundle: Path) -> None:
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    assert verify_bundle(bundle, expect=digest).ok
    assert verify_bundle(bundle, expect=f"sha256:{digest.upper()}").ok
    assert not verify_bundle(bundle, expect="0" * 64).ok


def test_writing_twice_gives_the_same_bytes(pump: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    assert write_bundle(first, pump.lines, pump.texts, tool_version="1") == write_bundle(
        second, list(pump.lines), dict(reversed(pump.texts.items())), tool_version="1"
    )
    assert first.read_bytes() == second.read_bytes()


def test_a_bundle_is_an_ordinary_zip_file_with_readable_members(bundle: Path, pump: Any) -> None:
    members = _members(bundle)
    assert list(members) == sorted(members)
    assert members["report.md"].decode() == pump.result().report
    assert json.loads(members["result.json"])["id"] == "r-1"
    assert members["ledger.jsonl"].split(b"\n")[:-1] == pump.lines
    with zipfile.ZipFile(bundle) as archive:
        assert archive.testzip() is None
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_flipped_byte_is_noticed(pump: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.leadline"
    write_bundle(path, pump.lines, pump.texts, tool_version="0.1.0")
    whole = path.read_bytes()
    rng = random.Random(7)
    with zipfile.ZipFile(path) as archive:
        headers = {
            i
            for info in archive.infolist()
            for i in range(info.header_offset, info.header_offset + 30 + len(info.filename))
        }
        directory = set(range(archive.start_dir, len(whole)))
    positions = headers | directory | set(rng.sample(range(len(whole)), 600))
    for position in sorted(positions):
        changed = bytearray(whole)
        changed[position] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(changed))
        assert not verify_bundle(path).ok, position


_HOSTILE = [
    "[manual](https://evil.example/x) and ![x](https://evil.example/i.png)",
    "# Heading [3]\n\nSetext\n===\n\n[ref]: https://evil.example/p\n[^1]: note",
    "| a | b \\| c |\n|---|:-:|\n| 5 kg | [1] |",
    "<script>alert(1)</script> <img src=x onerror=y> &lt;b&gt; <!-- x",
    "\u202eevil\u202c \u200bzero\u200d width\ufeff \u00ad",
    "🚀 👩‍👩‍👧 é e\u0301 \u2028 line \x0b \x0c page \x85 next",
    "مضخة [1] تصل إلى 42 متراً.",
    "泵的功率为5千瓦。[2]ポンプ。",
    "```\n# code\n```\n~~~",
    "- **Not:**\n  - x\n1. y\n> z\n\n***",
    "(u1.e9) 【12†source】 {{x}} \\cite{y} \ue200cite\ue201",
    "According to “Document 1”: An older version says: 5 kg.",
    "x" * 40_000 + " 7 % " + "y " * 20_000,
]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(_HOSTILE), min_size=1, max_size=4), st.text(max_size=30))
def test_whatever_documents_hold_their_bundle_holds(
    make_world: Any, tmp_path: Path, parts: list[str], words: str
) -> None:
    world = make_world(question=words.strip() or "What is it?")
    for part in parts:
        text = f"Before {words}.\n\n{part}\n\nAfter."
        source = world.source(text, title=part[:200], location=f"folder/{part[:60]}")
        whole = {"start": 0, "end": len(text), "text": text, "match": "exact"}
        world.quote(source, "After.", **whole)
    world.end_unit()
    world.draft(evidence_list(world.ledger))
    world.end()
    path = tmp_path / "run.leadline"
    write_bundle(path, world.lines, world.texts, tool_version="0.1.0")
    assert verify_bundle(path).problems == ()


@pytest.mark.parametrize("cut", [1, 22, 100, 3000])
def test_a_truncated_bundle_does_not_hold(bundle: Path, cut: int) -> None:
    bundle.write_bytes(bundle.read_bytes()[:-cut])
    assert not verify_bundle(bundle).ok


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b + b"x",
        lambda b: b"x" + b,
        lambda b: b[:-2] + struct.pack("<H", 3) + b"hey",
        lambda b: b + b,
    ],
)
def test_bytes_around_the_archive_are_noticed(bundle: Path, change: Callable[[bytes], bytes]) -> None:
    bundle.write_bytes(change(bundle.read_bytes()))
    assert not verify_bundle(bundle).ok


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"PK\x05\x06" + b"\0" * 18, b'{"format":"x"}'])
def test_another_file_is_not_a_bundle(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.leadline"
    path.write_bytes(content)
    with pytest.raises(NotABundle, match="not a bundle"):
        verify_bundle(path)


def test_another_zip_file_is_not_a_bundle(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(NotABundle, match="manifest"):
        verify_bundle(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are not in the file system here")
def test_what_could_be_read_without_end_is_not_a_bundle(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(NotABundle, match="no ordinary file"):
            verify_bundle(path)


def test_a_missing_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verify_bundle(tmp_path / "none")


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/passwd", "a\\b", "C:evil", "a//b", "", "a/../b", "ü", "a\nb", "x" * 300, "con|x"],
)
def test_names_that_lead_elsewhere_are_refused(bundle: Path, name: str) -> None:
    assert not is_safe_name(name)
    if not name:
        return
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr(name, "x")
    assert not verify_bundle(bundle).ok


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused(bundle: Path) -> None:
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("report.md", "another report")
    assert any("twice" in one for one in verify_bundle(bundle).problems)


def test_a_compressed_member_is_refused_before_it_is_unpacked(bundle: Path) -> None:
    with zipfile.ZipFile(bundle, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", b"\0" * 20_000_000)
    assert any("compressed" in one for one in verify_bundle(bundle).problems)


def test_a_bundle_beyond_the_limit_is_neither_written_nor_read(
    bundle: Path, pump: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.research.bundle.archive.MAX_BUNDLE_BYTES", 2000)
    with pytest.raises(BundleTooLarge):
        verify_bundle(bundle)
    target = bundle.with_name("large.leadline")
    with pytest.raises(BundleTooLarge):
        write_bundle(target, pump.lines, pump.texts, tool_version="1")
    assert [one.name for one in bundle.parent.iterdir()] == [bundle.name]


def test_a_run_that_has_not_ended_makes_no_bundle(pump: Any, tmp_path: Path) -> None:
    with pytest.raises(ResultNotEnded):
        write_bundle(tmp_path / "x", pump.lines[:-1], pump.texts, tool_version="1")
    assert list(tmp_path.iterdir()) == []


# --- a forger who rewrites the manifest --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "old", "new"),
    [
        ("report.md", b"420 km", b"520 km"),
        ("report.html", b"420 km", b"520 km"),
        ("result.json", b"420 km", b"520 km"),
        ("result.json", b'"verdict":"contradicted"', b'"verdict":"supported"'),
        ("result.json", b'"blocked":1', b'"blocked":0'),
        ("ledger.jsonl", b"420 km", b"520 km"),
        ("ledger.jsonl", b'"verdict":"contradicted"', b'"verdict":"supported"'),
        ("ledger.jsonl", b'"start":0,"end":41', b'"start":1,"end":41'),
        ("ledger.jsonl", b'"page":1', b'"page":2'),
        ("ledger.jsonl", b"test/scripted", b"test/somebody"),
    ],
)
def test_a_member_changed_with_a_fitting_manifest_is_noticed(
    bundle: Path, member: str, old: bytes, new: bytes
) -> None:
    members = _members(bundle)
    assert old in members[member]
    members[member] = members[member].replace(old, new)
    assert not verify_bundle(_repacked(bundle, members)).ok


def test_members_that_are_missing_or_too_many_are_noticed(bundle: Path) -> None:
    members = _members(bundle)
    for name in [one for one in members if one != MANIFEST]:
        assert not verify_bundle(_repacked(bundle, {k: v for k, v in members.items() if k != name})).ok, name
    assert not verify_bundle(_repacked(bundle, {**members, "extra.txt": b"x"})).ok
    sha = hashlib.sha256(b"x").hexdigest()
    assert not verify_bundle(_repacked(bundle, {**members, f"snapshots/{sha}.txt": b"x"})).ok


def test_a_snapshot_under_a_false_name_is_noticed(bundle: Path) -> None:
    members = _members(bundle)
    name = next(one for one in members if one.startswith("snapshots/") and b"420" in members[one])
    members[name] = members[name].replace(b"420", b"520")
    assert any(
        "not the text that its name says" in one for one in verify_bundle(_repacked(bundle, members)).problems
    )


def test_a_quote_changed_everywhere_but_in_the_source_is_noticed(pump: Any, tmp_path: Path) -> None:
    pump.events = [
        msgspec.structs.replace(
            one, quote=msgspec.structs.replace(one.quote, text="The VLX-500 reaches 520 km on one charge.")
        )
        if isinstance(one, QuoteRecorded) and one.quote.id == "u1.e1"
        else one
        for one in pump.events
    ]
    assert any("does not stand in its snapshot" in one for one in _forged(pump, tmp_path / "x").problems)


def test_a_number_changed_everywhere_in_the_report_is_noticed(pump: Any, tmp_path: Path) -> None:
    raw = [
        msgspec.json.encode(one).replace(
            b'reaches 420 km on one charge.","evidence', b'reaches 520 km on one charge.","evidence'
        )
        for one in pump.events
    ]
    pump.events = [
        msgspec.json.decode(data, type=type(one)) for data, one in zip(raw, pump.events, strict=True)
    ]
    problems = _forged(pump, tmp_path / "x").problems
    assert any("the checks say contradicted" in one for one in problems)


def test_a_verdict_that_the_checks_do_not_give_is_noticed(pump: Any, tmp_path: Path) -> None:
    pump.events = [
        msgspec.structs.replace(one, verdict="supported") if isinstance(one, VerdictGiven) else one
        for one in pump.events
    ]
    problems = _forged(pump, tmp_path / "x").problems
    assert sum("the checks say" in one for one in problems) == 2


def test_a_verdict_left_out_is_noticed(pump: Any, tmp_path: Path) -> None:
    pump.events = [one for one in pump.events if not (isinstance(one, VerdictGiven) and one.sentence == 2)]
    assert any("no verdict of the checks" in one for one in _forged(pump, tmp_path / "x").problems)


def test_a_report_with_a_link_in_it_cannot_have_been_published(make_world: Maker, tmp_path: Path) -> None:
    world = make_world()
    evidence = world.quote(world.source("Alpha beta gamma."), "Alpha beta gamma.")
    world.draft([Leaf(text="Alpha beta gamma, see https://evil.example/x.", evidence=(evidence,))])
    world.end_unit()
    world.end()
    assert any("published" in one for one in _forged(world, tmp_path / "x").problems)


def test_a_broken_hash_chain_is_noticed(bundle: Path) -> None:
    members = _members(bundle)
    lines = members["ledger.jsonl"].split(b"\n")
    lines[3], lines[4] = lines[4], lines[3]
    assert not verify_bundle(_repacked(bundle, {**members, "ledger.jsonl": b"\n".join(lines)})).ok


def test_a_line_that_was_taken_out_is_noticed_at_its_place(bundle: Path) -> None:
    members = _members(bundle)
    lines = members["ledger.jsonl"].split(b"\n")
    del lines[3]
    problems = verify_bundle(_repacked(bundle, {**members, "ledger.jsonl": b"\n".join(lines)})).problems
    assert "ledger line 4: it is event 4, where event 3 was expected" in problems


def test_a_bundle_of_the_first_format_is_still_verified(bundle: Path) -> None:
    found = verify_bundle(_repacked(bundle, _members(bundle), version=1))
    assert found.ok, found.problems


def test_a_line_that_stays_at_home_holds_the_chain_together(pump: Any, tmp_path: Path) -> None:
    home = MemorySessions()
    path, events = tmp_path / "run", pump.events

    async def logged() -> list[bytes]:
        session = await home.create(Header(id="s-1", kind="research", created=0.0))
        session.append_all([Placed(corpus=("/home/ann",)), *events])
        return list(bundled(session.logged))

    lines = anyio.run(logged)
    write_bundle(path, lines, pump.texts, tool_version="1")
    assert verify_bundle(path).ok
    assert b"/home/ann" not in b"".join(lines)
    write_bundle(
        path,
        [lines[0].replace(b'"omitted":"', b'"omitted":"0')[:-1], *lines[1:]],
        pump.texts,
        tool_version="1",
    )
    assert not verify_bundle(path).ok


def test_a_verdict_of_a_person_is_shown_as_recorded(pump: Any, tmp_path: Path) -> None:
    ended = pump.events.pop()
    pump.events.append(VerdictGiven(sentence=2, verdict="supported", reason="read it", by="person:ann"))
    assert ended
    pump.end()
    found = _forged(pump, tmp_path / "x")
    assert found.ok, found.problems
    assert found.recorded == ("sentence 3: supported by person:ann",)
    assert found.counts["supported"] == 3


@pytest.mark.parametrize("change", [{"version": 3}, {"checks_version": "2"}])
def test_what_a_newer_program_wrote_is_said_to_be_unchecked(bundle: Path, change: dict[str, Any]) -> None:
    problems = verify_bundle(_repacked(bundle, _members(bundle), **change)).problems
    assert any("this program" in one for one in problems)


@pytest.mark.parametrize(("version", "advice"), [(0, "an older Leadline"), (7, "a newer Leadline")])
def test_a_bundle_of_another_format_names_the_program_that_reads_it(
    bundle: Path, version: int, advice: str
) -> None:
    problems = verify_bundle(_repacked(bundle, _members(bundle), version=version)).problems
    assert any(f"format {version};" in one and advice in one for one in problems)


def test_members_nested_without_end_do_not_hold(bundle: Path) -> None:
    members = _members(bundle)
    deep = b'{"type":' * 100_000
    ledger = members["ledger.jsonl"] + b'{"type":"research/noted","data":%s}\n' % (b'{"text":' * 100_000)
    problems = verify_bundle(_repacked(bundle, {**members, "ledger.jsonl": ledger})).problems
    assert any("ledger line" in one for one in problems)
    bundle.write_bytes(b"".join(pack({**members, MANIFEST: deep})))
    assert any("cannot be read" in one for one in verify_bundle(bundle).problems)


def test_a_failed_run_without_a_draft_makes_a_bundle_that_holds(make_world: Maker, tmp_path: Path) -> None:
    world = make_world()
    world.source("", outcome="blocked", reason="a challenge page")
    world.end_unit(status="failed", error="nothing found")
    world.end("failed", "not found in the corpus")
    found = _forged(world, tmp_path / "x")
    assert found.ok, found.problems
    assert found.status == "failed"


def test_a_text_with_a_lone_surrogate_or_odd_line_ends_survives(make_world: Maker, tmp_path: Path) -> None:
    world = make_world()
    text = "Alpha\r\nbeta\u2028gamma \U0001f9ed delta."
    world.draft(
        [Leaf(text="Alpha beta gamma \U0001f9ed delta.", evidence=(world.quote(world.source(text), text),))]
    )
    world.end_unit()
    world.end()
    found = _forged(world, tmp_path / "x")
    assert found.ok, found.problems


def test_events_of_a_later_version_are_passed_over_not_lost(pump: Any, tmp_path: Path) -> None:
    lines = pump.lines
    extra = b'{"v":1,"seq":%d,"type":"research/omen","data":{"x":1}}' % len(lines)
    path = tmp_path / "x"
    write_bundle(path, [*lines, extra], pump.texts, tool_version="1")
    assert verify_bundle(path).ok
    assert extra in _members(path)["ledger.jsonl"]


def test_members_are_a_function_of_lines_and_texts(pump: Any) -> None:
    assert bundle_members(pump.lines, pump.texts, tool_version="1") == bundle_members(
        pump.lines, pump.texts, tool_version="1"
    )
