"""A run that was stopped, by whatever, goes on from its log: the same report, and no answer paid for twice."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.cli import QUESTION, Command, run_id, started, until
from tests.composition.conftest import HOTEL, FakeResearcher, call

STALL = Behaviour("stall")
UNREACHABLE = Behaviour("auth_error")


@contextmanager
def served(answers: Callable[[Received], Behaviour]) -> Generator[ProviderServer]:
    """A provider on loopback in a thread of its own."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ProviderServer(answers)) as server,
    ):
        yield server


def at(server: ProviderServer) -> list[str]:
    return ["--model", "local/fake", "--base-url", server.base_url]


class Once:
    """A researcher that is hindered in the request with one number, once."""

    def __init__(self, number: int, hindrance: Behaviour, researcher: FakeResearcher | None = None) -> None:
        self.researcher = researcher or FakeResearcher()
        self.number = number
        self.hindrance = hindrance
        self.asked = 0

    def __call__(self, request: Received) -> Behaviour:
        self.asked += 1
        if self.asked == self.number:
            return self.hindrance
        return self.researcher(request)


def keys(server: ProviderServer) -> Counter[str]:
    return Counter(one.headers["idempotency-key"] for one in server.requests)


@pytest.fixture
def whole(command: Command, corpus: Path) -> str:
    """The report of a run that nobody disturbs."""
    with served(FakeResearcher()) as server:
        done = command("research", QUESTION, "--corpus", corpus, *at(server))
        assert len(server.requests) == REQUESTS
    assert done.code == 0
    return done.out.decode()


REQUESTS = 6
"""plan; search, read, quote, hand in; write."""


@pytest.mark.parametrize("number", range(1, REQUESTS + 1))
def test_a_run_that_was_killed_in_any_request_comes_to_the_same_report(
    command: Command, corpus: Path, whole: str, number: int
) -> None:
    with served(Once(number, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < number:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        listed = command("runs", "list", "--json").json
        assert [(one["id"], one["status"]) for one in listed if one["id"] == run] == [(run, "interrupted")]
        resumed = command("resume", run, *at(server))
        repeated = [key for key, times in keys(server).items() if times > 1]
        lost = server.requests[number - 1].headers["idempotency-key"]
    assert resumed.code == 0, resumed.err
    assert resumed.out.decode() == whole
    assert len(server.requests) == REQUESTS + 1
    assert repeated == [lost]
    assert lost in resumed.complaint
    assert command("audit", run).code == 0


def test_a_run_that_was_killed_twice_tells_each_lost_call_once(
    command: Command, corpus: Path, whole: str
) -> None:
    with served(Once(3, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < 3:
            assert process.poll() is None
        process.kill()
        process.communicate()
    with served(Once(2, STALL)) as server:
        process = started("resume", run, *at(server))
        while len(server.requests) < 2:
            assert process.poll() is None
        process.kill()
        _, err = process.communicate()
        assert err.count("may be billed twice") == 1
    with served(FakeResearcher()) as server:
        resumed = command("resume", run, *at(server))
    assert resumed.err.count("may be billed twice") == 1
    assert resumed.out.decode() == whole


def test_the_work_of_a_run_is_not_resumed_apart_from_it(command: Command, corpus: Path, whole: str) -> None:
    with served(Once(3, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < 3:
            assert process.poll() is None
        process.kill()
        process.communicate()
        parts = [one["id"] for one in command("sessions", "list", "--parent", run, "--json").json]
        assert parts
        for part in parts:
            for task in ([], ["go on"]):
                refused = command("resume", part, *task, *at(server))
                assert refused.code == 2
                assert f"leadline resume {run}" in refused.complaint
        assert len(server.requests) == 3
        assert command("resume", run, *at(server)).out.decode() == whole


def rereading(request: Received) -> Behaviour:
    """What a unit does that reads its source a second time."""
    answered = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
    source = re.findall(r"d-[0-9a-f]{10}", answered[0])[0] if answered else ""
    if not answered:
        return call("corpus_search", {"query": "hotel caps"})
    if len(answered) < 3:
        return call("read", {"source": source})
    if len(answered) == 3:
        return call("record_evidence", {"source": source, "quote": HOTEL, "claim": "There is a cap."})
    return call("structured_output", {"findings": "found", "unresolved": []})


def test_a_call_that_was_made_before_the_kill_is_refused_after_it_as_without_one(
    command: Command, corpus: Path
) -> None:
    with served(Once(4, STALL, FakeResearcher(unit=rereading))) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < 4:
            assert process.poll() is None
        process.kill()
        process.communicate()
        assert command("resume", run, *at(server)).code == 0
        answers = [str(one["content"]) for one in server.requests[-2].messages if one["role"] == "tool"]
    assert "The same call was already made in this unit" in answers[2]
    replayed = command("replay", run)
    assert replayed.code == 0, replayed.out.decode()


def test_a_run_that_was_cancelled_goes_on(command: Command, corpus: Path, whole: str) -> None:
    with served(Once(REQUESTS, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "u1 completed"))
        while len(server.requests) < REQUESTS:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert f"leadline resume {run}" in err
        resumed = command("resume", run, *at(server))
    assert resumed.code == 0, resumed.err
    assert resumed.out.decode() == whole
    assert len(server.requests) == REQUESTS + 1


@pytest.mark.parametrize("number", [1, 3, REQUESTS])
def test_a_run_whose_model_could_not_be_reached_goes_on_when_it_can(
    command: Command, corpus: Path, whole: str, number: int
) -> None:
    with served(Once(number, UNREACHABLE)) as server:
        failed = command("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(failed.err.splitlines())
        assert len(server.requests) == number
        resumed = command("resume", run, *at(server))
    assert resumed.code == 0, resumed.err
    assert resumed.out.decode() == whole
    assert len(server.requests) == REQUESTS + 1


def test_what_is_complete_is_not_resumed(command: Command, corpus: Path) -> None:
    with served(FakeResearcher()) as server:
        run = run_id(command("research", QUESTION, "--corpus", corpus, *at(server)).err.splitlines())
        again = command("resume", run, *at(server))
        assert len(server.requests) == REQUESTS
    assert (again.code, again.out) == (2, b"")
    assert f"leadline show {run} --report" in again.complaint


def test_a_run_that_somebody_drives_is_not_driven_by_another(command: Command, corpus: Path) -> None:
    with served(Once(2, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < 2:
            assert process.poll() is None
        refused = command("resume", run, *at(server))
        assert command("show", run).code == 0
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert (refused.code, refused.out) == (2, b"")
    assert str(process.pid) in refused.complaint


def test_what_was_quoted_stays_although_the_document_changed(
    command: Command, corpus: Path, whole: str
) -> None:
    with served(Once(REQUESTS, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "u1 completed"))
        while len(server.requests) < REQUESTS:
            assert process.poll() is None
        process.kill()
        process.communicate()
        (corpus / "finance" / "expenses.md").write_text("# Expense Policy (2027)\n\nNo hotels.\n")
        resumed = command("resume", run, *at(server))
    assert resumed.code == 0, resumed.err
    assert HOTEL in resumed.out.decode()
    assert resumed.out.decode() == whole


def test_a_corpus_that_was_moved_is_asked_for(command: Command, corpus: Path) -> None:
    with served(Once(2, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < 2:
            assert process.poll() is None
        process.kill()
        process.communicate()
        moved = corpus.rename(corpus.with_name("elsewhere"))
        refused = command("resume", run, *at(server))
        resumed = command("resume", run, "--corpus", moved, *at(server))
    assert refused.code == 2
    assert str(corpus) in refused.complaint
    assert "--corpus" in refused.complaint
    assert resumed.code == 0, resumed.err


def test_facts_of_a_run_that_a_power_cut_took_are_made_again(
    command: Command, corpus: Path, home: Path, whole: str
) -> None:
    with served(Once(REQUESTS - 1, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < REQUESTS - 1:
            assert process.poll() is None
        process.kill()
        process.communicate()
        log = home / "sessions" / f"{run}.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        kept = next(at for at, line in enumerate(lines) if b'"research/searched"' in line)
        assert any(b'"research/quote-recorded"' in line for line in lines[kept:])
        log.write_bytes(b"".join(lines[:kept]))
        resumed = command("resume", run, *at(server))
    assert resumed.code == 0, resumed.err
    assert resumed.out.decode() == whole


def test_an_agent_that_was_killed_in_its_research_goes_on_with_that_research(
    command: Command, corpus: Path
) -> None:
    agent = AgentThatResearches()
    with served(Once(4, STALL, agent)) as server:
        process = started("agent", QUESTION, "--corpus", corpus, *at(server))
        while len(server.requests) < 4:
            assert process.poll() is None
        process.kill()
        process.communicate()
        (session,) = command("sessions", "list", "--json", "--kind", "agent").json
        resumed = command("resume", session["id"], "--corpus", corpus, *at(server))
        (run,) = command("runs", "list", "--json").json
    assert resumed.code == 0, resumed.err
    assert resumed.out.decode().strip() == "It is told above."
    assert run["status"] == "completed"
    assert len(server.requests) == REQUESTS + 2 + 1
    assert max(keys(server).values()) == 2


class AgentThatResearches(FakeResearcher):
    """Has the question researched, then says one sentence."""

    def __call__(self, request: Received) -> Behaviour:
        if "deep_research" not in request.tools:
            return super().__call__(request)
        if any(message["role"] == "tool" for message in request.messages):
            return Behaviour("success", text="It is told above.")
        return call("deep_research", {"question": QUESTION})


def test_a_run_of_a_newer_format_is_left_alone_and_told(command: Command, corpus: Path, home: Path) -> None:
    with served(Once(2, STALL)) as server:
        process = started("research", QUESTION, "--corpus", corpus, *at(server))
        run = run_id(until(process, "run "))
        while len(server.requests) < 2:
            assert process.poll() is None
        process.kill()
        process.communicate()
        log = home / "sessions" / f"{run}.jsonl"
        log.write_bytes(newer := log.read_bytes().replace(b'"format":1', b'"format":9', 1))
        refused = command("resume", run, *at(server))
    assert (refused.code, refused.out) == (2, b"")
    assert "format 9" in refused.complaint
    assert log.read_bytes() == newer


def test_research_that_was_stopped_goes_on_when_its_agent_asks_the_same_again(
    command: Command, corpus: Path, whole: str
) -> None:
    agent = AgentThatTriesAgain()
    with served(Once(5, STALL, agent)) as server:
        process = started("agent", QUESTION, "--corpus", corpus, *at(server))
        while len(server.requests) < 5:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate()
        (session,) = command("sessions", "list", "--json", "--kind", "agent").json
        resumed = command("resume", session["id"], "--corpus", corpus, *at(server))
        listed = command("runs", "list", "--json").json
        bodies = Counter(server.requests[charge.n].raw for charge in server.bill)
    assert resumed.code == 0, resumed.err
    (run,) = [one for one in listed if one["parent"] == session["id"]]
    assert run["status"] == "completed"
    assert command("show", run["id"], "--report").out.decode() == whole
    assert set(bodies.values()) == {1}
    assert command("audit", session["id"]).code == 0


class AgentThatTriesAgain(FakeResearcher):
    """Calls `deep_research` until it has an answer."""

    def __call__(self, request: Received) -> Behaviour:
        if "deep_research" not in request.tools:
            return super().__call__(request)
        results = [str(one["content"]) for one in request.messages if one["role"] == "tool"]
        if any("cancelled" not in one for one in results):
            return Behaviour(text="It is told above.")
        return call("deep_research", {"question": QUESTION})
