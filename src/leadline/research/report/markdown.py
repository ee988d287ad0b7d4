"""The report as Markdown: everything that comes from a document or a model is text, and nothing else."""

from __future__ import annotations

import re
from urllib.parse import quote as percent

from leadline.research.events import Report
from leadline.research.report.layout import (
    LaidBlock,
    citations_of,
    coverage_lines,
    laid_out,
    made_by,
    mark_of,
    source_facts,
    used_marks,
)
from leadline.research.report.numbering import assert_two_way
from leadline.research.report.result import Citation, ResearchResult, ResultSentence, ResultSource

_SPECIAL = re.compile(r"[\\`*\[\]<|~]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
_ADDRESS = re.compile(r"\b([a-zA-Z][a-zA-Z+.-]*):(?=//)|\b(www)\.|\b(mailto|data|javascript):")
_BLOCK_START = re.compile(r"(?:#{1,6}(?=\s|$)|>|[-+=](?=\s|$|[-=])|\d{1,9}(?=[.)](?:\s|$))|:(?=\s|-))")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_MARK = re.compile(r"(?<!\\)\[(\d+)\]")


def render_markdown(result: ResearchResult, draft: Report) -> str:
    """The report in Markdown, ending with a line break; nothing in it loads or links but the listed addresses.

    Raises:
        CitationsDoNotMatch: marks and entries differ; a defect.
    """
    lines = [f"# {escaped(result.title)}", ""]
    if result.status != "completed":
        why = f" {escaped(result.error)}" if result.error else ""
        lines += [f"> This report is {result.status}.{why}", ""]
    prose: list[str] = []
    for section in laid_out(draft, result):
        prose += [f"## {escaped(section.heading)}", ""]
        for block in section.blocks:
            prose += [*_block(block), ""]
    listing = _sources(result)
    assert_two_way(_numbers(prose), [one.n for one in result.citations])
    assert_two_way(_numbers(listing), [one.n for one in result.citations])
    lines += [*prose, *_legend(result), *listing, *_coverage(result), *_notes(result)]
    return "\n".join(lines).rstrip("\n") + "\n"


def escaped(text: str) -> str:
    """A text as Markdown that shows exactly its characters, on one line, and starts no block."""
    flat = " ".join(_visible(text).split())
    inline = _SPECIAL.sub(lambda match: "\\" + match.group(), flat)
    inline = _ADDRESS.sub(lambda match: match.group()[:-1] + "\\" + match.group()[-1], inline)
    start = _BLOCK_START.match(inline)
    if start and start.group()[0].isdigit():
        return inline[: start.end()] + "\\" + inline[start.end() :]
    return "\\" + inline if start else inline


def _visible(text: str) -> str:
    """Control and direction-changing characters are dropped: they can make a text look like another."""
    return re.sub(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", "", text)


def _numbers(lines: list[str]) -> list[int]:
    return [int(found) for line in lines for found in _MARK.findall(line)]


def _sentence(sentence: ResultSentence) -> str:
    numbers = "".join(f"[{n}]" for n in sentence.citations)
    return " ".join(part for part in (escaped(sentence.text), numbers, mark_of(sentence)) if part)


def _row(row: tuple[ResultSentence, ...]) -> str:
    return " ".join(_sentence(sentence) for sentence in row)


def _block(block: LaidBlock) -> list[str]:
    if block.kind == "list":
        return [f"- {_row(row)}" for row in block.rows]
    if block.kind == "table":
        header = "| " + " | ".join(escaped(cell) for cell in block.header) + " |"
        rule = "|" + " --- |" * len(block.header)
        return [header, rule, *("| " + " | ".join(map(_sentence, row)) + " |" for row in block.rows)]
    return [_row(row) for row in block.rows]


def _legend(result: ResearchResult) -> list[str]:
    marks = used_marks(result)
    if not marks:
        return []
    return ["Marks: " + "; ".join(f"{mark} {meaning}" for mark, meaning in marks) + ".", ""]


def _sources(result: ResearchResult) -> list[str]:
    lines = ["## Sources", ""]
    if not result.sources:
        return [*lines, "None cited.", ""]
    for source in result.sources:
        lines.append(
            f"- {escaped(source.title)} ({_location(source)}): {escaped(source_facts(source, result))}"
        )
        lines += [f"  - {_citation(one)}" for one in citations_of(result, source)]
    return [*lines, ""]


def _citation(citation: Citation) -> str:
    page = f" p. {citation.page}" if citation.page is not None else ""
    return f'[{citation.n}]{page} "{escaped(citation.quote)}"'


def _location(source: ResultSource) -> str:
    if _WEB.match(source.location):
        return f"<{percent(source.location, safe='/:?#@!$&()*+,;=%-._~[]')}>"
    return escaped(source.location)


def _coverage(result: ResearchResult) -> list[str]:
    found = result.coverage
    lines = ["## Coverage", "", *(f"- {escaped(line)}" for line in coverage_lines(result))]
    for one in found.blocked_sources:
        reason = f" ({one.reason})" if one.reason else ""
        lines.append(f"- Not usable: {escaped(f'{one.title}, {one.location}: {one.outcome}{reason}')}")
    lines += [f"- Unresolved: {escaped(text)}" for text in found.unresolved]
    return [*lines, ""]


def _notes(result: ResearchResult) -> list[str]:
    lines = ["## Notes", "", *(f"- {escaped(note)}" for note in result.notes)]
    return [*lines, f"- {escaped(made_by(result))}", ""]
