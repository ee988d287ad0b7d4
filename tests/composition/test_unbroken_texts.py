"""Texts without words, in a small window: results of tools, documents and what a user says never overflow it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from leadline import Leadline
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer, ServerWindow
from leadline.testing.provider_server.server import Received

pytestmark = pytest.mark.anyio

KNOWN = "- {id: models, merge: {providers: {local: {settings: {context_window: 8192}}}}}\n"


def drawn(letters: str, count: int = 200_000) -> str:
    """So many of `letters` in no order."""
    return "".join(random.Random(1).choices(letters, k=count))


TEXTS = {
    "sequence": drawn("acgt"),
    "protein": drawn("ACDEFGHIKLMNPQRSTVWY"),
    "one letter": "x" * 200_000,
    "marks": drawn("!@#$%^&*()[]{}<>?/|:;"),
    "cyrillic": drawn("абвгдежзийклмн"),
    "greek": drawn("αβγδεζηθικλμν"),
    "control characters": drawn("\x00\x01\x02\x1b"),
    "white space": drawn(" \n\t"),
    "base64": drawn("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"),
    "thai": drawn("".join(map(chr, range(0xE01, 0xE2F)))),
    "chinese": drawn("".join(map(chr, range(0x4E00, 0x9000)))),
    "emoji": drawn("😀👍🏽👩‍👩‍👧🇩🇪"),
    "minified": '{"a":[{"b":1,"c":[null,true]}]},' * 6_000,
}


@pytest.mark.parametrize("kind", TEXTS)
async def test_results_of_many_calls_at_once_never_overflow_a_small_window(
    home: Path, tmp_path: Path, kind: str
) -> None:
    def dump(part: int) -> str:
        """Give much."""
        return TEXTS[kind]

    patch = tmp_path / "window.yml"
    patch.write_text(KNOWN)
    calls = Behaviour(calls=tuple(CallSpec("dump", {"part": part}) for part in range(5)))
    rounds = 0

    def answer(request: Received) -> Behaviour:
        nonlocal rounds
        if request.messages[-1]["role"] == "user" and rounds:
            return Behaviour(text="Five parts were dumped.")  # a summary
        rounds += 1
        return calls if rounds < 4 else Behaviour(text="done")

    counted = ServerWindow(tokens=8_192, bytes_per_token=4.0)
    async with ProviderServer(answer, window=counted) as server:
        app = Leadline(
            profile="headless", model="local/m", base_url=server.base_url, home=home, patches=[patch]
        )
        app.tool(dump)
        async with app:
            reply = await app.agent("go on")
        assert reply.completed, reply.end
        assert [counted.refusal(counted.estimate(one.raw), 0) for one in server.requests] == [
            None for _ in server.requests
        ]
