"""The report as one HTML file: nothing is loaded, nothing runs, every quote is a click away."""

from __future__ import annotations

import re
from html import escape

from leadline.research.events import Report
from leadline.research.report.layout import (
    MARKS,
    LaidBlock,
    citations_of,
    coverage_lines,
    laid_out,
    made_by,
    mark_of,
    source_facts,
    used_marks,
)
from leadline.research.report.result import Citation, ResearchResult, ResultSentence, ResultSource

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_RTL = frozenset({"ar", "fa", "he", "ur", "yi", "ps", "sd", "ug", "dv"})
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_WEB = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_HIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_STYLE = """
body { font: 1rem/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff; }
h1 { line-height: 1.2; } table { border-collapse: collapse; } th, td { border: 1px solid #999; padding: .25rem .5rem; text-align: start; vertical-align: top; }
a { color: #0b4f9e; } sup a { text-decoration: none; } .status { border-inline-start: 4px solid #b35900; padding-inline-start: .75rem; }
.not_established { background: #fff4d6; } .contradicted { background: #fde2e0; } .not_checked { color: #4a4a4a; }
.mark { font-weight: 600; } .context { color: #555; } mark { background: #dff0d8; } li:target { outline: 2px solid #0b4f9e; }
blockquote { margin: .25rem 0; } small { color: #555; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616; } a { color: #8ab8ff; } .not_established { background: #4a3b00; } .contradicted { background: #5a1d1a; } .not_checked, .context, small { color: #b5b5b5; } mark { background: #1f4d2b; color: inherit; } }
@media print { body { max-width: none; margin: 0; color: #000; background: #fff; } a { color: inherit; } li, tr { break-inside: avoid; } }
"""


def render_html(result: ResearchResult, draft: Report | None) -> str:
    """The report in HTML. Without a draft the page says how the run ended and what it covered."""
    language = _language(result)
    direction = "rtl" if language.split("-")[0].lower() in _RTL else "ltr"
    body = [f"<h1>{_text(result.title)}</h1>"]
    if result.status != "completed":
        why = f" {_text(result.error)}" if result.error else ""
        body.append(f'<p class="status">This report is {_text(result.status)}.{why}</p>')
    for section in laid_out(draft, result) if draft else ():
        body.append(f"<h2>{_text(section.heading)}</h2>")
        body.extend(_block(block) for block in section.blocks)
    body += [*_legend(result), *_sources(result), *_coverage(result)]
    return (
        f'<!DOCTYPE html>\n<html lang="{_text(language)}" dir="{direction}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_text(_CSP)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(result.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _text(text: str) -> str:
    return escape(_HIDDEN.sub("", text), quote=True)


def _language(result: ResearchResult) -> str:
    asked = result.metadata.get("language")
    return asked if isinstance(asked, str) and _LANGUAGE.fullmatch(asked) else "und"


def _block(block: LaidBlock) -> str:
    if block.kind == "list":
        return "<ul>" + "".join(f"<li>{_row(row)}</li>" for row in block.rows) + "</ul>"
    if block.kind == "table":
        header = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in block.header)
        rows = (
            "<tr>" + "".join(f"<td>{_sentence(cell)}</td>" for cell in row) + "</tr>" for row in block.rows
        )
        return f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return "".join(f"<p>{_row(row)}</p>" for row in block.rows)


def _row(row: tuple[ResultSentence, ...]) -> str:
    return " ".join(_sentence(sentence) for sentence in row)


def _sentence(sentence: ResultSentence) -> str:
    marks = "".join(f'<sup><a href="#c{n}">[{n}]</a></sup>' for n in sentence.citations)
    title = f"{sentence.verdict.replace('_', ' ')}: {sentence.reason}"
    mark = mark_of(sentence)
    shown = f' <span class="mark">{_text(mark)}</span>' if mark else ""
    css = sentence.verdict if sentence.verdict in MARKS else "supported"
    return f'<span class="{css}" title="{_text(title)}">{_text(sentence.text)}</span>{marks}{shown}'


def _legend(result: ResearchResult) -> list[str]:
    marks = used_marks(result)
    if not marks:
        return []
    return [
        f"<p><small>Marks: {'; '.join(_text(f'{mark} {meaning}') for mark, meaning in marks)}.</small></p>"
    ]


def _sources(result: ResearchResult) -> list[str]:
    if not result.sources:
        return ["<h2>Sources</h2>", "<p>None cited.</p>"]
    return ["<h2>Sources</h2>", "<ul>", *(_source(source, result) for source in result.sources), "</ul>"]


def _source(source: ResultSource, result: ResearchResult) -> str:
    location = _text(source.location)
    if _WEB.fullmatch(source.location):
        location = f'<a href="{location}" rel="noopener noreferrer nofollow">{location}</a>'
    quotes = "".join(_citation(one) for one in citations_of(result, source))
    facts = _text(source_facts(source, result))
    listed = f"<ul>{quotes}</ul>" if quotes else ""
    return f"<li><cite>{_text(source.title)}</cite> ({location}) <small>{facts}</small>{listed}</li>"


def _citation(citation: Citation) -> str:
    page = f" p. {citation.page}" if citation.page is not None else ""
    before = f'<span class="context">{_text(citation.before)} </span>' if citation.before else ""
    after = f'<span class="context"> {_text(citation.after)}</span>' if citation.after else ""
    return (
        f'<li id="c{citation.n}">[{citation.n}]{page} <q>{_text(citation.quote)}</q>'
        f"<details><summary><small>in its place, characters {citation.start} to {citation.end}</small></summary>"
        f"<blockquote>{before}<mark>{_text(citation.quote)}</mark>{after}</blockquote></details></li>"
    )


def _coverage(result: ResearchResult) -> list[str]:
    found = result.coverage
    items = [_text(line) for line in coverage_lines(result)]
    for one in found.blocked_sources:
        reason = f" ({one.reason})" if one.reason else ""
        items.append(_text(f"Not usable: {one.title}, {one.location}: {one.outcome}{reason}"))
    items += [_text(f"Unresolved: {text}") for text in found.unresolved]
    notes = [_text(note) for note in (*result.notes, made_by(result))]
    return [
        "<h2>Coverage</h2>",
        "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>",
        "<h2>Notes</h2>",
        "<ul>" + "".join(f"<li>{note}</li>" for note in notes) + "</ul>",
    ]
