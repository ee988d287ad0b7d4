"""The report as Markdown: everything that comes from a document or a model is text, and nothing else."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import quote as percent

from leadline.core.patterns import lazy_pattern
from leadline.research.events import Report
from leadline.research.report.layout import (
    LaidBlock,
    LaidSentence,
    citations_of,
    coverage_lines,
    labels_of,
    laid_out,
    legend,
    made_by,
    mark_of,
    page_of,
    shown_quote,
    shown_title,
    source_facts,
    status_line,
)
from leadline.research.report.numbering import assert_two_way
from leadline.research.report.result import Citation, ResearchResult, ResultSource
from leadline.research.verify.check import states_nothing

Place = Literal["start", "inside", "cell", "heading"]
"""Where a text stands: first on a line, behind other text, in a table cell, in a heading."""

_ACTIVE = lazy_pattern(
    r"[\\`\[\]]"  # escapes, code, links, footnotes
    r"|\*(?!\s|$)|(?<=\S)\*"  # emphasis; a star between spaces is none
    r"|(?<![^\W_])_(?!\s|$)|(?<=\S)_(?![^\W_])"  # the same for an underscore at the edge of a word
    r"|~(?=~)|(?<=\S)~"  # what could close a struck-out passage or a subscript
    r"|\$(?!\d)"  # what could close a formula
    r"|<(?=[a-zA-Z/!?])"  # tags
    r"|&(?=#?\w+;)"  # entities
)
_ADDRESS = lazy_pattern(
    r"\b([a-zA-Z][a-zA-Z+.-]*):(?=//)|\b(www)\.|\b(mailto|data|javascript|xmpp):", re.IGNORECASE
)
_BLOCK_START = lazy_pattern(
    r"[#>|]|[-+*_](?=\s|$)|-(?=-)|=(?==|$)|(?P<number>\d{1,9})[.)](?=\s|$)|:(?=[\s:~-])|\{(?=[:%{])"
)
_HEADING_END = lazy_pattern(r"#+$")
_HIDDEN = lazy_pattern(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_WEB = lazy_pattern(r"https?://", re.IGNORECASE)
_MARK = lazy_pattern(r"(?<!\\)\[(\d+)\]")


def render_markdown(result: ResearchResult, draft: Report) -> str:
    """The report in Markdown, ending with a line break; nothing in it loads or links but the listed addresses.

    Raises:
        CitationsDoNotMatch: marks and entries differ; a defect.
    """
    words = labels_of(result)
    lines = [f"# {escaped(result.title, 'heading')}", ""]
    status = status_line(result)
    if status:
        lines += [f"> {escaped(status)}", ""]
    prose: list[str] = []
    for section in laid_out(draft, result):
        prose += [f"## {escaped(section.heading, 'heading')}", ""]
        for block in section.blocks:
            prose += [*_block(block), ""]
        if section.heading == words.made:
            prose += [escaped(made_by(result, said=True)), ""]
    listing = _sources(result)
    assert_two_way(_numbers(prose), [one.n for one in result.citations])
    assert_two_way(_numbers(listing), [one.n for one in result.citations])
    lines += prose
    marks = legend(result)
    if marks:
        lines += [marks, ""]
    lines += [*listing, *_list(words.coverage, coverage_lines(result)), *_list(words.notes, result.notes)]
    if all(section.heading != words.made for section in draft.sections):
        lines += [f"## {words.made}", "", escaped(made_by(result)), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def escaped(text: str, place: Place = "start") -> str:
    """A text as Markdown that shows exactly its characters, on one line, and is nothing but text.

    Only what would do something where it stands has a backslash. Control characters, and those that change the
    direction of a text or cannot be seen, are dropped: they can make a text look like another.
    """
    flat = " ".join(_HIDDEN.sub("", text).split())
    inline = _ACTIVE.sub(lambda match: "\\" + match.group(), flat)
    inline = _ADDRESS.sub(lambda match: match.group()[:-1] + "\\" + match.group()[-1], inline)
    if place == "cell":
        return inline.replace("\\|", "\\&#124;").replace("|", "\\|")
    if place == "heading":
        inline = inline.replace("{", "\\{")
        return _HEADING_END.sub(lambda match: "\\#" * len(match.group()), inline)
    start = _BLOCK_START.match(inline) if place == "start" else None
    if not start:
        return inline
    at = start.end("number") if start["number"] else 0
    return f"{inline[:at]}\\{inline[at:]}"


def _numbers(lines: list[str]) -> list[int]:
    return [int(found) for line in lines for found in _MARK.findall(line)]


def _sentence(laid: LaidSentence, place: Place, *, numbered: bool = True) -> str:
    sentence = laid.sentence
    numbers = "".join(f"[{n}]" for n in sentence.citations) if numbered else ""
    return " ".join(part for part in (escaped(sentence.text, place), numbers, mark_of(sentence)) if part)


def _row(row: tuple[LaidSentence, ...]) -> str:
    return " ".join(_sentence(one, "inside" if at else "start") for at, one in enumerate(row))


def _block(block: LaidBlock) -> list[str]:
    if block.kind == "list":
        return [f"- {_row(row)}" for row in block.rows]
    if block.kind == "table":
        header = "| " + " | ".join(escaped(cell, "cell") for cell in block.header) + " |"
        rule = "|" + " --- |" * len(block.header)
        return [header, rule, *(f"| {' | '.join(_cells(row))} |" for row in block.rows)]
    return [_row(row) for row in block.rows]


def _cells(row: tuple[LaidSentence, ...]) -> list[str]:
    """The cells of a row; numbers that all of them have stand once, at its end."""
    stated = [one for one in row if not states_nothing(one.sentence.text)]
    shared = len(stated) > 1 and len({one.sentence.citations for one in stated}) == 1
    return [_sentence(one, "cell", numbered=not shared or one is stated[-1]) for one in row]


def _list(heading: str, items: list[str] | tuple[str, ...]) -> list[str]:
    return [f"## {heading}", "", *(f"- {escaped(item)}" for item in items), ""] if items else []


def _sources(result: ResearchResult) -> list[str]:
    words = labels_of(result)
    lines = [f"## {words.sources}", ""]
    if not result.sources:
        return [*lines, words.none_cited, ""]
    for source in result.sources:
        facts = source_facts(source, result)
        told = f"{words.semicolon}{escaped(facts, 'inside')}" if facts else ""
        title = escaped(shown_title(source))
        lines.append(f"- {title} ({_location(source)}){told}" if title else f"- {_location(source)}{told}")
        lines += [f"  - {_citation(one, result)}" for one in citations_of(result, source)]
    return [*lines, ""]


def _citation(citation: Citation, result: ResearchResult) -> str:
    page = page_of(citation, result)
    quoted = f'"{escaped(shown_quote(citation, result), "inside")}"'
    return " ".join(part for part in (f"[{citation.n}]", page, quoted) if part)


def _location(source: ResultSource) -> str:
    if _WEB.match(source.location):
        return f"<{percent(source.location, safe='/:?#@!$&()*+,;=%-._~[]')}>"
    return escaped(source.location, "inside" if shown_title(source) else "start")
