"""A run that ended with less than it might have, and goes on: what failed is done, and what rested on less is done anew."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus
from tests.composition.cli import Command, Ended

QUESTION = "How much water did the reservoirs hold?"
TOPICS = topics()
OF_THE_LAST = "What is known of the Cedar reservoir?"
OF_THE_REPORT = '"sections"'


class Failing:
    """The researcher, but for requests that hold one of the marks: those fail, every attempt of them."""

    def __init__(self) -> None:
        self.marks: tuple[str, ...] = ()
        self._inner = ScriptedResearcher(TOPICS)

    def __call__(self, request: Received) -> Behaviour:
        body = request.raw.decode()
        # The writer is told of every unit: what only a unit is asked stands in requests that may search.
        of_unit = OF_THE_LAST in body and "corpus_search" in request.tools
        fails = (OF_THE_LAST in self.marks and of_unit) or (
            OF_THE_REPORT in self.marks and OF_THE_REPORT in body
        )
        return Behaviour("server_error") if fails else self._inner(request)


@contextmanager
def served(model: Failing) -> Generator[ProviderServer]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ProviderServer(model, strict=True)) as server,
    ):
        yield server


@pytest.fixture
def reservoirs(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "reservoirs", TOPICS)
    return tmp_path / "reservoirs"


@pytest.fixture
def impatient(tmp_path: Path) -> Path:
    patch = tmp_path / "impatient.yml"
    patch.write_text("- id: loop\n  merge: {retry: {first_s: 0.001, max_s: 0.001}}\n")
    return patch


Ask = Callable[..., Ended]


@pytest.fixture
def ask(command: Command, reservoirs: Path, impatient: Path) -> Ask:
    """Begins a run, or goes on with the one of that id."""

    def call(server: ProviderServer, run: str = "") -> Ended:
        words = (
            ["resume", run] if run else ["research", QUESTION, "--corpus", reservoirs, "--breadth", "broad"]
        )
        options = ["--model", "local/fake", "--base-url", server.base_url, "--patch", impatient]
        return command(*words, *options)

    return call


@pytest.fixture
def whole(ask: Ask) -> str:
    """The report of a run in which nothing fails."""
    with served(Failing()) as server:
        return ask(server).out.decode()


def only_run(command: Command) -> dict[str, str]:
    run: dict[str, str] = command("runs", "list", "--json").json[0]
    return run


@pytest.mark.parametrize("marks", [(OF_THE_LAST,), (OF_THE_LAST, OF_THE_REPORT), (OF_THE_REPORT,)])
def test_a_run_that_ended_in_part_becomes_whole(
    command: Command, ask: Ask, whole: str, marks: tuple[str, ...]
) -> None:
    model = Failing()
    with served(model) as server:
        model.marks = marks
        partly = ask(server)
        run = only_run(command)
        assert run["status"] == "partial" and partly.out.decode() != whole
        model.marks = ()
        resumed = ask(server, run["id"])
        assert resumed.code == 0, resumed.err
        assert resumed.out.decode() == whole
        keys = [charge.idempotency_key for charge in server.bill]
        assert len(keys) == len(set(keys))
    assert command("show", run["id"], "--report").out.decode() == whole
    assert command("audit", run["id"]).code == 0
    replayed = command("replay", run["id"])
    assert replayed.code == 0, replayed.out.decode()


def test_a_report_on_the_same_evidence_is_not_paid_for_again(command: Command, ask: Ask, whole: str) -> None:
    model = Failing()
    with served(model) as server:
        model.marks = (OF_THE_LAST,)
        partly = ask(server)
        run = only_run(command)
        paid = len(server.bill)
        again = ask(server, run["id"])
        assert only_run(command)["status"] == "partial"
        assert again.out == partly.out
        assert len(server.bill) == paid, "all that could be answered was"
        model.marks = ()
        assert ask(server, run["id"]).out.decode() == whole
    assert command("replay", run["id"]).code == 0
