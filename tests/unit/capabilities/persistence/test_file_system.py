"""Which journal is safe where, told by the table of mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.capabilities.persistence.providers.file_system import (
    FileSystemUnsafe,
    file_system_of,
    journal_on,
    mounts,
)

TABLE = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
40 27 0:40 / /mnt/team rw,relatime shared:3 - nfs4 server:/team rw,vers=4.2,local_lock=none
41 27 0:41 / /mnt/team/old rw,relatime - nfs server:/old rw,vers=3,nolock,local_lock=all
42 27 0:42 / /mnt/host rw,relatime - 9p drvfs rw,trans=fd
43 27 0:43 / /mnt/far\040away rw - fuse.sshfs me@there:/ rw,user_id=0
44 27 0:44 / /mnt/share rw - cifs //server/share rw,vers=3.1.1,nobrl
45 27 0:45 / /mnt/new rw - newfs /dev/x rw
46 27 0:46 / /mnt/over rw - ext4 /dev/y rw
47 27 0:47 / /mnt/over rw - virtiofs host rw
"""


@pytest.mark.case("S27")
@pytest.mark.parametrize(
    ("path", "journal"),
    [
        ("/home/me/.leadline/sessions.sqlite", "wal"),
        ("/mnt/teamwork/s.sqlite", "wal"),
        ("/mnt/team/s.sqlite", "rollback"),
        ("/mnt/host/s.sqlite", "rollback"),
        ("/mnt/new/s.sqlite", "rollback"),
        ("/mnt/over/s.sqlite", "rollback"),
    ],
)
def test_the_journal_is_one_that_is_safe_on_the_file_system(path: str, journal: str) -> None:
    assert journal_on(Path(path), TABLE) == journal


@pytest.mark.case("S27")
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/mnt/team/old/s.sqlite", "nfs with local_lock=all"),
        ("/mnt/far away/s.sqlite", "fuse.sshfs"),
        ("/mnt/share/deep/er/s.sqlite", "cifs with nobrl"),
    ],
)
def test_a_file_system_without_locks_is_refused_by_path_and_kind(path: str, kind: str) -> None:
    with pytest.raises(FileSystemUnsafe) as error:
        journal_on(Path(path), TABLE)
    assert path in str(error.value) and kind in str(error.value) and "jsonl" in str(error.value)


def test_a_link_is_followed_to_where_the_database_really_lies(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "team")
    table = f"27 1 254:0 / / rw - ext4 /dev/vda rw\n40 27 0:40 / {tmp_path}/team rw - nfs4 server:/team rw\n"
    assert file_system_of(tmp_path / "link" / "s.sqlite", table).kind == "nfs4"
    assert file_system_of(tmp_path / "s.sqlite", table).kind == "ext4"


@pytest.mark.parametrize("table", ["", "nonsense\n", "1 2 3 - \n", "27 1 0:1 / /other rw - ext4 x rw\n"])
def test_where_the_system_tells_nothing_the_careful_journal_is_used(table: str) -> None:
    assert journal_on(Path("/home/s.sqlite"), table) == "rollback"


def test_the_system_tells_of_the_root() -> None:
    table = mounts()
    if table:
        assert file_system_of(Path("/"), table).mounted_at == "/"
