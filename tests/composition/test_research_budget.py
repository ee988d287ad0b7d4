"""Ceilings on a run hold, and reaching one ends in a written report that says so."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from leadline import Leadline, SyncLeadline
from leadline.apps.cli.placing import on_this_machine
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.research.events import Planned, Unit, UnitEnded
from leadline.research.methods.seam import MethodResult, Methods, RoleCall, Run
from leadline.research.request import RequestRefused
from leadline.research.roles.purposes import UNIT, UnitData, purpose
from leadline.research.roles.schemas import FINDING_SCHEMA
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.counting import ServerPrice
from leadline.testing.provider_server.server import ProviderServer, Received
from leadline.testing.researcher import ScriptedResearcher, topics, write_corpus
from tests.composition.cli import Command, Ended, run_id, started, until

PRICE = ServerPrice(input=1.0, output=2.0)
PRICED = "- id: meter\n  merge:\n    prices: {local/fake: {input: 1.0, output: 2.0}}\n"
UNKNOWN = "- id: meter\n  merge:\n    prices: {local/fake: {unknown: true}}\n"
THREE = topics(3)
QUESTION = "What did the reservoirs hold?"
WHOLE = 14
"""Calls of a run over three topics: plan; search, read, record and hand in for each; write."""

Responder = Callable[[Received], Behaviour]


@contextmanager
def served(answers: Responder, latency_s: float = 0.0) -> Generator[ProviderServer]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            ProviderServer(answers, prices=PRICE, latency_s=latency_s)
        ) as server,
    ):
        yield server


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    write_corpus(folder, THREE)
    return folder


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    path = tmp_path / "priced.yml"
    path.write_text(PRICED)
    return path


def asked(lake: Path, server: ProviderServer, priced: Path) -> list[str | Path]:
    at = ["--model", "local/fake", "--base-url", server.base_url, "--patch", priced]
    return ["research", QUESTION, "--corpus", lake, "--breadth", "broad", *at]


def billed(server: ProviderServer) -> int:
    return sum(charge.cost or 0 for charge in server.bill)


def tokens(server: ProviderServer) -> int:
    return sum(charge.prompt_tokens + charge.completion_tokens for charge in server.bill)


def largest(server: ProviderServer) -> int:
    return max(charge.prompt_tokens + charge.completion_tokens for charge in server.bill)


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        ("--max-tokens", "0"),
        ("--max-tokens", "-5"),
        ("--max-tokens", "2.5"),
        ("--max-cost", "0"),
        ("--max-cost", "nan"),
        ("--max-calls", "none"),
        ("--max-time", "10"),
        ("--max-time", "0s"),
        ("--keep", "0.95"),
        ("--keep", "-0.1"),
    ],
)
def test_a_ceiling_that_is_none_is_refused(command: Command, lake: Path, option: tuple[str, str]) -> None:
    refused = command("research", QUESTION, "--corpus", lake, "=".join(option))
    assert (refused.code, refused.out) == (2, b"")
    assert option[0] in refused.complaint


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_cost": -1.0}, "max_cost"),
        ({"max_calls": 1.5}, "max_calls"),
        ({"max_seconds": float("inf")}, "max_seconds"),
        ({"keep": 0.91}, "keep"),
    ],
)
async def test_the_api_refuses_it_typed(
    home: Path, lake: Path, options: dict[str, float], field: str
) -> None:
    async with Leadline() as app:
        with pytest.raises(RequestRefused) as refused:
            await app.research(QUESTION, corpus=[lake], **options)  # pyright: ignore[reportArgumentType]  # the point
    assert refused.value.field == field


def test_a_ceiling_on_cost_needs_a_price_and_says_what_to_do(
    command: Command, lake: Path, tmp_path: Path
) -> None:
    patch = tmp_path / "unknown.yml"
    patch.write_text(UNKNOWN)
    with served(ScriptedResearcher(THREE)) as server:
        refused = command(*asked(lake, server, patch), "--max-cost", "1")
        agent = command("agent", "hello", *asked(lake, server, patch)[6:], "--max-cost", "1")
        assert not server.requests
    for one in (refused, agent):
        assert (one.code, one.out) == (2, b"")
        assert "leadline models price local/fake" in one.complaint
        assert "--max-tokens" in one.complaint
    assert command("runs", "list", "--json").json == []


# --- what a ceiling comes to -------------------------------------------------------------------------------


def partial(done: Ended, named: str) -> None:
    """What holds of every report that a ceiling cut short."""
    result = done.json
    assert (done.code, result["status"]) == (0, "partial"), done.err
    assert f"ceiling on {named}" in result["error"]
    assert f"ceiling on {named}" in result["report"]
    assert result["metadata"]["budget_reached"] == ("seconds" if named == "time" else named)
    assert result["citations"]
    assert any("reservoir" in one for one in result["coverage"]["unresolved"])


@pytest.mark.parametrize(
    ("option", "named"),
    [
        (("--max-calls", "10"), "calls"),
        (("--max-tokens", "14000"), "tokens"),
        (("--max-cost", "0.0145"), "cost"),
    ],
)
def test_a_ceiling_ends_in_a_report_that_names_it_with_the_evidence_so_far(
    command: Command, lake: Path, priced: Path, option: tuple[str, str], named: str
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, priced), *option, "--json")
        assert len(server.requests) < WHOLE
        limit = {"calls": len(server.bill), "tokens": tokens(server), "cost": billed(server) / 1e12}[named]
    partial(done, named)
    assert limit <= float(option[1])
    assert done.json["metadata"]["written_by"] == "model"
    replayed = command("replay", done.json["id"], "--patch", priced)
    assert replayed.code == 0, replayed.out.decode()


def test_time_that_is_up_stops_the_units_and_leaves_the_writer_its_share(
    command: Command, tmp_path: Path, priced: Path
) -> None:
    many = topics(2, 60)
    write_corpus(tmp_path / "many", many)
    with served(ScriptedResearcher(many, at_once=1), 0.15) as server:
        done = command(
            *asked(tmp_path / "many", server, priced), "--max-time", "4s", "--keep", "0.4", "--json"
        )
    partial(done, "time")
    assert done.json["metadata"]["written_by"] == "model"
    assert done.json["usage"]["wall_s"] < 6
    replayed = command("replay", done.json["id"], "--patch", priced)
    assert (replayed.code, "depended on the clock" in replayed.complaint) == (2, True)


def test_a_writer_that_is_never_done_is_stopped_at_the_end_and_the_evidence_is_the_report(
    command: Command, lake: Path, priced: Path
) -> None:
    scripted = ScriptedResearcher(THREE)

    def answer(request: Received) -> Behaviour:
        if b"sections" in request.raw:
            return Behaviour("stall")
        return scripted(request)

    with served(answer) as server:
        done = command(*asked(lake, server, priced), "--max-time", "3s", "--json")
    result = done.json
    assert (done.code, result["status"]) == (0, "partial"), done.err
    assert result["metadata"]["written_by"] == "record"
    assert "ceiling on time" in result["report"]
    assert len(result["citations"]) == 6


def test_a_planner_that_says_nothing_is_stopped_when_the_time_is_up(
    command: Command, lake: Path, priced: Path
) -> None:
    with served(lambda request: Behaviour("stall")) as server:
        done = command(*asked(lake, server, priced), "--max-time", "1s", "--json")
        assert len(server.requests) == 1
    assert (done.code, done.json["status"]) == (1, "failed")
    assert "ceiling on time" in done.json["error"]


def test_where_not_even_the_writer_can_be_paid_the_evidence_is_the_report_and_it_says_why(
    command: Command, lake: Path, priced: Path
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, priced), "--max-calls", "13", "--keep", "0", "--json")
        assert len(server.requests) == 13
    partial_or_not = done.json
    assert (done.code, partial_or_not["status"]) == (0, "partial"), done.err
    assert partial_or_not["metadata"]["written_by"] == "record"
    assert "The report was not written" in partial_or_not["report"]
    assert "ceiling on calls: 13 of 13 calls" in partial_or_not["report"]
    assert len(partial_or_not["citations"]) == 6


def test_a_ceiling_before_any_evidence_fails_with_the_reason(
    command: Command, lake: Path, priced: Path
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, priced), "--max-calls", "3", "--json")
        assert len(server.requests) <= 3
    assert (done.code, done.json["status"]) == (1, "failed")
    assert "ceiling on calls" in done.json["error"]
    assert len(done.json["coverage"]["unresolved"]) == 3


def test_a_planner_that_cannot_be_paid_leaves_the_fallback_plan(
    command: Command, lake: Path, priced: Path
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, priced), "--max-tokens", "200", "--json")
        assert not server.requests
    assert (done.code, done.json["status"]) == (1, "failed")
    assert "ceiling on tokens" in done.json["error"]
    assert "without a plan" in " ".join(done.json["notes"])


def test_units_that_nobody_began_are_named(command: Command, lake: Path, tmp_path: Path) -> None:
    patch = tmp_path / "one.yml"
    patch.write_text(
        PRICED + "- id: adaptive\n  merge: {max_parallel_units: 1}\n"
        "- id: research\n  merge: {budget: {unit_share: 1}}\n"
    )
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, patch), "--max-calls", "6", "--json")
    partial(done, "calls")
    assert done.json["coverage"]["asked"] == 1
    unresolved = done.json["coverage"]["unresolved"]
    assert sum("not begun" in one for one in unresolved) == 2


def test_one_greedy_unit_leaves_the_others_their_share(command: Command, lake: Path, priced: Path) -> None:
    scripted = ScriptedResearcher(THREE)

    def answer(request: Received) -> Behaviour:
        if b"What is known of the Alder reservoir?" in request.raw and b"findings" in request.raw:
            n = sum(one["role"] == "tool" for one in request.messages)
            return Behaviour("tool_call_success", calls=(CallSpec("corpus_search", {"query": f"alder {n}"}),))
        return scripted(request)

    with served(answer) as server:
        done = command(*asked(lake, server, priced), "--max-calls", "18", "--json")
    partial(done, "calls")
    ended = {one["text"] for one in done.json["sentences"]}
    assert len([one for one in ended if "Birch" in one]) == 2
    assert len([one for one in ended if "Cedar" in one]) == 2


def test_configured_ceilings_hold_where_the_request_has_none(
    command: Command, lake: Path, tmp_path: Path
) -> None:
    patch = tmp_path / "configured.yml"
    patch.write_text(PRICED + "- id: research\n  merge: {budget: {calls: 10}}\n")
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, patch), "--json")
        whole = command(*asked(lake, server, patch), "--max-calls", "40", "--json")
    partial(done, "calls")
    assert whole.json["status"] == "completed"


# --- sixteen at once ---------------------------------------------------------------------------------------


class Sixteen:
    """A method whose sixteen units work at once, each for as long as it is let."""

    name = "sixteen"

    async def run(self, run: Run) -> MethodResult:
        units = tuple(Unit(id=f"u{n}", title=f"t{n}", question=f"q{n}?") for n in range(1, 17))
        run.append(Planned(brief="b", units=units))
        async with anyio.create_task_group() as tasks:
            for unit in units:
                tasks.start_soon(self._unit, run, unit)
        return MethodResult(status="failed", error="nothing was to be written")

    async def _unit(self, run: Run, unit: Unit) -> None:
        data = UnitData(question="q", brief="b", unit=unit, source_calls=4, language=None)
        call = RoleCall(
            role="researcher",
            label=unit.title,
            purpose=purpose(UNIT, data),
            prompt=f"unit {unit.id} " + "word " * 400,
            schema=FINDING_SCHEMA,
            unit=unit,
        )
        answer = await run.ask(call)
        run.append(
            UnitEnded(unit=unit.id, status="budget" if answer.ceiling else "failed", error=answer.error)
        )


def endless(usage: dict[str, object] | None = None) -> Responder:
    """Calls a tool for ever, saying something of its own each time."""

    def answer(request: Received) -> Behaviour:
        calls = (CallSpec("corpus_search", {"query": f"reservoir {request.n}"}),)
        return Behaviour("tool_call_success", text="word " * 40, calls=calls, usage=usage)

    return answer


@asynccontextmanager
async def sixteen(answers: Responder, patch: Path) -> AsyncGenerator[tuple[Leadline, ProviderServer]]:
    async def apply(ctx: Context, config: None) -> None:
        ctx.get(Methods).register(ctx, Sixteen())

    async with (
        ProviderServer(answers, prices=PRICE, latency_s=0.02) as server,
        Leadline(model="local/fake", base_url=server.base_url, patches=[patch]) as app,
    ):
        await app.ctx.mount(Plugin("sixteen", apply, needs=(Methods,)))
        yield app, server


@pytest.mark.anyio
@pytest.mark.parametrize("ceiling", ["tokens", "cost", "calls"])
async def test_sixteen_at_once_pass_a_ceiling_by_one_call_at_most(
    home: Path, lake: Path, priced: Path, ceiling: str
) -> None:
    async with sixteen(endless(), priced) as (app, server):
        amount = {"tokens": 160_000, "cost": 0.17, "calls": 90}[ceiling]
        result = await app.research(
            QUESTION,
            corpus=[lake],
            method="sixteen",
            max_tokens=160_000 if ceiling == "tokens" else None,
            max_cost=0.17 if ceiling == "cost" else None,
            max_calls=90 if ceiling == "calls" else None,
            keep=0.0,
        )
    assert f"ceiling on {ceiling}" in (result.error or "")
    if ceiling == "calls":
        assert len(server.bill) == 90
    elif ceiling == "tokens":
        assert amount - 16 * largest(server) <= tokens(server) <= amount + largest(server)
    else:
        dearest = max(charge.cost or 0 for charge in server.bill)
        assert billed(server) <= amount * 1e12 + dearest
    assert result.usage.calls == len(server.bill)
    assert result.usage.cost == pytest.approx(billed(server) / 1e12, rel=1e-12)


@pytest.mark.anyio
async def test_a_provider_that_reports_no_usage_is_held_to_an_estimate(
    home: Path, lake: Path, priced: Path
) -> None:
    async with sixteen(endless({}), priced) as (app, server):
        result = await app.research(QUESTION, corpus=[lake], method="sixteen", max_tokens=60_000, keep=0.0)
        said = sum(len(one.raw) // 4 + 60 for one in server.requests)
    assert "ceiling on tokens" in (result.error or "")
    assert 20_000 < said < 90_000
    assert result.usage.cost is None
    assert result.usage.tokens.total is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("usage", "most"),
    [
        ({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}, 500),
        ({"prompt_tokens": 9_000_000, "completion_tokens": 5, "total_tokens": 9_000_005}, 17),
    ],
)
async def test_a_provider_that_lies_about_usage_makes_no_run_hang_or_go_on_for_ever(
    home: Path, lake: Path, priced: Path, usage: dict[str, object], most: int
) -> None:
    async with sixteen(endless(usage), priced) as (app, server):
        with anyio.fail_after(50):
            result = await app.research(
                QUESTION, corpus=[lake], method="sixteen", max_tokens=100_000, keep=0.0
            )
        assert 1 <= len(server.requests) <= most
    assert result.status == "failed"
    assert len(result.coverage.unresolved) == 16


# --- what it cost ------------------------------------------------------------------------------------------


class Unruly:
    """A researcher whose provider turns some requests away, and breaks off others that it charges for."""

    def __init__(self, hindrances: dict[int, Behaviour]) -> None:
        self._researcher = ScriptedResearcher(THREE)
        self._hindrances = hindrances
        self._asked = 0

    def __call__(self, request: Received) -> Behaviour:
        self._asked += 1
        return self._hindrances.get(self._asked) or self._researcher(request)


@pytest.mark.case("K12")
def test_the_cost_of_a_run_is_the_bill_with_what_was_turned_away(
    command: Command, lake: Path, priced: Path
) -> None:
    hindrances = {2: Behaviour("rate_limit", retry_after="0"), 5: Behaviour("server_error")}
    with served(Unruly(hindrances)) as server:
        done = command(*asked(lake, server, priced), "--json")
        bill, requests = billed(server), len(server.requests)
    usage = done.json["usage"]
    assert done.json["status"] == "completed", done.err
    assert usage["cost"] == pytest.approx(bill / 1e12, rel=1e-12)
    assert usage["currency"] == "USD"
    assert usage["calls"] == requests == WHOLE + 2
    by = {one["purpose"]: one for one in usage["by"]}
    assert set(by) == {"research/planning", "research/unit", "research/synthesis"}
    assert sum(one["cost"] for one in by.values()) == pytest.approx(bill / 1e12, rel=1e-9)
    assert by["research/unit"]["model"] == "local/fake"
    assert "rate limited" in done.err
    assert f"{requests} model call(s)" in done.err
    assert "$0.0" in done.err
    (listed,) = command("runs", "list", "--json").json
    assert listed["cost"] == usage["cost"]
    assert "$0.0" in command("runs", "list").out.decode()
    assert "$0.0" in command("show", listed["id"]).out.decode()


def test_who_looks_on_is_told_for_what_a_call_waits(command: Command, lake: Path, tmp_path: Path) -> None:
    patch = tmp_path / "one_at_a_time.yml"
    patch.write_text(PRICED + "- id: limiter\n  merge: {limits: [{model: local/fake, max: 1}]}\n")
    with served(ScriptedResearcher(THREE, delay_s=0.1)) as server:
        done = command(*asked(lake, server, patch))
    assert done.code == 0, done.err
    assert "waiting for local/fake: 1 ahead" in done.err


@pytest.mark.case("K17")
def test_of_a_cost_that_is_not_known_in_whole_the_part_that_is_is_told(
    command: Command, lake: Path, priced: Path
) -> None:
    quiet = ScriptedResearcher(THREE)

    def answer(request: Received) -> Behaviour:
        found = quiet(request)
        return found if request.n else Behaviour("tool_call_success", calls=found.calls, usage={})

    with served(answer) as server:
        usage = command(*asked(lake, server, priced), "--json").json["usage"]
    assert "cost" not in usage
    assert 0 < usage["cost_at_least"] == pytest.approx(billed(server) / 1e12, rel=1e-12)
    assert next(one for one in usage["by"] if one["purpose"] == "research/planning").get("cost") is None
    (listed,) = command("runs", "list", "--json").json
    assert (listed["cost"], listed["cost_at_least"]) == (None, usage["cost_at_least"])
    assert "≥ $0.0" in command("runs", "list").out.decode()


# --- going on ----------------------------------------------------------------------------------------------


def killed(lake: Path, server: ProviderServer, priced: Path, at: int, *options: str) -> str:
    """Id of a run that was killed in its request number `at`."""
    process = started(*map(str, asked(lake, server, priced)), *options)
    run = run_id(until(process, "run "))
    while len(server.requests) < at:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return run


@pytest.mark.case("K07")
def test_a_resumed_run_has_spent_what_its_logs_say(command: Command, lake: Path, priced: Path) -> None:
    slow = ScriptedResearcher(THREE, delay_s=0.05)
    with served(slow) as server:
        run = killed(lake, server, priced, 7, "--max-calls", "16")
        (listed,) = command("runs", "list", "--json").json
        assert listed["status"] == "interrupted"
        assert listed["calls"] == 7
        resumed = command("resume", run, "--patch", priced, "--json")
        assert 13 <= len(server.requests) <= 16
    partial(resumed, "calls")
    assert resumed.json["usage"]["calls"] == len(server.requests)


def test_a_run_that_its_budget_ended_goes_on_with_a_higher_ceiling(
    command: Command, lake: Path, priced: Path
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        whole = command(*asked(lake, server, priced), "--json").json
        first = command(*asked(lake, server, priced), "--max-calls", "10", "--json")
        partial(first, "calls")
        run = first.json["id"]
        before = len(server.requests)
        again = command("resume", run, "--patch", priced)
        assert (again.code, again.out) == (2, b"")
        assert f"leadline resume {run} --max-calls" in again.complaint
        assert len(server.requests) == before
        on = command("resume", run, "--max-calls", "40", "--patch", priced, "--json")
        asked_in_all = len(server.requests) - WHOLE
    assert on.json["status"] == "completed", on.err
    assert [one["text"] for one in on.json["sentences"]] == [one["text"] for one in whole["sentences"]]
    assert on.json["usage"]["calls"] == asked_in_all
    assert asked_in_all <= WHOLE + 1  # the report is written again
    assert "ceiling" not in on.json["report"]
    assert command("audit", run, "--patch", priced).code == 0


def test_a_run_goes_on_when_less_of_its_budget_is_kept(command: Command, lake: Path, priced: Path) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        first = command(*asked(lake, server, priced), "--max-calls", "40", "--keep", "0.9", "--json")
        run = first.json["id"]
        again = command("resume", run, "--patch", priced)
        assert again.code == 2
        on = command("resume", run, "--keep", "0.1", "--patch", priced, "--json")
    assert on.json["status"] == "completed", on.err


def test_the_amount_that_is_suggested_is_twice_what_there_was(
    command: Command, lake: Path, priced: Path
) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        run = command(*asked(lake, server, priced), "--max-cost", "0.02", "--json").json["id"]
        again = command("resume", run, "--patch", priced)
    assert again.code == 2
    assert "--max-cost 0.04" in again.complaint


def test_a_program_without_an_event_loop_goes_on_too(home: Path, lake: Path, priced: Path) -> None:
    with (
        served(ScriptedResearcher(THREE)) as server,
        SyncLeadline(model="local/fake", base_url=server.base_url, patches=[priced]) as app,
    ):
        first = app.research(QUESTION, corpus=[lake], breadth="broad", max_calls=10)
        assert first.status == "partial"
        on = app.resume_research(first.id, max_calls=40)
        assert (on.status, on.id) == ("completed", first.id)


def test_what_has_to_be_typed_again_to_go_on_is_told(command: Command, lake: Path, priced: Path) -> None:
    with served(ScriptedResearcher(THREE)) as server:
        done = command(*asked(lake, server, priced), "--max-calls", "10")
        run = run_id(done.err.splitlines())
        options = f"--model local/fake --base-url {server.base_url}"
    assert f"leadline resume {run} --max-calls MORE {options}" in done.err


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost:1234/v1", True),
        ("https://gateway.example.com/v1", False),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://192.168.1.7/v1", False),
    ],
)
def test_only_an_address_of_this_machine_is_taken_from_a_log(url: str, here: bool) -> None:
    assert on_this_machine(url) is here


def test_a_run_is_resumed_where_its_model_was_reached(command: Command, lake: Path, priced: Path) -> None:
    with served(ScriptedResearcher(THREE, delay_s=0.05)) as server:
        run = killed(lake, server, priced, 4)
        resumed = command("resume", run, "--patch", priced)
    assert resumed.code == 0, resumed.err


# --- agents ------------------------------------------------------------------------------------------------


@pytest.mark.case("K07")
def test_the_research_of_an_agent_draws_on_what_its_turn_may_use(
    command: Command, lake: Path, priced: Path
) -> None:
    scripted = ScriptedResearcher(THREE)

    def answer(request: Received) -> Behaviour:
        if b'"name":"deep_research"' in request.raw:
            if any(one["role"] == "tool" for one in request.messages):
                return Behaviour(text="That is all.")
            return Behaviour("tool_call_success", calls=(CallSpec("deep_research", {"question": QUESTION}),))
        return scripted(request)

    with served(answer) as server:
        at = ["--model", "local/fake", "--base-url", server.base_url, "--patch", priced]
        done = command("agent", QUESTION, "--corpus", lake, *at, "--max-calls", "9", "--json")
        assert len(server.requests) <= 9
        (run,) = command("runs", "list", "--json").json
    assert run["status"] in ("partial", "failed")
    assert done.json["session"]


def test_a_turn_has_ceilings_of_its_own(command: Command, home: Path, priced: Path) -> None:
    with served(endless()) as server:
        at = ["--model", "local/fake", "--base-url", server.base_url, "--patch", priced]
        done = command("agent", "go on for ever", *at, "--max-calls", "5")
        assert len(server.requests) == 5
    assert done.code == 1
    assert "calls" in done.complaint
