"""A model for a `ProviderServer` that does research in plain text alone: it is told tools as text and calls them so.

Like a small model it knows nothing but the request: it reads the form of a call out of the system text, and what it
searched, read and recorded out of the conversation. What it answers depends on the request alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.server import Received

_FORM = re.compile(r"<call-(\w+) NAME>")
_SOURCE = re.compile(r"\bd-[0-9a-f]{10}\b")
_FENCED = re.compile(r"^<<<(\S+)\n(.*?)\n\1>>>", re.M | re.S)
_EVIDENCE = re.compile(
    r"^(u\d+\.e\d+) \((?:supporting|opposing|context)\).*?^Quote: (.*?)(?=\n\n|\n\S+>>>)", re.M | re.S
)
_WRITTEN = re.compile(r"^(.+) \[(u\d+\.e\d+(?:, u\d+\.e\d+)*)\]$", re.M)
_SENTENCE = re.compile(r"[A-Z][^.!?\n\[\]<>*_|`#\\]{30,300}[.!?](?=\s)")
_CORRECTED = "answer without these tags."
"""How the message ends that says how a call is written."""
_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True)
class _Result:
    """A result as the model reads it."""

    tool: str
    failed: bool
    content: str

    @property
    def data(self) -> str:
        """What stands behind a fence."""
        return "\n".join(found[2] for found in _FENCED.finditer(self.content))


class TextResearcher:
    """Give it to a `ProviderServer` as its replies.

    It takes the questions that it is made with as its plan, searches each by its words, reads what was found, records
    the sentences that have most words of the question, and reports all that it is shown.
    """

    def __init__(
        self,
        units: Sequence[str] = (),
        *,
        reads: int = 2,
        quotes: int = 6,
        chunk_chars: int = 7,
        slips: bool = False,
    ) -> None:
        """`units`: questions of the plan; none: the question itself. A unit makes `reads` reads and `quotes` records.

        `slips`: it writes each call wrongly at first, in one way after another, and rightly once it is told so.
        """
        self._units = tuple(units)
        self._reads = reads
        self._quotes = quotes
        self._chunk_chars = chunk_chars
        self._slips = slips
        self.slipped = 0
        """How many calls it wrote wrongly."""
        self.native: list[int] = []
        """Numbers of requests that held anything but plain text: a tool, a call, a result of one."""

    def __call__(self, request: Received) -> Behaviour:
        """The answer to a request."""
        if _is_native(request):
            self.native.append(request.n)
            return Behaviour("invalid_request", message="This model does not support tools.")
        system, task, results = _read(request)
        told = str(request.messages[-1]["content"])
        form = _FORM.search(system)
        if form is None:
            return self._says("There is nothing that I could call.")
        key = form[1]
        if "## corpus_search" in system:
            return self._unit(told, key, task, results)
        if "Arguments: {brief" in system:
            return self._calls(told, key, "", ("structured_output", self._plan(task)))
        return self._calls(told, key, "", ("structured_output", _report(task)))

    def _plan(self, task: str) -> Mapping[str, object]:
        questions = self._units or (_line(task, "Question"),)
        units = [
            {"title": one, "question": one, "objective": "Find what is said of it."} for one in questions
        ]
        return {"brief": "What the documents say.", "units": units}

    def _unit(self, told: str, key: str, task: str, results: Sequence[_Result]) -> Behaviour:
        question = _line(task, "Unit question")
        searched = [one for one in results if one.tool == "corpus_search"]
        if not searched:
            return self._calls(told, key, "I look for it.", ("corpus_search", {"query": question}))
        sources = list(dict.fromkeys(_SOURCE.findall(searched[0].content)))
        reads = [one for one in results if one.tool == "read"]
        if len(reads) < min(self._reads, len(sources)):
            return self._calls(told, key, "I read on.", ("read", {"source": sources[len(reads)]}))
        if not any(one.tool == "record_evidence" for one in results):
            best = _best(question, sources, reads)[: self._quotes]
            if best:
                records = [
                    ("record_evidence", {"source": source, "quote": quote, "claim": quote})
                    for source, quote in best
                ]
                return self._calls(told, key, "This answers it.", *records)
        recorded = sum(one.tool == "record_evidence" and not one.failed for one in results)
        found = {"findings": f"{recorded} passages.", "unresolved": [] if recorded else [question]}
        return self._calls(told, key, "", ("structured_output", found))

    def _calls(self, told: str, key: str, prose: str, *calls: tuple[str, Mapping[str, object]]) -> Behaviour:
        blocks = [
            f"<call-{key} {name}>\n{json.dumps(arguments, ensure_ascii=False)}\n</call-{key}>"
            for name, arguments in calls
        ]
        right = "\n\n".join([*([prose] if prose else []), *blocks])
        if self._slips and not told.endswith(_CORRECTED):
            self.slipped += 1
            return self._says(_slip(right, calls, self.slipped))
        return self._says(right)

    def _says(self, text: str) -> Behaviour:
        return Behaviour("success", text=text, chunk_chars=self._chunk_chars)


def _slip(right: str, calls: Sequence[tuple[str, Mapping[str, object]]], number: int) -> str:
    """A call as models write it who do not keep to the form."""
    name, arguments = calls[0]
    made = {"name": name, "arguments": arguments}
    ways = (
        f"```xml\n{right}\n```",
        f"{right}\n\nThe result is not known to me yet.",
        f"<tool_call>\n{json.dumps(made)}\n</tool_call>",
        right[: right.rfind("\n</call-")],
        json.dumps(made),
    )
    return ways[number % len(ways)]


def _is_native(request: Received) -> bool:
    """Whether a request holds anything that a model without tool calls does not know."""
    plain = all(row.keys() <= {"role", "content"} and row.get("role") != "tool" for row in request.messages)
    return not plain or "tools" in request.body or "tool_choice" in request.body


def _read(request: Received) -> tuple[str, str, list[_Result]]:
    """The system text, the task, and every result in the conversation."""
    contents = [(str(one["role"]), str(one["content"])) for one in request.messages]
    system = next((content for role, content in contents if role == "system"), "")
    told = [content for role, content in contents if role == "user"]
    form = _FORM.search(system)
    key = re.escape(form[1]) if form is not None else "-"
    block = re.compile(rf"^<result-{key} (\S+?)( error)?>\n(.*?)\n</result-{key}>", re.M | re.S)
    results = [
        _Result(found[1], found[2] is not None, found[3])
        for content in told
        for found in block.finditer(content)
    ]
    return system, told[0] if told else "", results


def _line(task: str, label: str) -> str:
    found = re.search(rf"^{label}: (.*)$", task, re.M)
    return found[1].strip() if found is not None else ""


def _best(question: str, sources: Sequence[str], reads: Sequence[_Result]) -> list[tuple[str, str]]:
    """Sentences that were read, each with its source, those with most words of the question first."""
    wanted = {word.lower() for word in _WORD.findall(question)}
    scored: list[tuple[int, int, str, str]] = []
    for source, result in zip(sources, reads, strict=False):
        for found in _SENTENCE.finditer(f"{result.data} "):
            sentence = found.group()
            score = len(wanted & {word.lower() for word in _WORD.findall(sentence)})
            scored.append((-score, len(scored), source, sentence))
    return list(dict.fromkeys((source, sentence) for _, _, source, sentence in sorted(scored)))


def _report(task: str) -> Mapping[str, object]:
    """What the evidence, or the sentences, of the task say, word for word."""
    evidence = list(dict.fromkeys(_EVIDENCE.findall(task)))
    leaves = [
        {"text": " ".join(quote.split()), "evidence": [one], "label": "finding"} for one, quote in evidence
    ]
    heading = "What the sources say"
    if not leaves:
        heading = "In short"
        leaves = [
            {"text": text, "evidence": ids.split(", "), "label": "finding"}
            for text, ids in _WRITTEN.findall(task)[:2]
        ]
    block = {"kind": "list", "items": [[leaf] for leaf in leaves]}
    return {"title": "What was found", "sections": [{"heading": heading, "blocks": [block]}]}
