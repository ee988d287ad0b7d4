"""Reads HTML: the main text without menus and adverts, or the whole text where no main part is found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Protocol, cast

from leadline.capabilities.documents.providers.dates import iso_date
from leadline.capabilities.documents.providers.elements import Element, inline_text, render
from leadline.capabilities.documents.providers.encoding import decode, is_binary
from leadline.capabilities.documents.providers.markup import parse_html, without_hidden
from leadline.capabilities.documents.providers.titles import usable_title
from leadline.capabilities.documents.seam import (
    Certainty,
    Extraction,
    Limits,
    Outcome,
    Recognition,
    clean_text,
)

_CHARSET = re.compile(rb"<meta[^>]{0,300}charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.I)
_XML_ENCODING = re.compile(rb"^<\?xml[^>]{0,200}encoding\s*=\s*[\"']([\w.:-]{2,40})", re.I)
_OPENING = re.compile(
    r"(?:<\?xml[^>]*>|<!--.*?-->|\s)*<(?:!doctype\s+html|html|head|body|title|meta|link)[\s>]", re.I | re.S
)
_ANY_TAG = re.compile(r"<(?:p|div|h[1-6]|table|body|span|a|ul|article|br)[\s/>]", re.I)
_SUFFIXES = frozenset({".html", ".htm", ".xhtml", ".shtml"})
_OTHER_SUFFIXES = frozenset(
    {".vue", ".svelte", ".jsx", ".tsx", ".js", ".ts", ".py", ".php", ".jinja", ".j2", ".md"}
)
_SHELL = 100
"""Code points: a page of scripts with less text than this is an empty shell."""

_TOO_DEEP = "nested too deeply: the end of the page cannot be read"

_DATES = (
    "article:published_time",
    "datepublished",
    "citation_publication_date",
    "citation_date",
    "dc.date.issued",
    "dcterms.issued",
    "dcterms.created",
    "dc.date",
    "dcterms.date",
    "pubdate",
    "publishdate",
    "publish_date",
    "parsely-pub-date",
    "sailthru.date",
    "date",
)
"""Names of meta elements that hold the date of publication, surest first."""

_TITLES = ("citation_title", "dc.title", "dcterms.title", "og:title", "twitter:title")


class _Main(Protocol):
    """What is used of trafilatura's result."""

    body: Element | None


class HtmlReader:
    """The reader for HTML."""

    name = "html"
    version = "3"

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        suffix = PurePosixPath(name).suffix.lower()
        if b"<" not in data[:4096] or is_binary(data):
            return None
        head = decode(data[:4096]).text
        if _OPENING.match(head) and suffix not in _OTHER_SUFFIXES:
            return Recognition("text/html", Certainty.STRUCTURE)
        if suffix in _SUFFIXES and _ANY_TAG.search(head):
            return Recognition("text/html", Certainty.STRUCTURE)
        return None

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        decoded = decode(data, _declared(data))
        page = parse_html(decoded.text)
        if page is None:
            return self._extraction("thin", "no elements in the page", "", None, None, decoded.encoding)
        root = page.root
        title, published = _title(root), _published(root)
        whole = render(root)
        scripted = any(True for _ in root.iter("script"))
        text = clean_text(_main_text(without_hidden(root) or page.text) or whole)
        lost = "; ".join(part for part in (decoded.reason, _TOO_DEEP if page.cut else "") if part)
        outcome, reason = _judge(whole, scripted, lost)
        return self._extraction(outcome, reason, text, title, published, decoded.encoding)

    def _extraction(
        self,
        outcome: Outcome,
        reason: str,
        text: str,
        title: str | None,
        published: str | None,
        encoding: str,
    ) -> Extraction:
        return Extraction(
            outcome, reason, "text/html", text, title, published, (), self.name, self.version, encoding
        )


def _judge(whole: str, scripted: bool, lost: str) -> tuple[Outcome, str]:
    if lost and not whole.strip():
        return "error", lost
    if not whole.strip():
        return "thin", "empty page: no text outside scripts" if scripted else "empty page: no text"
    if scripted and len(whole) < _SHELL:
        return "thin", f"empty shell: {len(whole)} characters beside scripts"
    return ("partial", lost) if lost else ("ok", "")


def _declared(data: bytes) -> str | None:
    head = data[:4096]
    found = _XML_ENCODING.search(head) or _CHARSET.search(head)
    return found.group(1).decode("ascii", "ignore") if found else None


def _main_text(page: str) -> str:
    """The main part of the page as found by its look; empty if there is none."""
    import trafilatura  # noqa: PLC0415 - loads slowly, and few corpora hold pages

    found = trafilatura.bare_extraction(
        page, fast=True, include_comments=False, include_tables=True, with_metadata=False
    )
    body = None if found is None else cast("_Main", found).body
    return "" if body is None else render(body)


def _metas(root: Element) -> dict[str, str]:
    found: dict[str, str] = {}
    for meta in root.iter("meta"):
        key = (meta.get("property") or meta.get("name") or meta.get("itemprop") or "").strip().lower()
        content = (meta.get("content") or "").strip()
        if key and content:
            found.setdefault(key, content)
    return found


def _title(root: Element) -> str | None:
    metas = _metas(root)
    for candidate in (metas.get(name) for name in _TITLES):
        if title := usable_title(candidate):
            return title
    for tag in ("title", "h1", "h2"):
        for element in root.iter(tag):
            if title := usable_title(inline_text(element)):
                return title
    return None


def _published(root: Element) -> str | None:
    metas = _metas(root)
    candidates = [metas.get(name) for name in _DATES]
    candidates.extend(_linked_dates(root))
    candidates.extend(
        time.get("datetime")
        for time in root.iter("time")
        if time.get("pubdate") is not None or (time.get("itemprop") or "").lower() == "datepublished"
    )
    return next((date for raw in candidates if (date := iso_date(raw))), None)


def _linked_dates(root: Element) -> Iterator[str]:
    """`datePublished` of JSON-LD, the outermost first."""
    for script in root.iter("script"):
        if (script.get("type") or "").lower() != "application/ld+json" or not script.text:
            continue
        try:
            data = cast("object", json.loads(script.text))
        except (ValueError, RecursionError):
            continue
        yield from _values(data, "datePublished", depth=6)


def _values(data: object, key: str, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    inner: Iterable[object] = ()
    if isinstance(data, dict):
        members = cast("dict[str, object]", data)
        value = members.get(key)
        if isinstance(value, str):
            yield value
        inner = members.values()
    elif isinstance(data, list):
        inner = cast("list[object]", data)
    for item in inner:
        yield from _values(item, key, depth - 1)
