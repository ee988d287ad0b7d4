"""The provider server limits, charges, truncates, lies and stalls as its options say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import anyio
import pytest

from leadline.capabilities.models.providers.http import HttpClient
from leadline.core.llm.failure import Wait
from leadline.testing.provider_server import (
    Behaviour,
    ProviderServer,
    ServerLimits,
    ServerPrice,
    ServerWindow,
    fickle,
    wavering,
)

pytestmark = pytest.mark.anyio
Answer = tuple[int, Mapping[str, str], bytes]


def body(text: str = "hi", **more: object) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **more}).encode()


async def ask(client: HttpClient, server: ProviderServer, raw: bytes, timeout_s: float = 5) -> Answer:
    reply = await client.post(
        f"{server.base_url}/chat/completions",
        {"Content-Type": "application/json"},
        raw,
        proxy=None,
        timeout_s=timeout_s,
    )
    assert not isinstance(reply, Wait), reply
    try:
        read = await reply.read_all(timeout_s, 1 << 20)
        return reply.status, reply.headers, b"" if isinstance(read, Wait) else read
    finally:
        reply.close()


def usage_of(data: bytes) -> Mapping[str, int]:
    return cast("Mapping[str, int]", json.loads(data).get("usage", {}))


@pytest.fixture
async def client():
    client = HttpClient()
    yield client
    await client.aclose()


async def test_more_calls_at_once_than_it_serves_are_refused_and_counted(client: HttpClient) -> None:
    slow = lambda _: Behaviour(delay_s=0.2)  # noqa: E731
    async with ProviderServer(slow, limits=ServerLimits(concurrent=2)) as server:
        found: list[Answer] = []

        async def one(n: int) -> None:
            found.append(await ask(client, server, body(str(n))))

        async with anyio.create_task_group() as asking:
            for n in range(5):
                asking.start_soon(one, n)
        assert sorted(status for status, _, _ in found) == [200, 200, 429, 429, 429]
        line = server.line("m")
        assert (line.peak, line.refused, line.admitted, line.active) == (2, 3, 2, 0)
        refused = next(headers for status, headers, _ in found if status == 429)
        assert (refused["retry-after"], refused["retry-after-ms"]) == ("1", "1000")
        assert len(server.bill) == 2


async def test_a_client_that_leaves_gives_its_place_back(client: HttpClient) -> None:
    async with ProviderServer([Behaviour("stall"), "two"], limits=ServerLimits(concurrent=1)) as server:
        other = HttpClient()
        with anyio.move_on_after(0.1):
            await ask(other, server, body(stream=True))
        await other.aclose()
        while server.line("m").active:  # noqa: ASYNC110 - the server has no event to wait for
            await anyio.sleep(0.001)
        assert (await ask(client, server, body()))[0] == 200


async def test_requests_and_tokens_of_a_while_are_limited_and_told_in_headers(client: HttpClient) -> None:
    limits = ServerLimits(requests=2, tokens=100_000, per_s=30)
    async with ProviderServer(["a", "b", "c"], limits=limits) as server:
        first = (await ask(client, server, body("1")))[1]
        assert first["x-ratelimit-limit-requests"] == "2"
        assert first["x-ratelimit-remaining-requests"] == "1"
        assert first["x-ratelimit-reset-requests"].endswith("s")
        assert 0 < int(first["x-ratelimit-remaining-tokens"]) < 100_000
        await ask(client, server, body("2"))
        status, headers, said = await ask(client, server, body("3"))
        assert status == 429
        assert 28 < float(headers["retry-after-ms"]) / 1000 <= 30.001
        assert b"Limit 2, Used 2" in said
        assert server.unplayed == 1, "a refusal takes no reply from the script"
        await ask(client, server, body("3"))
        assert server.line("m").early == 1, "it came again before the time that it was told"


async def test_headers_in_the_words_of_anthropic(client: HttpClient) -> None:
    limits = ServerLimits(requests=5, tokens=1, per_s=60, headers="anthropic")
    async with ProviderServer(["a"], limits=limits) as server:
        status, headers, _ = await ask(client, server, body())
        assert status == 429
        assert headers["anthropic-ratelimit-requests-remaining"] == "5"
        assert headers["anthropic-ratelimit-tokens-limit"] == "1"
        assert headers["anthropic-ratelimit-tokens-reset"].endswith("Z")
        assert headers["retry-after"] == "60"
        assert "retry-after-ms" not in headers


async def test_the_bill_has_the_money_to_the_last_picodollar(client: HttpClient) -> None:
    price = ServerPrice(input=0.27, output=1.1, cached_input=0.07)
    async with ProviderServer(["one", "two"], prices=price, caching=True) as server:
        await ask(client, server, body("x" * 400))
        await ask(client, server, body("x" * 400 + "y"))
        first, second = server.bill
        assert first.cached_tokens == 0
        assert second.cached_tokens > 90
        fresh = second.prompt_tokens - second.cached_tokens
        assert (
            second.cost
            == fresh * 270_000 + second.cached_tokens * 70_000 + second.completion_tokens * 1_100_000
        )
        assert json.loads(server.bill_json())["cost"] == (first.cost or 0) + (second.cost or 0) == server.cost


async def test_what_has_no_price_costs_an_unknown_sum(client: HttpClient) -> None:
    async with ProviderServer(["one"], prices={"other": ServerPrice(input=1, output=1)}) as server:
        await ask(client, server, body())
        assert server.bill[0].cost is None
        assert server.cost is None


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ("openai", "maximum context length is 50 tokens"),
        ("anthropic", "> 50 maximum"),
        ("gemini", "tokens allowed (50)"),
        ("llamacpp", "available context size (50 tokens)"),
    ],
)
async def test_a_prompt_above_the_window_is_refused_in_the_words_of_a_provider(
    client: HttpClient, wording: str, said: str
) -> None:
    window = ServerWindow(tokens=50, wording=wording)  # type: ignore[arg-type]
    async with ProviderServer(["one"], window=window) as server:
        status, _, read = await ask(client, server, body("x" * 300))
        assert status == 400
        assert said in read.decode().replace("\\u003e", ">")
        assert (server.bill, server.unplayed) == ([], 1)
        assert (await ask(client, server, body()))[0] == 200


async def test_the_output_counts_where_the_server_says_so(client: HttpClient) -> None:
    window = ServerWindow(tokens=100, wording="vllm", output_counts=True)
    async with ProviderServer(["one"], window=window) as server:
        assert (await ask(client, server, body(max_tokens=90)))[0] == 400
        assert (await ask(client, server, body(max_tokens=10)))[0] == 200


async def test_a_prompt_can_be_cut_without_a_word(client: HttpClient) -> None:
    window = ServerWindow(tokens=50, excess="truncate")
    async with ProviderServer(["one"], window=window) as server:
        status, _, read = await ask(client, server, body("x" * 4000))
        assert status == 200
        assert usage_of(read)["prompt_tokens"] == 50
        assert server.bill[0].prompt_tokens == 50


async def test_it_lies_about_usage_and_charges_the_truth(client: HttpClient) -> None:
    async with ProviderServer(lambda _: Behaviour(text="x" * 400)) as honest:
        await ask(client, honest, body())
        true = honest.bill[0]
    found: dict[str, Mapping[str, int]] = {}
    for lie in ("small", "large", "missing", "negative"):
        async with ProviderServer([Behaviour(text="x" * 400, lie=lie)]) as server:
            found[lie] = usage_of((await ask(client, server, body()))[2])
            assert server.bill[0].completion_tokens == true.completion_tokens == 100
    assert found["small"]["completion_tokens"] == 10
    assert found["large"]["completion_tokens"] == 1000
    assert found["negative"]["completion_tokens"] == -100
    assert found["missing"] == {}


async def test_usage_comes_twice_or_in_some_chunks_only(client: HttpClient) -> None:
    raw = body(stream=True, stream_options={"include_usage": True})
    async with ProviderServer([Behaviour(lie="doubled"), Behaviour(lie="scattered")]) as server:
        twice = (await ask(client, server, raw))[2]
        assert twice.count(b'"prompt_tokens"') == 2
        apart = (await ask(client, server, raw))[2]
        chunks = [json.loads(line[6:]) for line in apart.splitlines() if line.startswith(b"data: {")]
        told = [chunk["usage"] for chunk in chunks if "usage" in chunk]
        assert ["prompt_tokens" in one for one in told] == [True, False]
        assert ["completion_tokens" in one for one in told] == [False, True]


@pytest.mark.parametrize("kind", ["stall_before_headers", "stall", "stall_after_finish"])
async def test_a_stall_that_ends_is_an_answer_after_all(client: HttpClient, kind: str) -> None:
    behaviour = Behaviour(kind, text="here", stall_s=0.05)  # type: ignore[arg-type]
    async with ProviderServer([behaviour]) as server:
        status, _, read = await ask(client, server, body(stream=True))
        assert status == 200
        assert b"here" in read
        assert read.rstrip().endswith(b"[DONE]")


async def test_cut_streams_end_in_the_middle_or_behind_the_finish(client: HttpClient) -> None:
    replies = [Behaviour("truncated", text="abcdefgh", chunk_chars=1), Behaviour("truncated_after_finish")]
    async with ProviderServer(replies) as server:
        half = (await ask(client, server, body(stream=True)))[2]
        assert b'"content":"a"' in half
        assert b'"content":"h"' not in half
        whole = (await ask(client, server, body(stream=True)))[2]
        assert b'"finish_reason":"stop"' in whole
        assert b"[DONE]" not in whole


async def test_success_can_hold_an_error(client: HttpClient) -> None:
    async with ProviderServer([Behaviour("error_body", message="no luck")]) as server:
        status, _, read = await ask(client, server, body(stream=True))
        assert (status, json.loads(read)["error"]["message"]) == (200, "no luck")


async def test_it_changes_its_mind_for_each_request_by_itself(client: HttpClient) -> None:
    faults = [Behaviour("rate_limit"), Behaviour("server_error")]
    async with ProviderServer(fickle(lambda _: Behaviour(), faults, every=2)) as server:
        first = [(await ask(client, server, body("a")))[0] for _ in range(3)]
        second = (await ask(client, server, body("b")))[0]
        assert (first, second) == ([429, 500, 200], 200)
    async with ProviderServer(wavering(lambda _: Behaviour(), faults)) as server:
        each = [[(await ask(client, server, body(text)))[0] for _ in range(2)] for text in "abc"]
        assert each == [[429, 200], [500, 200], [429, 200]]
