"""A small folder in memory, tools over it as a run has them, and the loop between them and the model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec
import pytest

from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import CallConfig, LlmRequest, ModelRef, Purpose, ToolSchema
from leadline.core.llm.stream import Finish, StreamEvent, TextDelta, ToolCallDelta
from leadline.research.events import Unit
from leadline.research.evidence.governor import SourceGovernor
from leadline.research.extractive.adapter import Extractive
from leadline.research.roles.purposes import UNIT, UnitData, purpose

TOOLS = ("corpus_search", "read", "record_evidence", "structured_output")


@dataclass
class Ended:
    """What a unit did."""

    steps: list[list[tuple[str, dict[str, object]]]] = field(default_factory=list)
    recorded: list[dict[str, object]] = field(default_factory=list)
    finding: dict[str, object] = field(default_factory=dict)
    requests: list[LlmRequest] = field(default_factory=list)

    @property
    def quotes(self) -> list[str]:
        return [str(one["quote"]) for one in self.recorded]

    def calls(self, name: str) -> list[dict[str, object]]:
        return [arguments for step in self.steps for called, arguments in step if called == name]


class Folder:
    """Documents by location; a search ranks them by how many words of the query they hold."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self.by_hash = {hashlib.sha256(text.encode()).hexdigest(): text for text in texts.values()}
        self.model = Extractive(self.by_hash.get)

    def title(self, location: str) -> str:
        if not self.texts[location].strip():
            return location
        return self.texts[location].strip().splitlines()[0].strip("# ")

    def search(self, query: str, limit: int) -> dict[str, object]:
        words = set(re.findall(r"\w{3,}", query.casefold())) | set(re.findall(r"[\u3040-\u9fff]", query))
        scored = [
            (sum(word[:5] in text.casefold() for word in words), name) for name, text in self.texts.items()
        ]
        ranked = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], one[1]))[:limit]
        hits = [
            {
                "source": name,
                "title": self.title(name),
                "location": name,
                "published": None,
                "rank": rank,
                "snapshot": hashlib.sha256(self.texts[name].encode()).hexdigest(),
                "start": 0,
                "end": 10,
                "snippet": "",
            }
            for rank, (_, name) in enumerate(ranked, start=1)
        ]
        return {"query": query, "hits": hits, "total_documents": len(self.texts)}

    def read(self, source: str, start: int = 0, limit: int = 12_000) -> dict[str, object]:
        end = min(len(self.texts[source]), start + limit)
        return {
            "source": source,
            "outcome": "ok",
            "start": start,
            "end": end,
            "total": len(self.texts[source]),
        }

    async def unit(
        self,
        question: str,
        *,
        source_calls: int = 4,
        tools: Sequence[str] = TOOLS,
        refuse: Callable[[str, dict[str, object]], bool] = lambda name, arguments: False,
    ) -> Ended:
        """Drive one unit to its finding; a broken limit or an endless loop fails the test."""
        unit = Unit(id="u1", title=question, question=question)
        why = purpose(UNIT, UnitData(question=question, brief="", unit=unit, source_calls=source_calls))
        governor = SourceGovernor(source_calls, 1)
        ended = Ended()
        conversation = Conversation((UserMessage("m0", (Text("prompts are never read"),)),))
        for step in range(12):
            asked = request(why, conversation, tools)
            ended.requests.append(asked)
            calls = tool_calls([event async for event in self.model.prepare(asked).stream()])
            ended.steps.append([(call.name, msgspec.json.decode(call.arguments)) for call in calls])
            results: list[ToolMessage] = []
            for call, (name, arguments) in zip(calls, ended.steps[-1], strict=True):
                if name == "structured_output":
                    ended.finding = arguments
                    return ended
                assert governor.refusal(name, cast("Mapping[str, JsonValue]", arguments)) is None
                refused = refuse(name, arguments)
                value = {"refused": "no"} if refused else self._run(name, arguments, ended)
                raw = msgspec.Raw(msgspec.json.encode(value))
                results.append(ToolMessage(f"t-{call.id}", call.id, name, "", refused, raw))
            assert results, "the model neither called a tool nor finished"
            said = AssistantMessage(f"a{step}", tuple(calls), "extractive/extractive")
            conversation = conversation.extended(said, *results)
        raise AssertionError("the unit did not come to an end")

    def _run(self, name: str, arguments: dict[str, object], ended: Ended) -> dict[str, object]:
        if name == "corpus_search":
            return self.search(str(arguments["query"]), int(str(arguments["limit"])))
        if name == "read":
            return self.read(**arguments)  # type: ignore[arg-type]
        assert str(arguments["quote"]) in self.texts[str(arguments["source"])]
        ended.recorded.append(arguments)
        return {"evidence": f"u1.e{len(ended.recorded)}"}


def request(why: Purpose, conversation: Conversation, tools: Sequence[str]) -> LlmRequest:
    schemas = tuple(ToolSchema(name, "", {}) for name in tools)
    return LlmRequest(CallConfig(model=ModelRef("extractive", "extractive")), why, "", schemas, conversation)


def tool_calls(events: Sequence[StreamEvent]) -> list[ToolCall]:
    assert isinstance(events[-1], Finish)
    assert events[-1].state == "done"
    return [
        ToolCall(event.id or "", event.name or "", event.arguments)
        for event in events
        if isinstance(event, ToolCallDelta)
    ]


def said(events: Sequence[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.fixture
def folder() -> Callable[[Mapping[str, str]], Folder]:
    """Makes a folder from texts by location."""
    return Folder
