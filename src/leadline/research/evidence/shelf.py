"""What one unit may search and read: the corpus tools, governed, with every use written to the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import msgspec
from anyio import to_thread
from pydantic import BaseModel

from leadline.capabilities.corpus.seam import Corpus, CorpusDocument, UnknownDocument
from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import BlobWriteFailed
from leadline.core.session.log import Session
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.shape import Violations
from leadline.core.tools.spec import Tool, ToolOutput
from leadline.research.events import FoundBy, PageSpan, Searched, Source, SourceFound, SourceRead
from leadline.research.evidence.citing import Cited, MadeCall, calls_of
from leadline.research.evidence.governor import READ, SEARCH, SOURCE_TOOLS, SourceGovernor
from leadline.research.evidence.record import RunRecord
from leadline.research.sources.dates import document_date


@dataclass(frozen=True)
class SourceShelf:
    """The corpus of a run as sources of its ledger."""

    corpus: Corpus
    record: RunRecord
    now: Callable[[], str]
    """ISO time in UTC."""
    blobs: Blobs

    async def keep(self, source: str) -> None:
        """Make the text of a source survive a power cut, before a quote says what stands in it.

        What the disk could not promise is reported; the text is stored all the same.

        Raises:
            BlobWriteFailed: the text is not stored, and cannot be.
        """
        known = self.record.ledger.sources.get(source)
        quoted = any(quote.source == source for quote in self.record.ledger.quotes.values())
        if known is None or not known.snapshot or quoted:
            return
        text = self.corpus.text(source).encode("utf-8", "surrogatepass")
        try:
            await to_thread.run_sync(partial(self.blobs.put, text, synced=True))
        except BlobWriteFailed as error:
            if not self.blobs.has(known.snapshot):
                raise
            self.record.report(error, f"making the text of {known.location} survive a power cut")

    def document(self, id: str) -> CorpusDocument | None:  # noqa: A002 - the word that the tools use
        """The document with this id; None where there is none."""
        try:
            return self.corpus.document(id)
        except UnknownDocument:
            return None

    def find(self, document: CorpusDocument, found_by: FoundBy | None) -> None:
        """Enter a document into the ledger, once."""
        if document.id not in self.record.ledger.sources:
            self.record.append(SourceFound(source=self._source(document, found_by)))

    def _source(self, document: CorpusDocument, found_by: FoundBy | None) -> Source:
        snapshot = document.snapshot
        text = self.corpus.text(document.id)
        dated = document_date(text, document.published) if text else None
        return Source(
            id=document.id,
            key=f"{document.location}#{snapshot.bytes_sha256[:12]}",
            title=document.title,
            location=document.location,
            published=dated.date if dated else document.published,
            retrieved_at=self.now(),
            outcome=document.outcome,
            reason=document.reason,
            snapshot=snapshot.text_sha256,
            bytes_sha256=snapshot.bytes_sha256,
            media_type=snapshot.media_type,
            method=snapshot.method,
            method_version=snapshot.method_version,
            pages=tuple(
                PageSpan(number=page.number, start=page.start, end=page.end) for page in snapshot.pages
            ),
            found_by=found_by,
        )


class UnitSources:
    """The source tools of one attempt at one unit.

    Every use is written down as its result is handed to the model: what the ledger says was searched and read
    is what was searched and read, never what a model says about it.
    """

    def __init__(
        self, unit: str, shelf: SourceShelf, tools: Sequence[Tool], governor: SourceGovernor
    ) -> None:
        self._unit = unit
        self._shelf = shelf
        self._governor = governor
        self.tools = tuple(self._governed(tool) for tool in tools)
        self._by_name = {tool.name: tool for tool in tools}

    def restore(self, child: Session) -> None:
        """Count what an attempt that is taken up used before, and write down what its run did not come to.

        The log of the child has the result of each call, so a fact of the run that a power cut took is made again.
        """
        for made in calls_of(child):
            if made.name not in SOURCE_TOOLS:
                continue
            self._governor.refusal(made.name, self._as_run(made))
            if not made.is_error:
                self._governor.observe(made.name, made.value)
                self._write_down(made.name, made.value, Cited(child.id, made.seq, made.call_id))

    def _as_run(self, made: MadeCall) -> Mapping[str, JsonValue]:
        """The arguments as the tool was run with them: the log has what the model wrote, without defaults."""
        tool = self._by_name.get(made.name)
        if tool is None:
            return made.arguments
        try:
            return _plain(tool.takes.accept(msgspec.json.encode(made.arguments).decode()))
        except Violations:
            return made.arguments  # by an earlier version, whose tool took what this one does not

    def _governed(self, tool: Tool) -> Tool:
        async def execute(arguments: object, call: ToolInvocation) -> ToolOutput | JsonValue:
            given = _plain(arguments)
            refusal = self._governor.refusal(tool.name, given)
            if refusal:
                return ToolOutput({"refused": refusal}, refusal, is_error=True, error_code="SOURCE_LIMIT")
            output = await tool.execute(arguments, call)
            value = output.value if isinstance(output, ToolOutput) else output
            if isinstance(value, Mapping):
                self._governor.observe(tool.name, value)
                self._write_down(tool.name, value, Cited.of(call))
            return output

        return replace(tool, execute=execute)

    def _write_down(self, tool: str, value: Mapping[str, JsonValue], cited: Cited) -> None:
        if self._shelf.record.of_call(cited.child, cited.seq) is not None:
            return  # the call is made again by a run that was taken up
        if tool == SEARCH:
            self._searched(value, cited)
        elif tool == READ:
            self._read(value, cited)

    def _searched(self, value: Mapping[str, JsonValue], cited: Cited) -> None:
        query = str(value.get("query", ""))
        hits = cast("Sequence[Mapping[str, JsonValue]]", value.get("hits") or ())
        ids = tuple(dict.fromkeys(str(hit["source"]) for hit in hits))
        for rank, source in enumerate(ids, start=1):
            document = self._shelf.document(source)
            if document:
                self._shelf.find(document, FoundBy(call=cited.call_id, query=query, rank=rank))
        self._shelf.record.append(
            Searched(unit=self._unit, query=query, sources=ids, child=cited.child, seq=cited.seq)
        )

    def _read(self, value: Mapping[str, JsonValue], cited: Cited) -> None:
        document = self._shelf.document(str(value.get("source", "")))
        if document is None:
            return
        self._shelf.find(document, FoundBy(call=cited.call_id))
        start, end = value.get("start"), value.get("end")
        if isinstance(start, int) and isinstance(end, int) and end > start:
            self._shelf.record.append(
                SourceRead(
                    source=document.id,
                    start=start,
                    end=end,
                    unit=self._unit,
                    child=cited.child,
                    seq=cited.seq,
                )
            )


def _plain(arguments: object) -> Mapping[str, JsonValue]:
    if isinstance(arguments, BaseModel):
        return arguments.model_dump(mode="json")
    return cast("Mapping[str, JsonValue]", arguments) if isinstance(arguments, Mapping) else {}
