"""The tool `corpus_search`: passages of the corpus for a model."""

from __future__ import annotations

from dataclasses import replace

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from leadline.capabilities.corpus.seam import Corpus, Hit
from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.tokens import text_tokens
from leadline.core.tools.budget import longest
from leadline.core.tools.fence import Delimiter, fence
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.spec import READS, Tool, ToolOutput, description_from

_ONLY_BEST = (
    "Only the best passages are shown, as far as they fit. A read shows a short part as well: give `start` so that "
    "it begins shortly before the characters that you want."
)
_FRAME_TOKENS = 160
"""Room for what stands around the hits."""
_LEAST_PART = 32
"""Tokens of a passage in however little room."""
DEFAULT_LIMIT = 8
"""Documents that a search gives where the model names no number."""


class SearchArguments(BaseModel):
    """What the model gives."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="Words to look for.", min_length=1, max_length=2000)
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=50, description="How many documents at most.")


def search_tool(corpus: Corpus, delimiter: Delimiter, tokens: int | None = None) -> Tool:
    """`corpus_search` over `corpus`; a result has about so many tokens at most. None: no bound."""

    async def execute(args: SearchArguments, call: ToolInvocation) -> ToolOutput:
        hits = await to_thread.run_sync(corpus.search, args.query, args.limit)
        if tokens is not None:
            hits = _fitting(hits, tokens)
        total = corpus.total
        value: JsonValue = {
            "query": args.query,
            "hits": [_value(hit) for hit in hits],
            "total_documents": total,
        }
        content = _content(hits, total, delimiter(call))
        return ToolOutput(value, f"{content}\n{_ONLY_BEST}" if tokens is not None and hits else content)

    return Tool(
        name="corpus_search",
        description=description_from("leadline.capabilities.corpus.tools", "search.md"),
        parameters=SearchArguments,
        execute=execute,
        side_effects=READS,
        parallel=True,
    )


def _fitting(hits: list[Hit], tokens: int) -> list[Hit]:
    """The best hits for which there is room, at least a part of the best one; further passages go first."""
    left = max(tokens - _FRAME_TOKENS, _LEAST_PART)
    kept: list[Hit] = []
    for hit in hits:
        found = next((one for one in (hit, replace(hit, more=())) if text_tokens(_shown(one)) <= left), None)
        if found is None:
            if not kept:
                kept.append(_cut(hit, left))
            break
        kept.append(found)
        left -= text_tokens(_shown(found))
    return kept


def _cut(hit: Hit, tokens: int) -> Hit:
    """A hit with the beginning of its passage alone, as far as there is room for it."""
    bare = replace(hit, more=(), snippet="")
    room = max(_LEAST_PART, tokens - text_tokens(_shown(bare)))
    size = longest(lambda end: hit.snippet[:end], len(hit.snippet), room)
    return replace(bare, snippet=hit.snippet[:size], end=hit.start + size)


def _value(hit: Hit) -> JsonValue:
    document = hit.document
    return {
        "source": document.id,
        "title": document.title,
        "location": document.location,
        "published": document.published,
        "rank": hit.rank,
        "snapshot": document.snapshot.text_sha256,
        "outcome": document.outcome,
        "start": hit.start,
        "end": hit.end,
        "page": hit.page,
        "snippet": hit.snippet,
        "more": [
            {"start": each.start, "end": each.end, "page": each.page, "snippet": each.text}
            for each in hit.more
        ],
    }


def _content(hits: list[Hit], total: int, token: str) -> str:
    if not hits:
        return (
            f"Nothing found in {total} documents. Only words that stand in a text are found: "
            "try other words for the same thing, or fewer."
        )
    shown = "\n\n".join(_shown(hit) for hit in hits)
    count = f"{len(hits)} of {total} documents, best first. Read a source before you rely on it."
    return f"{count}\n{fence(shown, token, 'a search of the corpus')}"


def _shown(hit: Hit) -> str:
    document = hit.document
    lines = [f"[{hit.rank}] source {document.id}", f"title: {_line(document.title)}"]
    lines.append(f"location: {_line(document.location)}")
    if document.published:
        lines.append(f"published: {document.published}")
    if document.outcome != "ok":
        lines.append(f"outcome: {document.outcome} ({_line(document.reason)})")
    lines.append(f"{_place(hit.start, hit.end, hit.page)}:\n{hit.snippet}")
    lines.extend(f"also {_place(each.start, each.end, each.page)}:\n{each.text}" for each in hit.more)
    return "\n".join(lines)


def _place(start: int, end: int, page: int | None) -> str:
    return f"characters {start}–{end}" + (f", page {page}" if page is not None else "")


def _line(text: str) -> str:
    return " ".join(text.split())
