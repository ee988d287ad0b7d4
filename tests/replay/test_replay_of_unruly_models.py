"""Models that err, fail and answer in any order: three units at once, and every request is the recorded one."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import msgspec
import pytest

from leadline import Leadline
from leadline.research.replay.told import told
from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.conftest import FakeResearcher, call

pytestmark = pytest.mark.anyio

QUERIES = ("hotel caps", "expense policy 2023", "night version")
MISTAKES = (
    Behaviour("rate_limit"),
    Behaviour("invalid_request"),
    Behaviour("stream_eof"),
    Behaviour("empty"),
    Behaviour(text="Let me think about it."),
    call("read", {"source": "d-0123456789"}),
    call("record_evidence", {"source": "d-0123456789", "quote": "nowhere", "claim": "c"}),
)


def unruly(random: Random) -> FakeResearcher:
    """Does its work, more or less, at a pace of its own."""

    def answer(request: Received) -> Behaviour:
        if random.random() < 0.25:
            return random.choice(MISTAKES)
        told = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
        sources = re.findall(r"source (d-[0-9a-f]{10})", "\n".join(told))
        quotes = re.findall(r"Hotel caps: EUR \d+ per night", "\n".join(told))
        if not told:
            return call("corpus_search", {"query": random.choice(QUERIES)})
        if len(told) < 3 and sources:
            return call("read", {"source": random.choice(sources)})
        if len(told) < 5 and sources and quotes:
            quote = {
                "source": random.choice(sources),
                "quote": random.choice(quotes),
                "claim": "There is a cap.",
            }
            return call("record_evidence", quote)
        return call("structured_output", {"findings": "found", "unresolved": ["the rest"]})

    def written(request: Received) -> Behaviour:
        ids = re.findall(r"(u\d\.e\d) \(", str(request.messages[1]["content"]))
        sentences = [{"text": "There is a cap.", "evidence": [one], "label": "finding"} for one in ids[:4]]
        block = {"kind": "paragraph", "sentences": sentences}
        return call("structured_output", {"title": "t", "sections": [{"heading": "h", "blocks": [block]}]})

    def unit(request: Received) -> Behaviour:
        return msgspec.structs.replace(answer(request), delay_s=random.random() / 30)

    return FakeResearcher(units=3, unit=unit, writer=written)


@pytest.mark.parametrize("seed", range(6))
async def test_a_run_of_an_unruly_model_is_replayed_to_the_byte(
    home: Path, tmp_path: Path, seed: int
) -> None:
    corpus = tmp_path / "policies"
    corpus.mkdir()
    for year in range(2020, 2026):
        text = f"# Expense Policy ({year})\n\nHotel caps: EUR {year - 1870} per night. Version {year}.\n"
        (corpus / f"policy-{year}.md").write_text(text)
    async with (
        ProviderServer(unruly(Random(seed))) as server,
        Leadline(model="local/fake", base_url=server.base_url) as app,
    ):
        result = await app.research("What may a hotel night cost?", corpus=[corpus], breadth="broad")
    async with Leadline() as app:
        replayed = await app.replay(result.id)
    assert replayed.same, "\n".join(told(replayed))
    assert len(replayed.asked) == result.usage.calls
