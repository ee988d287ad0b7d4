"""A model that does research for a `ProviderServer`, deterministically: what it answers depends on the request alone.

Asked again, by whichever process, it gives the same answer, so that a run which was interrupted can be
compared with one that was not. It plans one unit a topic; each searches, reads, records quotes in several
calls at once where there are several, and hands in; the writer cites all that was recorded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import Received

_SOURCE = re.compile(r"d-[0-9a-f]{10}")
_EVIDENCE = re.compile(r"^(u\d+\.e\d+) \((?:supporting|opposing|context)\).*?^Quote: (.*?)$", re.M | re.S)


@dataclass(frozen=True)
class Topic:
    """What one unit is to find: a document of the corpus, and sentences that stand in it."""

    name: str
    sentences: tuple[str, ...]

    @property
    def document(self) -> str:
        """The text of its document."""
        return f"# {self.name}\n\n" + "\n\n".join(self.sentences) + "\n"


def topics(count: int = 3, sentences: int = 2) -> tuple[Topic, ...]:
    """Reservoirs, each with facts of its own."""
    names = ("Alder", "Birch", "Cedar", "Damson", "Elder", "Fir", "Gorse", "Hazel")
    return tuple(
        Topic(
            f"{name} reservoir",
            tuple(
                f"The {name} reservoir held {1000 * at + 10 * n} litres of water in {1900 + n}."
                for n in range(1, sentences + 1)
            ),
        )
        for at, name in enumerate(names[:count], 1)
    )


def write_corpus(folder: Path, topics: Sequence[Topic]) -> None:
    """One document a topic, in `folder`, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for topic in topics:
        (folder / f"{topic.name.split()[0].lower()}.md").write_text(topic.document, encoding="utf-8")


class ScriptedResearcher:
    """Give it to a `ProviderServer` as its replies."""

    def __init__(
        self, topics: Sequence[Topic], *, delay_s: float = 0.0, reads: int = 1, at_once: int = 100
    ) -> None:
        """`delay_s` is how long each answer takes.

        A unit reads its document `reads` times, and then records `at_once` quotes in one answer.
        """
        self._topics = topics
        self._delay_s = delay_s
        self._reads = reads
        self._at_once = at_once

    def __call__(self, request: Received) -> Behaviour:
        """The answer to a request."""
        asked = _output_of(request)
        if "units" in asked:
            return self._hand_in(request, self._plan())
        if "sections" in asked:
            return self._hand_in(request, self._report(request))
        return self._researched(request)

    def _plan(self) -> Mapping[str, object]:
        units = [
            {"title": topic.name, "question": f"What is known of the {topic.name}?", "objective": "Figures."}
            for topic in self._topics
        ]
        return {"brief": "Each reservoir by itself.", "units": units}

    def _researched(self, request: Received) -> Behaviour:
        text = str(request.messages[1]["content"])
        asked = (one for one in self._topics if f"What is known of the {one.name}?" in text)
        topic = next(asked, self._topics[0])
        results = [str(message["content"]) for message in request.messages if message["role"] == "tool"]
        if not results:
            return self._calls(request, CallSpec("corpus_search", {"query": topic.name}))
        source = _SOURCE.search(results[0])
        if source is None:
            return self._hand_in(request, {"findings": "", "unresolved": [f"Nothing on the {topic.name}."]})
        if len(results) <= self._reads:
            return self._calls(request, CallSpec("read", {"source": source.group()}))
        recorded = len(results) - self._reads - 1
        quotes = [
            CallSpec("record_evidence", {"source": source.group(), "quote": one, "claim": one})
            for one in topic.sentences[recorded : recorded + self._at_once]
        ]
        if quotes:
            return self._calls(request, *quotes)
        return self._hand_in(request, {"findings": " ".join(topic.sentences), "unresolved": []})

    def _report(self, request: Received) -> Mapping[str, object]:
        leaves = [
            {"text": quote, "evidence": [evidence], "label": "finding"}
            for evidence, quote in sorted(set(_EVIDENCE.findall(str(request.messages[1]["content"]))))
        ]
        block = {"kind": "list", "items": [[leaf] for leaf in leaves]}
        return {"title": "Reservoirs", "sections": [{"heading": "What they held", "blocks": [block]}]}

    def _hand_in(self, request: Received, value: Mapping[str, object]) -> Behaviour:
        return self._calls(request, CallSpec("structured_output", value))

    def _calls(self, request: Received, *calls: CallSpec) -> Behaviour:
        """Calls whose ids come from the request, so that an answer that is given again is the same."""
        digest = hashlib.sha256(request.raw).hexdigest()[:12]
        named = tuple(
            CallSpec(call.name, call.arguments, f"call_{digest}_{at}") for at, call in enumerate(calls)
        )
        return Behaviour("tool_call_success", calls=named, delay_s=self._delay_s)


def _output_of(request: Received) -> Mapping[str, object]:
    """The properties of the output that the request wants."""
    return cast("Mapping[str, object]", request.offered.get("structured_output", {}).get("properties") or {})
