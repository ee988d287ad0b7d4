"""Every file has a location and an outcome; nothing outside the roots is touched."""

from __future__ import annotations

import os
import sys
import unicodedata
from pathlib import Path

import pytest

from leadline.capabilities.corpus.providers.reading import FileBytes, read_file
from leadline.capabilities.corpus.providers.walk import resolve_roots, walk
from leadline.capabilities.corpus.seam import CorpusUnavailable
from leadline.capabilities.documents.seam import Limits


def outcome(read: FileBytes) -> tuple[bytes, str, str]:
    assert read.problem is not None
    return read.data, read.problem.outcome, read.problem.reason


def locations(*roots: Path) -> list[str]:
    return [entry.location for entry in walk(resolve_roots(roots)).entries]


def problems(*roots: Path) -> dict[str, str]:
    entries = walk(resolve_roots(roots)).entries
    return {entry.location: entry.problem.outcome for entry in entries if entry.problem}


def test_files_are_found_in_order_of_their_location(folder, write):
    write(folder, {"b/x.md": "x", "a.md": "a", "b.md": "b", "ü.md": "u"})
    assert locations(folder) == ["a.md", "b.md", "b/x.md", "ü.md"]


@pytest.fixture
def deep_folder(folder):
    """A folder with 1200 folders in each other; nobody else could delete them."""
    here = Path.cwd()
    os.chdir(folder)
    for _ in range(1200):
        Path("d").mkdir()
        os.chdir("d")
    Path("ground.md").write_text("x", encoding="utf-8")
    yield folder
    Path("ground.md").unlink()
    for _ in range(1200):
        os.chdir("..")
        Path("d").rmdir()
    os.chdir(here)


def test_a_tree_deeper_than_calls_may_be_nested_is_walked_to_its_ground(deep_folder):
    entry = walk(resolve_roots([deep_folder])).entries[0]
    assert entry.location == "d/" * 1200 + "ground.md"
    assert read_file(entry, Limits()).data == b"x"


def test_hidden_files_version_control_side_files_and_bundles_are_left_out_and_counted(folder, write):
    write(
        folder,
        {
            "keep.md": "x",
            ".secret": "x",
            ".git/config": "x",
            "CVS/Root": "x",
            "~$brief.docx": "x",
            "old.md~": "x",
            "run.leadline": "x",
            "Thumbs.db": "x",
        },
    )
    walked = walk(resolve_roots([folder]))
    assert [entry.location for entry in walked.entries] == ["keep.md"]
    assert walked.left_out == {"hidden": 1, "version control": 2, "side file": 3, "bundle": 1}


def test_ignore_files_are_respected_with_the_deepest_deciding(folder, write):
    write(
        folder,
        {
            ".gitignore": "*.log\nbuild/\n/top.md\n",
            ".leadlineignore": "drafts\n!kept.log\n",
            "a.log": "x",
            "kept.log": "x",
            "top.md": "x",
            "sub/top.md": "x",
            "sub/.gitignore": "!a.log\n[broken\n",
            "sub/a.log": "x",
            "build/out.md": "x",
            "drafts/d.md": "x",
        },
    )
    assert locations(folder) == ["kept.log", "sub/a.log", "sub/top.md"]


def test_a_file_that_is_named_itself_is_read_whatever_the_rules_say(folder, write):
    write(folder, {".gitignore": "*\n", ".notes.md": "x"})
    assert locations(folder / ".notes.md") == [".notes.md"]


@pytest.mark.case("P11")
def test_links_that_leave_the_root_are_recorded_and_not_followed(folder, tmp_path, write):
    write(tmp_path / "outside", {"secret.md": "secret", "deep/more.md": "secret"})
    write(folder, {"in.md": "x", "sub/y.md": "y"})
    (folder / "file-link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (folder / "folder-link").symlink_to(tmp_path / "outside")
    (folder / "up").symlink_to("..")
    (folder / "etc").symlink_to("/etc")
    assert locations(folder) == ["etc", "file-link.md", "folder-link", "in.md", "sub/y.md", "up"]
    assert problems(folder) == dict.fromkeys(("etc", "file-link.md", "folder-link", "up"), "disallowed")


@pytest.mark.case("P11")
def test_a_folder_swapped_for_a_link_after_the_walk_is_refused(folder, tmp_path, write):
    write(tmp_path / "outside", {"x.md": "secret"})
    write(folder, {"sub/x.md": "public", "y.md": "public"})
    entries = walk(resolve_roots([folder])).entries
    (folder / "sub").rename(folder / "gone")
    (folder / "sub").symlink_to(tmp_path / "outside")
    (folder / "y.md").unlink()
    (folder / "y.md").symlink_to(tmp_path / "outside" / "x.md")
    for entry in entries:
        assert outcome(read_file(entry, Limits()))[:2] == (b"", "disallowed"), entry.location


def test_links_inside_the_root_give_no_file_twice_and_circles_end(folder, write):
    write(folder, {"a/x.md": "x", ".hidden/y.md": "y", "z.md": "z"})
    (folder / "a" / "loop").symlink_to("..")
    (folder / "self").symlink_to("self")
    (folder / "latest.md").symlink_to("a/x.md")
    (folder / "current").symlink_to(".hidden")
    (folder / "again").symlink_to(".hidden")
    (folder / "nowhere").symlink_to("missing")
    assert locations(folder) == ["a/x.md", "again/y.md", "nowhere", "self", "z.md"]
    assert problems(folder) == {"nowhere": "error", "self": "error"}


def test_a_link_does_not_bring_in_what_is_ignored_or_version_control(folder, write):
    write(folder, {".gitignore": "private/\n", "private/x.md": "x", ".git/y.md": "y"})
    (folder / "p.md").symlink_to("private/x.md")
    (folder / "g").symlink_to(".git")
    assert locations(folder) == []


def test_a_root_that_is_a_link_itself_is_resolved(folder, tmp_path, write):
    write(folder, {"x.md": "x"})
    (tmp_path / "alias").symlink_to(folder)
    assert locations(tmp_path / "alias") == ["x.md"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_special_files_are_recorded_and_never_opened(folder):
    os.mkfifo(folder / "pipe")
    assert problems(folder) == {"pipe": "unsupported"}
    entry = walk(resolve_roots([folder])).entries[0]
    assert outcome(read_file(entry, Limits())) == (b"", "unsupported", "a named pipe, not a file")


def test_names_are_recorded_composed_and_both_spellings_of_one_name_stay_apart(folder, write):
    composed = "Größe.md"
    apart = unicodedata.normalize("NFD", composed)
    write(folder, {apart: "one"})
    assert locations(folder) == [composed]
    write(folder, {composed: "two"})
    if len(os.listdir(folder)) == 2:  # noqa: PTH208 - not so where the file system composes names itself
        assert sorted(locations(folder)) == sorted([composed, apart])


@pytest.mark.skipif(sys.platform != "linux", reason="names must be text there")
def test_a_name_that_is_no_text_is_written_with_escapes(folder):
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md")).write_text("x")
    assert locations(folder) == ["caf\\xe9.md"]
    assert read_file(walk(resolve_roots([folder])).entries[0], Limits()).data == b"x"


def test_several_roots_have_unique_names_before_their_files(tmp_path, write):
    write(tmp_path, {"a/docs/x.md": "x", "b/docs/x.md": "y", "c.md": "c"})
    roots = resolve_roots([tmp_path / "a/docs", tmp_path / "b/docs", tmp_path / "c.md", tmp_path / "a/docs"])
    assert [root.name for root in roots] == ["docs", "docs-2", "c.md"]
    assert [entry.location for entry in walk(roots).entries] == ["c.md", "docs-2/x.md", "docs/x.md"]


@pytest.mark.parametrize("make", [lambda path: path / "missing", lambda path: Path("/dev/null")])
def test_what_is_no_file_or_folder_is_named_with_cause_and_next_step(folder, make):
    path = make(folder)
    with pytest.raises(CorpusUnavailable) as caught:
        resolve_roots([path])
    assert caught.value.path == str(path)
    assert caught.value.cause
    assert caught.value.next_step
    assert str(path) in str(caught.value)


def test_no_path_at_all_is_an_error():
    with pytest.raises(CorpusUnavailable, match="no path was given"):
        resolve_roots([])


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_an_outcome_below_the_root_and_an_error_at_it(folder, write):
    write(folder, {"closed/x.md": "x", "y.md": "y"})
    (folder / "closed").chmod(0)
    (folder / "y.md").chmod(0)
    try:
        assert problems(folder) == {"closed": "error"}
        with pytest.raises(CorpusUnavailable, match="permission denied"):
            resolve_roots([folder / "closed"])
    finally:
        (folder / "closed").chmod(0o700)


def test_a_file_over_the_limit_is_not_read(folder, write):
    write(folder, {"big.md": "x" * 2000})
    read = read_file(walk(resolve_roots([folder])).entries[0], Limits(max_bytes=1000))
    assert outcome(read) == (b"", "unsupported", "2,000 bytes, over the limit of 1,000")


def test_a_file_that_vanished_is_an_error(folder, write):
    write(folder, {"x.md": "x"})
    entry = walk(resolve_roots([folder])).entries[0]
    (folder / "x.md").unlink()
    assert outcome(read_file(entry, Limits()))[1] == "error"
