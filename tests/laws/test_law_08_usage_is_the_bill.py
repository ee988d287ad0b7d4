"""Law 8: what a run says it used is what the provider charges, in tokens and money, failures included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leadline import Leadline
from leadline.core.llm.usage import Usage
from leadline.core.session.events import AssistantSaid, RequestEnded, RequestSent
from leadline.core.session.store import SessionStore
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.counting import ServerPrice
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import FakeResearcher, call, schema_of
from tests.laws.conftest import QUESTION, running

pytestmark = pytest.mark.anyio

Responder = Callable[[Received], Behaviour]
ONCE = Behaviour("rate_limit", retry_after="0")


PRICES = "- id: meter\n  merge:\n    prices:\n      local/*: {%s}\n"


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    patch = tmp_path / "priced.yml"
    patch.write_text(PRICES % "input: 0.27, output: 1.1")
    return patch


@pytest.fixture
def unpriced(tmp_path: Path) -> Path:
    patch = tmp_path / "unpriced.yml"
    patch.write_text(PRICES % "unknown: true")
    return patch


def billed(server: ProviderServer) -> tuple[int, int]:
    """Tokens in and out."""
    return sum(it.prompt_tokens for it in server.bill), sum(it.completion_tokens for it in server.bill)


async def metered(app: Leadline) -> tuple[int, Usage]:
    """Requests and tokens by every log in the store."""
    store, calls, tokens = app.ctx.get(SessionStore), 0, Usage()
    for entry in await store.list():
        session = await store.read(entry.id)
        calls += sum(1 for _ in session.of(RequestSent))
        for ended in (*session.of(AssistantSaid), *session.of(RequestEnded)):
            tokens = tokens + (ended.usage or Usage())
    return calls, tokens


def between(answers: Responder, *faults: Behaviour) -> Responder:
    """The answers, with a fault in front of each of the first ones."""
    waiting, failed = list(faults), set[int]()

    def answer(request: Received) -> Behaviour:
        if waiting and request.n - 1 not in failed:
            failed.add(request.n)
            return waiting.pop(0)
        return answers(request)

    return answer


@pytest.mark.parametrize(
    "faults",
    [
        (),
        (ONCE, ONCE, ONCE, ONCE),
        (Behaviour("empty"), Behaviour("max_tokens", text="too long"), Behaviour("empty")),
        (Behaviour("max_tokens", calls=(call("structured_output", {}).calls)),),
        (Behaviour("refused", text="no"),),
        (Behaviour("invalid_request"), Behaviour("invalid_request")),
    ],
    ids=["none", "rate limits", "empty and cut", "cut in a call", "refused", "stops"],
)
async def test_a_run_has_used_what_the_provider_charges_for(
    home: Path, corpus: Path, researcher: FakeResearcher, priced: Path, faults: tuple[Behaviour, ...]
) -> None:
    researcher.units = 2
    price = ServerPrice(input=0.27, output=1.1)
    async with running(between(researcher, *faults), priced, prices=price) as (app, server):
        result = await app.research(QUESTION, corpus=[corpus], breadth="balanced")
        calls, tokens = await metered(app)
        tokens_in, tokens_out = billed(server)
        assert server.bill
    assert (calls, tokens.prompt, tokens.completion) == (len(server.requests), tokens_in, tokens_out)
    assert result.usage.calls == len(server.requests)
    assert (result.usage.tokens.prompt, result.usage.tokens.completion) == (tokens_in, tokens_out)
    assert server.cost
    assert result.usage.cost == pytest.approx(server.cost / 1e12, rel=1e-12)


async def test_an_agent_with_a_run_and_its_roles_adds_up_to_the_bill(
    home: Path, corpus: Path, researcher: FakeResearcher
) -> None:
    def answer(request: Received) -> Behaviour:
        if schema_of(request):
            return researcher(request)
        answered = any(message["role"] == "tool" for message in request.messages)
        return Behaviour(text="Here.") if answered else call("deep_research", {"question": "q"})

    async with (
        ProviderServer(between(answer, ONCE, ONCE), strict=True) as server,
        Leadline(model="local/fake", base_url=server.base_url, corpus=[corpus]) as app,
    ):
        assert (await app.agent(QUESTION)).completed
        calls, tokens = await metered(app)
    assert (calls, tokens.prompt, tokens.completion) == (len(server.requests), *billed(server))
    assert calls == 10


async def test_what_is_not_reported_is_unknown_and_not_zero(
    home: Path, corpus: Path, researcher: FakeResearcher, unpriced: Path
) -> None:
    def silent(request: Received) -> Behaviour:
        from msgspec.structs import replace

        return replace(researcher(request), usage={})

    async with running(silent, unpriced) as (app, _):
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.usage.calls == 6
    assert result.usage.tokens == Usage()
    assert not result.usage.tokens.reported
    assert result.usage.cost is None


async def test_the_embedded_model_costs_nothing_and_says_so(home: Path, corpus: Path) -> None:
    async with Leadline() as app:
        result = await app.research(QUESTION, corpus=[corpus])
    assert result.usage.calls > 0
    assert result.usage.tokens.total == 0
