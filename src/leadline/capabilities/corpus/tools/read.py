"""The tool `read`: the text of one source of the corpus, with continuation."""

from __future__ import annotations

import difflib

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from leadline.capabilities.corpus.seam import Corpus, CorpusDocument, UnknownDocument
from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.tools.budget import FRAME_CHARS, Room, fitting
from leadline.core.tools.fence import Delimiter, fence
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import READS, Tool, ToolOutput, description_from

_SNAP = 200
"""A part ends at a line or sentence end if there is one in its last so many code points."""


class ReadArguments(BaseModel):
    """What the model gives."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(description="A source id, as a search gives it.", min_length=1, max_length=1000)
    start: int = Field(default=0, ge=0, description="The first character to read, counted from 0.")
    limit: int = Field(default=12_000, ge=1, le=100_000, description="How many characters at most.")


def read_tool(corpus: Corpus, delimiter: Delimiter, tokens: int | None = None) -> Tool:
    """`read` over `corpus`; a result has about so many tokens at most. None: no bound beside what is asked for."""

    def room(text: str, args: ReadArguments) -> int:
        if tokens is None:
            return args.limit
        return fitting(Room(args.limit + FRAME_CHARS, tokens), text, args.start, args.limit)

    async def execute(args: ReadArguments, call: ToolInvocation) -> ToolOutput:
        try:
            document = _find(corpus, args.source)
        except UnknownDocument as error:
            return _unknown(error)
        if not document.readable:
            return _without_text(document)
        text = await to_thread.run_sync(corpus.text, document.id)
        if args.start >= len(text):
            return _past_the_end(document, args.start, len(text))
        end = _part_end(text, args.start, min(args.limit, room(text, args)))
        return _part(document, text, args.start, end, delimiter(call))

    return Tool(
        name="read",
        description=description_from("leadline.capabilities.corpus.tools", "read.md"),
        parameters=ReadArguments,
        execute=execute,
        side_effects=READS,
        parallel=True,
    )


def _find(corpus: Corpus, source: str) -> CorpusDocument:
    """By id; by location, whole and exact, as models use what they see. It is compared, never opened."""
    try:
        return corpus.document(source)
    except UnknownDocument as error:
        named = [document for document in corpus.documents() if document.location == source]
        if named:
            return named[0]
        locations = {document.location: document.id for document in corpus.documents()}
        near = difflib.get_close_matches(source, locations, n=3, cutoff=0.6)
        nearest = dict.fromkeys((*error.nearest, *(locations[name] for name in near)))
        raise UnknownDocument(source, tuple(nearest)[:3]) from error


def _unknown(error: UnknownDocument) -> ToolOutput:
    near = f" The nearest are {', '.join(error.nearest)}." if error.nearest else ""
    content = f"There is no source with this id.{near} Search first; each hit names its source id."
    value: JsonValue = {"source": error.id, "error": "unknown source", "nearest": list(error.nearest)}
    return ToolOutput(value, content, is_error=True, error_code="UNKNOWN_SOURCE")


def _without_text(document: CorpusDocument) -> ToolOutput:
    value = _value(document, 0, 0, document.snapshot.length, None)
    content = (
        f"Source {document.id} could not be read: {document.outcome} ({_line(document.reason)}). "
        "It has no text to quote; use other sources and name this gap where it matters."
    )
    return ToolOutput(value, content)


def _past_the_end(document: CorpusDocument, start: int, total: int) -> ToolOutput:
    value = _value(document, total, total, total, None)
    content = f"start={start} is past the end: source {document.id} has {total} characters, 0 to {total - 1}."
    return ToolOutput(value, content, is_error=True, error_code="PAST_THE_END")


def _part(document: CorpusDocument, text: str, start: int, end: int, token: str) -> ToolOutput:
    total = len(text)
    following = end if end < total else None
    value = _value(document, start, end, total, following)
    head = f"Source {document.id}, characters {start}–{end} of {total}"
    first, last = _pages(document, start, end)
    if first is not None:
        head += f", page {first}" if first == last else f", pages {first}–{last}"
    head += f"; continue with start={following}." if following is not None else "; complete."
    if document.outcome == "partial":
        head += f" The source is partial: {_line(document.reason)}."
    label = f"{document.title} ({document.location})"
    if document.published:
        head += f" Published {document.published}."
    return ToolOutput(value, f"{head}\n{fence(text[start:end], token, label)}")


def _value(document: CorpusDocument, start: int, end: int, total: int, following: int | None) -> JsonValue:
    first, last = _pages(document, start, end)
    return {
        "source": document.id,
        "title": document.title,
        "location": document.location,
        "published": document.published,
        "outcome": document.outcome,
        "reason": document.reason,
        "snapshot": document.snapshot.text_sha256,
        "start": start,
        "end": end,
        "total": total,
        "complete": following is None,
        "next": following,
        "page": first,
        "last_page": last,
    }


def _pages(document: CorpusDocument, start: int, end: int) -> tuple[int | None, int | None]:
    if end <= start:
        return None, None
    return document.snapshot.page_at(start), document.snapshot.page_at(end - 1)


def _part_end(text: str, start: int, limit: int) -> int:
    """Where a part ends: everything is shown once, and sentences stay whole where that costs little."""
    end = start + limit
    if end >= len(text):
        return len(text)
    if limit <= 2 * _SNAP:
        return end
    for border in ("\n", ". ", "。", " "):
        found = text.rfind(border, end - _SNAP, end)
        if found >= 0:
            return found + len(border)
    return end


def _line(text: str) -> str:
    return " ".join(text.split())
