"""`leadline usage` and `leadline models price` through the real program."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.testing.provider_server.counting import ServerPrice
from leadline.testing.provider_server.server import ProviderServer
from tests.composition.cli import QUESTION, Command, provider
from tests.composition.conftest import FakeResearcher

PRICE = ServerPrice(input=2, cached_input=0.2, output=10)


def test_a_run_tells_what_it_used_for_what_with_the_work_of_its_roles(
    command: Command, corpus: Path, researcher: FakeResearcher
) -> None:
    assert command("models", "price", "local/fake", "--input", "2", "--output", "10").code == 0
    with provider(researcher) as model:
        run = command("research", QUESTION, "--corpus", corpus, "--json", *model).json
    ended = command("usage", run["id"][:10], "--json")
    assert ended.code == 0, ended.err
    usage = ended.json
    assert [row["purpose"] for row in usage["by"]] == [
        "research/planning",
        "research/synthesis",
        "research/unit",
    ]
    assert usage["calls"] == run["usage"]["calls"] == sum(row["calls"] for row in usage["by"])
    assert usage["cost"] == pytest.approx(run["usage"]["cost"])
    assert usage["cost"] == pytest.approx(sum(row["cost"] for row in usage["by"]))
    assert usage["tokens"]["output"] == sum(row["tokens"]["output"] for row in usage["by"])
    lines = command("usage", run["id"]).out.decode().splitlines()
    assert (
        lines[0].split() == ["PURPOSE", "CALLS", "INPUT", "OUTPUT", "COST", "MODEL"] or "CACHED" in lines[0]
    )
    assert lines[-1].split()[:2] == ["total", str(usage["calls"])]
    own = command("usage", run["id"], "--own")
    assert own.code == 0
    assert own.out == b""
    assert "nothing was paid for" in own.err


def test_what_nobody_knows_is_absent_and_told_with_the_next_step(
    command: Command, corpus: Path, researcher: FakeResearcher
) -> None:
    assert command("models", "price", "local/fake", "--like", "nobody/nothing").code == 0
    with provider(researcher) as model:
        run = command("research", QUESTION, "--corpus", corpus, "--json", *model).json
    ended = command("usage", run["id"], "--json")
    assert "cost" not in ended.json
    assert ended.json["unpriced"] == ended.json["calls"]
    assert "leadline models price local/fake --input DOLLARS --output DOLLARS" in ended.err
    shown = command("usage", run["id"]).out.decode().splitlines()
    assert "not known" in shown[-1]


def test_a_session_that_is_not_there_is_told_with_where_to_look(command: Command) -> None:
    ended = command("usage", "s-none")
    assert ended.code == 2
    assert "leadline sessions list" in ended.complaint


def test_the_price_of_a_model_is_told_written_down_and_taken_back(command: Command, home: Path) -> None:
    told = command("models", "price", "deepseek/deepseek-v4-pro", "--json").json
    assert (told["input"], told["output"], told["source"]) == (
        1.32,
        3.96,
        "https://api-docs.deepseek.com/quick_start/pricing",
    )
    assert "its price is not known" in command("models", "price", "mine/big").out.decode()
    said = command("models", "price", "mine/*", "--input", "1.5", "--output", "3", "--cached", "0.1")
    assert said.code == 0
    price = command("models", "price", "mine/big", "--json").json
    assert (price["input"], price["cached_input"], price["cache_write"], price["output"]) == (
        1.5,
        0.1,
        1.5,
        3,
    )
    assert command("models", "default", "deepseek/deepseek-v4-pro").code == 0
    assert command("models", "price", "mine/big", "--json").json == price
    assert command("models", "price", "mine/*", "--unset").code == 0
    assert command("models", "price", "mine/big", "--json").json == {"model": "mine/big", "known": False}
    assert command("models", "default", "--json").json["default"] == "deepseek/deepseek-v4-pro"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["x/y", "--input", "1"], "both `input` and `output`"),
        (["x/y", "--free", "--like", "a/b"], "say one of"),
        (["x/y", "--input", "-1", "--output", "1"], "no amount of dollars"),
        (["x/y", "--unset"], "no price was written down"),
        (["x/y", "--unset", "--free"], "stands alone"),
        (["/y", "--free"], "provider/name"),
    ],
)
def test_what_makes_no_price_is_refused_and_nothing_is_written(
    command: Command, home: Path, options: list[str], says: str
) -> None:
    ended = command("models", "price", *options)
    assert ended.code == 2
    assert says in ended.complaint
    assert not (home / "models.yml").exists()


@pytest.mark.anyio
async def test_a_program_reads_the_same_rows_and_forks_are_bills_of_their_own(
    home: Path, tmp_path: Path
) -> None:
    patch = tmp_path / "priced.yml"
    patch.write_text(
        "- {id: meter, merge: {prices: {local/fake: {input: 2, cached_input: 0.2, output: 10}}}}\n"
    )
    async with (
        ProviderServer(["one", "two", "three"], prices=PRICE, caching=True) as server,
        Leadline(profile="headless", model="local/fake", base_url=server.base_url, patches=[patch]) as app,
    ):
        agents = app.ctx.get(Agents)
        agent = await agents.create(AgentSpec())
        agent.send("One.")
        await agent.when_idle()
        child = await agents.create(AgentSpec(parent=agent, seed_turns=True))
        child.send("Two.")
        await child.when_idle()
        forked = await agents.resume(await app.sessions.fork(agent.id))
        forked.send("Three.")
        await forked.when_idle()
        first, second, third = [charge.cost or 0 for charge in server.bill]

        async def cost(session_id: str, *, children: bool = True) -> int:
            return sum([row.cost for row in await app.sessions.usage(session_id, children=children)])

        assert await cost(agent.id) == first + second
        assert await cost(agent.id, children=False) == first
        assert await cost(forked.id) == third


def test_what_is_free_at_home_has_no_known_price_at_a_gateway(command: Command, corpus: Path) -> None:
    gateway = ["--model", "local/big", "--base-url", "https://gateway.example.com/v1"]
    ended = command("research", QUESTION, "--corpus", corpus, *gateway, "--max-cost", "1")
    assert ended.code == 2
    assert "local/big" in ended.err
    assert "price" in ended.err
