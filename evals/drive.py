"""Drives the extractive model through planner, researchers and writer over an open folder, without an engine.

The tools are those of the corpus, bounded as in a run; recording evidence is a list. What is measured is the
model: which quotes it records, in which order, and what it says it did not find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

import msgspec

from leadline.capabilities.corpus.tools.read import ReadArguments, read_tool
from leadline.capabilities.corpus.tools.search import SearchArguments, search_tool
from leadline.core.llm.jsonvalue import JsonObject, JsonValue
from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from leadline.core.llm.request import CallConfig, LlmRequest, ModelRef, Purpose, ToolSchema
from leadline.core.llm.stream import TextDelta, ToolCallDelta
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import ToolOutput
from leadline.research.events import Polarity, Unit
from leadline.research.evidence.governor import SourceGovernor
from leadline.research.extractive.adapter import Extractive
from leadline.research.roles.purposes import (
    PLANNING,
    SYNTHESIS,
    UNIT,
    EvidenceItem,
    EvidenceSource,
    PlanningData,
    SynthesisData,
    UnitData,
    UnitReport,
    VersionPair,
    purpose,
)
from leadline.research.roles.schemas import Finding, Plan
from leadline.research.sources.dates import document_date
from leadline.research.sources.versions import DocInfo, relate_versions

from .folder import OpenFolder

MAX_STEPS = 12
SOURCE_CALLS = 4
UNITS = 2
_NOT_A_CALL = cast("ToolInvocation", None)
"""The corpus tools look at their arguments alone."""


@dataclass
class Answered:
    """What came of one question."""

    evidence: list[EvidenceItem] = field(default_factory=list[EvidenceItem])
    unresolved: list[str] = field(default_factory=list[str])
    report: JsonObject = field(default_factory=dict[str, object])
    searches: int = 0
    reads: int = 0


class Stuck(AssertionError):
    """The model did not come to an end, or broke a limit."""


async def answer(folder: OpenFolder, question: str, *, source_calls: int = SOURCE_CALLS) -> Answered:
    """Plan, research and write. The report is left out when there is no evidence, as in a run."""
    model = Extractive(lambda digest: folder.snapshots.text(digest) if digest else None)
    planned = await _once(model, purpose(PLANNING, PlanningData(question=question, max_units=UNITS)))
    plan = msgspec.convert(planned, Plan)
    answered = Answered()
    reports: list[UnitReport] = []
    for number, unit in enumerate(plan.units, start=1):
        one = Unit(id=f"u{number}", title=unit.title, question=unit.question, objective=unit.objective)
        reports.append(await _Researcher(model, folder, one, question, answered, source_calls).run())
    answered.unresolved = [text for report in reports for text in report.unresolved]
    if answered.evidence:
        answered.report = cast(
            "JsonObject",
            await _once(model, purpose(SYNTHESIS, _synthesis(folder, question, reports, answered))),
        )
    return answered


async def _once(model: Extractive, why: Purpose) -> object:
    """The value of the one `structured_output` that a planner or writer makes."""
    calls = await _calls(model, why, Conversation(), ("structured_output",))
    if len(calls) != 1:
        raise Stuck(f"{why.name}: {len(calls)} calls instead of one")
    return msgspec.json.decode(calls[0].arguments)


async def _calls(
    model: Extractive, why: Purpose, conversation: Conversation, tools: tuple[str, ...]
) -> list[ToolCall]:
    schemas = tuple(ToolSchema(name, "", {}) for name in tools)
    config = CallConfig(model=ModelRef("extractive", "extractive"))
    prepared = model.prepare(LlmRequest(config, why, "", schemas, conversation))
    found: list[ToolCall] = []
    async for event in prepared.stream():
        if isinstance(event, ToolCallDelta):
            found.append(ToolCall(event.id or "", event.name or "", event.arguments))
        elif isinstance(event, TextDelta):
            break
    return found


class _Researcher:
    """One unit: the loop between the model and its tools."""

    def __init__(
        self,
        model: Extractive,
        folder: OpenFolder,
        unit: Unit,
        question: str,
        answered: Answered,
        source_calls: int,
    ) -> None:
        self._model = model
        self._folder = folder
        self._unit = unit
        self._answered = answered
        self._governor = SourceGovernor(source_calls, 1)
        self._why = purpose(UNIT, UnitData(question=question, brief="", unit=unit, source_calls=source_calls))
        self._recorded = 0
        self._tools: Mapping[str, Callable[[JsonObject], object]] = {}

    async def run(self) -> UnitReport:
        conversation = Conversation((UserMessage("m0", (Text(self._unit.question),)),))
        names = ("corpus_search", "read", "record_evidence", "structured_output")
        for step in range(MAX_STEPS):
            calls = await _calls(self._model, self._why, conversation, names)
            if not calls:
                raise Stuck(f"{self._unit.question}: no call at step {step}")
            said = AssistantMessage(f"a{step}", tuple(calls), "extractive/extractive")
            results: list[ToolMessage] = []
            for call in calls:
                arguments = cast("JsonObject", msgspec.json.decode(call.arguments))
                if call.name == "structured_output":
                    return self._report(arguments)
                value, failed = await self._run_tool(call.name, arguments)
                raw = msgspec.Raw(msgspec.json.encode(value))
                results.append(ToolMessage(f"t{call.id}", call.id, call.name, "", failed, raw))
            conversation = conversation.extended(said, *results)
        raise Stuck(f"{self._unit.question}: not finished after {MAX_STEPS} steps")

    def _report(self, arguments: JsonObject) -> UnitReport:
        finding = msgspec.convert(arguments, Finding)
        return UnitReport(
            id=self._unit.id,
            title=self._unit.title,
            question=self._unit.question,
            status="completed",
            findings=finding.findings,
            unresolved=finding.unresolved,
            limitations=finding.limitations,
        )

    async def _run_tool(self, name: str, arguments: JsonObject) -> tuple[JsonValue, bool]:
        refusal = self._governor.refusal(name, cast("Mapping[str, JsonValue]", arguments))
        if refusal:
            raise Stuck(f"{self._unit.question}: {refusal}")
        if name == "record_evidence":
            return self._record(arguments), False
        if name == "corpus_search":
            self._answered.searches += 1
            asked = SearchArguments.model_validate(arguments)
            output = await search_tool(self._folder.corpus, self._delimiter).execute(asked, _NOT_A_CALL)
        else:
            self._answered.reads += 1
            read = ReadArguments.model_validate(arguments)
            output = await read_tool(self._folder.corpus, self._delimiter).execute(read, _NOT_A_CALL)
        assert isinstance(output, ToolOutput)
        self._governor.observe(name, cast("Mapping[str, JsonValue]", output.value))
        return output.value, output.is_error

    def _delimiter(self, call: ToolInvocation) -> str:
        return self._folder.ids.token(9)

    def _record(self, arguments: JsonObject) -> JsonValue:
        source, quote = str(arguments["source"]), str(arguments["quote"])
        text = self._folder.corpus.text(source)
        if quote not in text:
            raise Stuck(f"{self._unit.question}: a quote is not in its source: {quote!r}")
        self._recorded += 1
        document = self._folder.corpus.document(source)
        dated = document_date(text, document.published)
        item = EvidenceItem(
            id=f"{self._unit.id}.e{self._recorded}",
            unit=self._unit.id,
            quote=quote,
            claim=str(arguments["claim"]),
            polarity=cast("Polarity", arguments["polarity"]),
            source=EvidenceSource(
                id=source,
                title=document.title,
                location=document.location,
                published=dated.date if dated else None,
            ),
        )
        self._answered.evidence.append(item)
        return {"evidence": item.id, "source": source}


def _synthesis(
    folder: OpenFolder, question: str, units: list[UnitReport], answered: Answered
) -> SynthesisData:
    sources = {item.source.id: item.source for item in answered.evidence}
    documents = [
        DocInfo(one.id, one.title, one.location, one.published, folder.corpus.text(one.id))
        for one in sources.values()
    ]
    return SynthesisData(
        question=question,
        brief="",
        units=tuple(units),
        evidence=tuple(answered.evidence),
        versions=tuple(
            VersionPair(newer=pair.newer, older=pair.older, reason=pair.reason)
            for pair in relate_versions(documents)
        ),
        unresolved=tuple(answered.unresolved),
    )
