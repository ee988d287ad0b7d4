"""The report as one HTML file: nothing is loaded, nothing runs, every quote is a glance or a click away."""

from __future__ import annotations

import re
from html import escape

import msgspec

from leadline.core.patterns import lazy_pattern
from leadline.research.events import Report
from leadline.research.report.layout import (
    MARKS,
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
    verdict_name,
)
from leadline.research.report.result import Citation, ResearchResult, ResultSentence, ResultSource
from leadline.research.verify.check import states_nothing

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_RTL = frozenset({"ar", "fa", "he", "ur", "yi", "ps", "sd", "ug", "dv"})
_RTL_NAMES = {"arabic": "ar", "persian": "fa", "farsi": "fa", "hebrew": "he", "urdu": "ur", "yiddish": "yi"}
_RTL_LETTERS = lazy_pattern(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LANGUAGE = lazy_pattern(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_WEB = lazy_pattern(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_HIDDEN = lazy_pattern(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_EVIDENCE = lazy_pattern(r"(?<![\w.])u\d+\.e\d+(?![\w.]*\w)")
CARD_LENGTH = 320
"""Characters of a quote that are shown beside its mark; the list of sources has all of it."""
_STYLE = """
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff; overflow-wrap: anywhere; }
h1 { line-height: 1.25; } h2 { margin-top: 2rem; } li { margin: .25rem 0; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { border: 1px solid #999; padding: .25rem .5rem; text-align: start; vertical-align: top; }
a { color: #0b4f9e; } small, .context { color: #555; } .mark { font-weight: 600; text-decoration: none; }
.status { border-inline-start: 4px solid #b35900; padding-inline-start: .75rem; font-weight: 600; }
.not_established { background: #fff4d6; } .contradicted { background: #fde2e0; } .not_checked { color: #4a4a4a; }
.cite { position: relative; white-space: nowrap; font-size: .8em; vertical-align: super; line-height: 0; } .cite a { text-decoration: none; padding: 0 .1em; }
.card { display: none; position: absolute; inset-inline-start: 0; top: 1.2em; z-index: 1; box-sizing: border-box; width: min(26rem, 80vw); padding: .6rem .75rem; font-size: .9rem; line-height: 1.45; white-space: normal; text-align: start; color: #1a1a1a; background: #fffef5; border: 1px solid #777; border-radius: 4px; }
.card > span { display: block; margin-top: .3rem; } .cite:hover .card, .cite:focus-within .card { display: block; }
:target { outline: 2px solid #0b4f9e; outline-offset: 2px; } mark { background: #dff0d8; color: inherit; }
blockquote { margin: .25rem 0; } blockquote mark { white-space: pre-wrap; } summary { cursor: pointer; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616; } a { color: #8ab8ff; } .not_established { background: #4a3b00; } .contradicted { background: #5a1d1a; } .not_checked, .context, small { color: #b5b5b5; } .card { color: #e6e6e6; background: #26261f; } mark { background: #1f4d2b; } :target { outline-color: #8ab8ff; } }
@media print { body { max-width: none; margin: 0; color: #000; background: #fff; } a { color: inherit; text-decoration: none; } .card, .back, summary { display: none !important; } li, tr { break-inside: avoid; } h2 { break-after: avoid; } }
"""


def render_html(result: ResearchResult, draft: Report | None) -> str:
    """The report in HTML. Without a draft the page says how the run ended and what it covered."""
    if draft is None:
        result = msgspec.structs.replace(result, sentences=())
    words = labels_of(result)
    language, direction = _language(result)
    own = _own(result, language)
    closed = bool(draft) and any(section.heading == words.made for section in draft.sections)
    made = f"<p{own}>{_text(made_by(result, said=closed))}</p>"
    body = [f'<h1 dir="auto">{_text(result.title)}</h1>']
    status = status_line(result)
    if status:
        body.append(f'<p class="status" role="status"{own}>{_text(status)}</p>')
    for section in laid_out(draft, result) if draft else ():
        blocks = "\n".join(_block(block, result) for block in section.blocks)
        if section.heading == words.made:
            blocks += f"\n{made}"
        body.append(f'<section>\n<h2 dir="auto">{_text(section.heading)}</h2>\n{blocks}\n</section>')
    marks = legend(result)
    if marks:
        body.append(f"<p{own}><small>{_text(marks)}</small></p>")
    body.append(_section(words.sources, _sources(result), own))
    body.append(_section(words.coverage, _items(coverage_lines(result)), own))
    if result.notes:
        body.append(_section(words.notes, _items(result.notes), own))
    if closed:
        body.append(_verdicts(result))
    else:
        body.append(_section(words.made, made + _verdicts(result), own))
    return (
        f'<!DOCTYPE html>\n<html lang="{_text(language)}" dir="{direction}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_text(_CSP)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(result.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _text(text: str) -> str:
    return escape(_HIDDEN.sub("", text), quote=True)


def _language(result: ResearchResult) -> tuple[str, str]:
    """Language tag and direction of the page: as asked for, else of the question."""
    asked = result.metadata.get("language")
    if isinstance(asked, str) and asked.strip():
        tag = _RTL_NAMES.get(asked.strip().casefold(), asked.strip())
        if not _LANGUAGE.fullmatch(tag):
            own = str(result.metadata.get("report_language") or "und")
            tag = own if own != "en" or asked.strip().casefold() == "english" else "und"
        return tag, "rtl" if tag.split("-")[0].lower() in _RTL else "ltr"
    letters = [letter for letter in str(result.metadata.get("question") or "") if letter.isalpha()]
    if 2 * len(_RTL_LETTERS.findall("".join(letters))) > len(letters):
        return "und", "rtl"
    return str(result.metadata.get("report_language") or "und"), "ltr"


def _own(result: ResearchResult, language: str) -> str:
    """Attributes for what code wrote, where it is in another language than the report."""
    own = str(result.metadata.get("report_language") or "en")
    return "" if language.split("-")[0].lower() == own else f' lang="{_text(own)}" dir="ltr"'


def _section(heading: str, inside: str, own: str) -> str:
    return f"<section{own}>\n<h2>{_text(heading)}</h2>\n{inside}\n</section>"


def _items(items: list[str] | tuple[str, ...]) -> str:
    return "<ul>" + "".join(f'<li dir="auto">{_text(item)}</li>' for item in items) + "</ul>"


# --- prose -------------------------------------------------------------------------------------------------


def _block(block: LaidBlock, result: ResearchResult) -> str:
    if block.kind == "list":
        return "<ul>" + "".join(f'<li dir="auto">{_row(row, result)}</li>' for row in block.rows) + "</ul>"
    if block.kind == "table":
        header = "".join(f'<th scope="col" dir="auto">{_text(cell)}</th>' for cell in block.header)
        rows = (
            "<tr>" + "".join(f'<td dir="auto">{_sentence(cell, result)}</td>' for cell in row) + "</tr>"
            for row in block.rows
        )
        return f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return "".join(f'<p dir="auto">{_row(row, result)}</p>' for row in block.rows)


def _row(row: tuple[LaidSentence, ...], result: ResearchResult) -> str:
    return " ".join(_sentence(one, result) for one in row)


def _sentence(laid: LaidSentence, result: ResearchResult) -> str:
    sentence, number = laid.sentence, laid.index + 1
    marks = "".join(_cite(n, sentence, result) for n in sentence.citations)
    mark = mark_of(sentence)
    shown = f' <a class="mark" href="#v{number}">{_text(mark)}</a>' if mark else ""
    css = sentence.verdict if sentence.verdict in MARKS and not states_nothing(sentence.text) else "supported"
    title = _verdict(sentence, result)
    return f'<span id="s{number}" class="{css}" title="{_text(title)}">{_text(sentence.text)}</span>{marks}{shown}'


def _cite(n: int, sentence: ResultSentence, result: ResearchResult) -> str:
    """A mark; hovering or focussing it shows quote, source, page and verdict, a click goes to the list."""
    citation = next((one for one in result.citations if one.n == n), None)
    if citation is None:
        return ""
    source = next(one for one in result.sources if one.n == citation.source)
    quote = shown_quote(citation, result)
    short = quote if len(quote) <= CARD_LENGTH else quote[:CARD_LENGTH] + "..."
    where = ", ".join(
        part
        for part in (
            shown_title(source) or source.location,
            page_of(citation, result),
            source.published or "",
        )
        if part
    )
    return (
        f'<span class="cite"><a href="#c{n}">[{n}]</a><span class="card" role="tooltip"><q dir="auto">{_text(short)}</q>'
        f'<span><cite dir="auto">{_text(where)}</cite></span><span><small>{_text(_verdict(sentence, result))}</small>'
        "</span></span></span>"
    )


def _verdict(sentence: ResultSentence, result: ResearchResult) -> str:
    """The verdict with its reason, in which evidence has the numbers of the report."""
    numbers = {one.evidence: one.n for one in result.citations}
    reason = _EVIDENCE.sub(
        lambda found: f"[{numbers[found.group()]}]" if found.group() in numbers else found.group(),
        sentence.reason,
    )
    by = "" if sentence.by in ("checks", "nobody") else f" ({sentence.by})"
    return f"{verdict_name(result, sentence.verdict)}{by}: {reason}"


def _verdicts(result: ResearchResult) -> str:
    """Every sentence with its verdict, where a mark leads to."""
    stated = [(at + 1, one) for at, one in enumerate(result.sentences) if not states_nothing(one.text)]
    if not stated:
        return ""
    words = labels_of(result)
    rows = "".join(
        f'<li id="v{number}"><span dir="auto">{_text(one.text)}</span> <a class="back" href="#s{number}" '
        f'aria-label="{_text(words.back)}">&#8593;</a><br><small>{_text(_verdict(one, result))}</small></li>'
        for number, one in stated
    )
    return f"<details open><summary>{_text(words.verdicts)}</summary><ol>{rows}</ol></details>"


# --- sources -----------------------------------------------------------------------------------------------


def _sources(result: ResearchResult) -> str:
    if not result.sources:
        return f"<p>{_text(labels_of(result).none_cited)}</p>"
    return "<ul>" + "\n".join(_source(source, result) for source in result.sources) + "</ul>"


def _source(source: ResultSource, result: ResearchResult) -> str:
    location = _text(source.location)
    if _WEB.fullmatch(source.location):
        location = f'<a href="{location}" rel="noopener noreferrer nofollow">{location}</a>'
    quotes = "".join(_citation(one, result) for one in citations_of(result, source))
    facts = source_facts(source, result)
    told = f" <small>{_text(facts)}</small>" if facts else ""
    listed = f"<ul>{quotes}</ul>" if quotes else ""
    title = shown_title(source)
    named = (
        f'<cite dir="auto">{_text(title)}</cite> (<bdi>{location}</bdi>)'
        if title
        else f"<bdi>{location}</bdi>"
    )
    return f"<li>{named}{told}{listed}</li>"


def _citation(citation: Citation, result: ResearchResult) -> str:
    words = labels_of(result)
    page = page_of(citation, result)
    before = f'<span class="context">{_text(citation.before)} </span>' if citation.before else ""
    after = f'<span class="context"> {_text(citation.after)}</span>' if citation.after else ""
    place = words.in_place.format(start=citation.start, end=citation.end)
    back = "".join(
        f' <a class="back" href="#s{at + 1}" aria-label="{_text(words.back)}">&#8593;</a>'
        for at, one in enumerate(result.sentences)
        if citation.n in one.citations
    )
    return (
        f'<li id="c{citation.n}">[{citation.n}]{" " + _text(page) if page else ""} '
        f'<q dir="auto">{_text(shown_quote(citation, result))}</q>{back}'
        f"<details><summary><small>{_text(place)}</small></summary>"
        f'<blockquote dir="auto">{before}<mark>{_text(citation.quote)}</mark>{after}</blockquote></details></li>'
    )
