"""Whether the holder of a session is alive: processes, boots, machines, clocks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from leadline.core.session.lease import STALE_S, Here, Holder, here, is_alive, process_born

NOW = 1_767_225_600.0
PROCESSES = {100: 5000, 200: 0}
"""The processes of the machine: when each was started, 0 where that cannot be told."""
HERE = Here("ship", "boot-1", 100, 5000, PROCESSES.get)


def holder(pid: int = 100, born: int = 5000, *, host: str = "ship", boot: str = "boot-1") -> Holder:
    return Holder(1, host, pid, boot, NOW - 3600, heartbeat=NOW - 3600, born=born)


def beating(seconds_ago: float, *, host: str = "shore", boot: str = "boot-7") -> Holder:
    return Holder(1, host, 100, boot, NOW - 3600, heartbeat=NOW - seconds_ago, born=5000)


def test_a_process_of_this_boot_is_alive_however_old_its_heartbeat_is() -> None:
    assert is_alive(holder(), HERE, NOW)


def test_a_process_that_is_gone_is_dead_at_once() -> None:
    assert not is_alive(holder(pid=300), HERE, NOW)


def test_a_process_number_that_was_given_out_again_is_another_process() -> None:
    assert not is_alive(holder(born=4000), HERE, NOW)


def test_where_the_start_of_a_process_cannot_be_told_its_number_decides() -> None:
    assert is_alive(holder(pid=200), HERE, NOW)
    assert is_alive(holder(born=0), HERE, NOW)
    assert not is_alive(holder(pid=300, born=0), HERE, NOW)


def test_nobody_survives_a_reboot() -> None:
    assert not is_alive(holder(boot="boot-0"), HERE, NOW)


def test_who_gave_the_session_up_is_not_its_holder() -> None:
    released = Holder(1, "ship", 100, "boot-1", NOW, heartbeat=NOW, born=5000, released=True)
    assert not is_alive(released, HERE, NOW)


@pytest.mark.parametrize(
    ("seconds_ago", "alive"),
    [(0, True), (STALE_S - 1, True), (STALE_S + 1, False), (-300, True), (-10 * 86400, False)],
)
def test_on_another_machine_the_heartbeat_decides(seconds_ago: float, alive: bool) -> None:
    assert is_alive(beating(seconds_ago), HERE, NOW) is alive


def test_a_container_on_this_machine_has_other_processes_and_is_judged_by_its_heartbeat() -> None:
    assert is_alive(beating(1, boot="boot-1"), HERE, NOW)
    assert not is_alive(beating(STALE_S + 1, boot="boot-1"), HERE, NOW)


def test_a_holder_without_heartbeat_is_judged_by_when_it_started() -> None:
    assert is_alive(Holder(1, "shore", 1, "boot-7", NOW - 1), HERE, NOW)
    assert not is_alive(Holder(1, "shore", 1, "boot-7", NOW - STALE_S - 1), HERE, NOW)


def test_this_process_is_alive_here_and_one_that_ended_is_not() -> None:
    me = here().holder(1, NOW)
    assert me.pid == os.getpid() and is_alive(me, here(), NOW)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    born = process_born(process.pid)
    assert born and born >= me.born
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process_born(process.pid) is None, "it ended, though nobody has collected it yet"
    process.communicate()
    assert process_born(process.pid) is None
