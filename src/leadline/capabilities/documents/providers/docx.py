"""Reads DOCX with mammoth: paragraphs, headings, lists and tables; refuses packed bombs first."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from itertools import pairwise
from typing import Protocol, cast

from leadline.capabilities.documents.providers.dates import iso_date
from leadline.capabilities.documents.providers.elements import render
from leadline.capabilities.documents.providers.markup import parse_html, parse_xml
from leadline.capabilities.documents.providers.titles import first_line_title, usable_title
from leadline.capabilities.documents.seam import (
    Certainty,
    Extraction,
    Limits,
    Outcome,
    Recognition,
    clean_text,
)

_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_BODY = "word/document.xml"
_PROPERTIES = "docProps/core.xml"
_MAX_BODY = 60_000_000
"""Bytes of the unpacked body: its tree takes about ten times as much memory."""

_TEMPLATE_DATE = "2013-12-23T23:15:00Z"
"""Left in every file of a widespread generator; says nothing about this one."""

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.M)
_ENDS = re.compile(r"[.!?:;…。！？：；|\"”»)\]*_]\s*$")
_LINE = 40
"""Code points: a paragraph without a stop that is at least as long may be a line of a wrapped sentence."""

_NEW_BLOCK = re.compile(r"#{1,6} |[-*+•] |\d+[.)] |\||>")


class _Converted(Protocol):
    value: str


class _Images(Protocol):
    def img_element(self, attributes: Callable[[object], dict[str, str]], /) -> object: ...


class _Mammoth(Protocol):
    """What is used of mammoth, which ships no types."""

    images: _Images

    def convert_to_html(self, file: BytesIO, /, *, convert_image: object) -> _Converted: ...


class DocxReader:
    """The reader for DOCX."""

    name = "docx"
    version = "2"

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        if data.startswith(_OLE) and "EncryptedPackage".encode("utf-16-le") in data[:100_000]:
            return Recognition(_MEDIA_TYPE, Certainty.SIGNATURE) if name.lower().endswith(".docx") else None
        if not data.startswith(b"PK\x03\x04"):
            return None
        if _BODY.encode() in data or name.lower().endswith((".docx", ".docm")):
            return Recognition(_MEDIA_TYPE, Certainty.SIGNATURE)
        return None

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        if data.startswith(_OLE):
            return self._without_text("blocked", "encrypted: needs a password")
        try:
            archive = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            return self._without_text("error", f"broken DOCX: {error}")
        with archive:
            refused = self._refused(archive, limits)
            if refused is not None:
                return refused
            properties = _properties(archive)
        try:
            page = _converted(data)
        except _Broken as error:
            return self._without_text("error", f"broken DOCX: {error}")
        text = _rejoined(clean_text(page))
        return self._extraction(text, properties)

    def _extraction(self, text: str, properties: dict[str, str]) -> Extraction:
        heading = _HEADING.search(text)
        dates = [
            iso_date(raw)
            for raw in (properties.get("modified"), properties.get("created"))
            if raw != _TEMPLATE_DATE
        ]
        title = usable_title(properties.get("title")) or (usable_title(heading.group(1)) if heading else None)
        return Extraction(
            outcome="ok" if text.strip() else "thin",
            reason="" if text.strip() else "no text in the document",
            media_type=_MEDIA_TYPE,
            text=text,
            title=title or first_line_title(text),
            published=next((date for date in dates if date), None),
            pages=(),
            method=self.name,
            method_version=self.version,
        )

    def _refused(self, archive: zipfile.ZipFile, limits: Limits) -> Extraction | None:
        members = archive.infolist()
        if _BODY not in {member.filename for member in members}:
            return self._without_text("unsupported", f"a packed file without {_BODY}: not a DOCX")
        if any(member.flag_bits & 1 for member in members):
            return self._without_text("blocked", "encrypted: needs a password")
        expanded = sum(member.file_size for member in members)
        if expanded > limits.max_expanded:
            reason = f"unpacks to {expanded:,} bytes, over the limit of {limits.max_expanded:,}"
            return self._without_text("unsupported", reason)
        body = archive.getinfo(_BODY).file_size
        if body > min(_MAX_BODY, limits.max_expanded):
            return self._without_text(
                "unsupported", f"body of {body:,} bytes, over the limit of {_MAX_BODY:,}"
            )
        return None

    def _without_text(self, outcome: Outcome, reason: str) -> Extraction:
        return Extraction(outcome, reason, _MEDIA_TYPE, "", None, None, (), self.name, self.version)


class _Broken(Exception):
    """The package does not hold a readable document."""


def _converted(data: bytes) -> str:
    import mammoth  # noqa: PLC0415 - few corpora hold DOCX

    library = cast("_Mammoth", mammoth)

    def no_image(image: object) -> dict[str, str]:
        return {}

    try:
        converted = library.convert_to_html(BytesIO(data), convert_image=library.images.img_element(no_image))
    except (
        Exception
    ) as error:  # mammoth lets through whatever a damaged part provokes; the outcome records it
        raise _Broken(f"{type(error).__name__}: {error}") from error
    page = parse_html(converted.value)
    return "" if page is None else render(page.root)


def _properties(archive: zipfile.ZipFile) -> dict[str, str]:
    """The core properties by local name; empty where there are none that can be read."""
    try:
        root = parse_xml(archive.read(_PROPERTIES))
    except (KeyError, zipfile.BadZipFile, OSError, NotImplementedError, zlib.error):
        return {}
    return {
        child.tag.rpartition("}")[2]: child.text.strip()
        for child in (() if root is None else root)
        if isinstance(child.tag, str) and child.text and child.text.strip()
    }


def _rejoined(text: str) -> str:
    """Lines of one sentence that were typed as paragraphs of their own are put in one block again."""
    blocks = text.split("\n\n")
    pieces = blocks[:1]
    for before, after in pairwise(blocks):
        pieces.append("\n" if _runs_on(before, after) else "\n\n")
        pieces.append(after)
    return "".join(pieces)


def _runs_on(before: str, after: str) -> bool:
    if before.startswith("|"):
        return after.startswith("|")
    if before.startswith("#") or _NEW_BLOCK.match(after.lstrip()):
        return False
    unfinished = len(before) >= _LINE and not _ENDS.search(before)
    return unfinished or (after.lstrip()[:1].islower() and not before.endswith((".", "!", "?")))
