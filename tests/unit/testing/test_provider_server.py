"""The provider server keeps the books, refuses what a strict provider refuses, and runs alone."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from leadline.testing.provider_server import Behaviour, ProviderServer, Received, Script
from leadline.testing.provider_server.script import Route
from leadline.testing.provider_server.validate import refusal

pytestmark = pytest.mark.anyio

USER = {"role": "user", "content": "hi"}


def body(*messages: Mapping[str, object], **more: object) -> dict[str, object]:
    return {"model": "m", "messages": list(messages) or [USER], **more}


def fetch(url: str, data: Mapping[str, object] | None = None, **headers: str) -> tuple[int, bytes]:
    raw = None if data is None else json.dumps(data).encode()
    asked = urllib.request.Request(
        url, raw, {name.replace("_", "-"): value for name, value in headers.items()}
    )
    try:
        with urllib.request.urlopen(asked, timeout=10) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


async def post(server: ProviderServer, data: Mapping[str, object], **headers: str) -> tuple[int, bytes]:
    return await anyio.to_thread.run_sync(
        lambda: fetch(f"{server.base_url}/chat/completions", data, **headers)
    )


async def test_a_used_up_script_is_a_server_error() -> None:
    async with ProviderServer(["one"]) as server:
        assert (await post(server, body()))[0] == 200
        status, said = await post(server, body())
        assert status == 500
        assert b"no reply left" in said


async def test_the_bill_lists_paid_calls_and_repeated_keys() -> None:
    async with ProviderServer(["one", Behaviour("rate_limit"), "two"]) as server:
        for _ in range(3):
            await post(server, body(), idempotency_key="k")
        _, raw = await anyio.to_thread.run_sync(lambda: fetch(server.base_url.removesuffix("/v1") + "/bill"))
    bill = json.loads(raw)
    assert (bill["requests"], len(bill["calls"]), bill["repeated_keys"]) == (3, 2, ["k"])
    assert bill["prompt_tokens"] == sum(charge.prompt_tokens for charge in server.bill) > 0


async def test_a_function_of_the_request_may_choose_the_reply() -> None:
    def answer(request: Received) -> Behaviour:
        return Behaviour(text=f"{len(request.messages)} messages, tools {request.tools}")

    async with ProviderServer(answer) as server:
        _, raw = await post(server, body(USER, tools=[{"type": "function", "function": {"name": "f"}}]))
    assert json.loads(raw)["choices"][0]["message"]["content"] == "1 messages, tools ('f',)"


async def test_routes_answer_requests_that_offer_a_tool_or_hold_a_text() -> None:
    script = Script(
        ["other"],
        [Route((Behaviour(text="tool"),), tool="f"), Route((Behaviour(text="word"),), contains="magic")],
    )
    async with ProviderServer(script) as server:
        texts = [
            json.loads((await post(server, asked))[1])["choices"][0]["message"]["content"]
            for asked in (
                body({"role": "user", "content": "magic"}),
                body(),
                body(USER, tools=[{"type": "function", "function": {"name": "f"}}]),
            )
        ]
        assert (texts, server.unplayed) == (["word", "other", "tool"], 0)


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {"role": "tool", "tool_call_id": "c", "content": "x"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (body(USER, ASKS, ANSWER, USER), None),
        (body(surprise=1), "unknown keys: surprise"),
        (body({"role": "user", "content": ""}), "content is empty"),
        (body({"role": "assistant", "content": None}), "content is empty"),
        (body(USER, ASKS), "call c has no result"),
        (body(USER, ASKS, USER, ANSWER), "has no result before"),
        (body(USER, ANSWER), "answers no open call"),
        (body({**ASKS, "tool_calls": []}), "tool_calls is empty"),
        ({"messages": [USER]}, "model is missing"),
        ({"model": "m", "messages": []}, "missing or empty"),
    ],
)
def test_a_strict_provider_refuses_what_real_ones_refuse(
    asked: Mapping[str, object], words: str | None
) -> None:
    reason = refusal(asked)
    assert reason is None if words is None else words in str(reason)


async def test_strict_mode_answers_400_with_the_reason() -> None:
    async with ProviderServer(["x"], strict=True) as server:
        status, said = await post(server, body(surprise=1))
        assert status == 400
        assert b"surprise" in said
        assert server.unplayed == 1


def test_it_runs_as_a_program_of_its_own(tmp_path: Path) -> None:
    script, port = tmp_path / "script.json", tmp_path / "port"
    script.write_text(json.dumps([{"text": "from afar"}]), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "leadline.testing.provider_server",
        "--script",
        str(script),
        "--port-file",
        str(port),
    ]
    with subprocess.Popen(command) as process:
        try:
            while not port.exists():
                assert process.poll() is None
            url = f"http://127.0.0.1:{port.read_text().strip()}"
            _, raw = fetch(f"{url}/v1/chat/completions", body())
            assert json.loads(raw)["choices"][0]["message"]["content"] == "from afar"
            assert json.loads(fetch(f"{url}/bill")[1])["requests"] == 1
        finally:
            process.terminate()
    assert process.returncode == 0


async def test_the_bill_by_key_tells_what_was_asked_charged_and_answered() -> None:
    replies = ["one", Behaviour("rate_limit"), "three", Behaviour("stall")]
    async with ProviderServer(replies) as server:
        for key in ("a", "b", "b"):
            await post(server, body(), idempotency_key=key)
        assert await anyio.to_thread.run_sync(lambda: is_left_waiting(server))
        await post(server, body())
        found = server.by_key()
        pages = json.loads((await anyio.to_thread.run_sync(lambda: fetch(server.base_url[:-3] + "/bill")))[1])
    assert {key: (one.requests, one.charged, one.answered, one.bodies) for key, one in found.items()} == {
        "a": ((0,), 1, 1, 1),
        "b": ((1, 2), 1, 2, 1),
        "c": ((3,), 0, 0, 1),
    }
    assert pages["keys"]["b"] == {"requests": [1, 2], "charged": 1, "answered": 2, "bodies": 1}


def is_left_waiting(server: ProviderServer) -> bool:
    whole = json.dumps(body(stream=True)).encode()
    asked = urllib.request.Request(f"{server.base_url}/chat/completions", whole, {"idempotency-key": "c"})
    try:
        with urllib.request.urlopen(asked, timeout=0.3) as reply:
            reply.read()
    except TimeoutError:
        return True
    return False
