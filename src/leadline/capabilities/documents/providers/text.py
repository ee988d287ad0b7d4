"""Reads plain text, Markdown, CSV, JSON and source code: the text itself, decoded."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from leadline.capabilities.documents.providers.dates import iso_date
from leadline.capabilities.documents.providers.encoding import decode, is_binary
from leadline.capabilities.documents.providers.titles import first_line_title, usable_title
from leadline.capabilities.documents.seam import Certainty, Extraction, Limits, Recognition

_MEDIA_TYPES = {
    "text/markdown": ".md .markdown .mdown .mkd .qmd .rmd",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv .tab",
    "application/json": ".json .geojson .ipynb .jsonld",
    "application/x-ndjson": ".jsonl .ndjson",
    "application/yaml": ".yml .yaml",
    "application/toml": ".toml",
    "application/xml": ".xml .rss .atom .xsd .xsl",
    "text/x-source": (
        ".py .pyi .js .mjs .cjs .ts .tsx .jsx .java .kt .c .h .cc .cpp .hpp .cs .go .rs .rb .php .pl .lua .r .jl "
        ".swift .scala .sh .bash .zsh .ps1 .bat .sql .css .scss .less .vue .svelte .tex .bib .jinja .j2 .tmpl .ini .cfg"
    ),
}
_BY_SUFFIX = {suffix: kind for kind, suffixes in _MEDIA_TYPES.items() for suffix in suffixes.split()}
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_FIELD = re.compile(r"^(title|date|published)[ \t]*:[ \t]*['\"]?(.+?)['\"]?[ \t]*$", re.M | re.I)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*$|^(\S.*)\n(?:=+|-{3,})[ \t]*$", re.M)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)


class TextReader:
    """The reader for whatever decodes as text."""

    name = "text"
    version = "2"

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        if is_binary(data):
            return None
        return Recognition(_BY_SUFFIX.get(PurePosixPath(name).suffix.lower(), "text/plain"), Certainty.TEXT)

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        decoded = decode(data)
        blank = not decoded.text.strip()
        title, published = (None, None) if blank else _front(decoded.text, media_type)
        outcome = "thin" if blank else "partial" if decoded.replaced else "ok"
        return Extraction(
            outcome=outcome,
            reason="no text but white space" if blank else decoded.reason,
            media_type=media_type,
            text=decoded.text,
            title=title,
            published=published,
            pages=(),
            method=self.name,
            method_version=self.version,
            encoding=decoded.encoding,
        )


def _front(text: str, media_type: str) -> tuple[str | None, str | None]:
    """Title and date from front matter, title also from the first heading."""
    if media_type not in ("text/markdown", "text/plain"):
        return None, None
    head = text[:20_000]
    fields: dict[str, str] = {}
    matter = _FRONT_MATTER.match(head)
    if matter:
        fields = {key.lower(): value for key, value in _FIELD.findall(matter.group(1))}
        head = head[matter.end() :]
    title = usable_title(fields.get("title"))
    published = iso_date(fields.get("published") or fields.get("date"))
    if title is None:
        heading = _HEADING.search(_FENCED.sub("", head)) if media_type == "text/markdown" else None
        title = usable_title(heading.group(1) or heading.group(2)) if heading else None
    if title is None and "\n\n" in head.strip()[:140]:
        title = first_line_title(head)
    return title, published
