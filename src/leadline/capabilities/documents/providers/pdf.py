"""Reads PDF with pdfium: text page by page, with the span of each page."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol, cast

from leadline.capabilities.documents.providers.dates import iso_date
from leadline.capabilities.documents.providers.pdf_bombs import why_refused
from leadline.capabilities.documents.providers.pdf_form import filled_in
from leadline.capabilities.documents.providers.titles import first_line_title, usable_title
from leadline.capabilities.documents.seam import (
    Certainty,
    Extraction,
    Limits,
    Outcome,
    PageSpan,
    Recognition,
    clean_text,
)

_PDFIUM = threading.Lock()
"""pdfium keeps state for the whole process and is not thread-safe, however many readers there are."""

_BROKEN_WORD = "\ufffe"
"""What pdfium writes for a hyphen at a line end, swallowing the line break."""

_WRONG_PASSWORD = 4
_BAD_SECURITY = 5
_MEDIA_TYPE = "application/pdf"
_HEADER_WITHIN = 1024
"""Bytes that may stand before the header (ISO 32000-1, implementation note 13)."""

_IMAGE = 3
_LISTED = 10


class _TextPage(Protocol):
    def get_text_range(self) -> str: ...
    def close(self) -> None: ...


class _Page(Protocol):
    raw: object

    def get_textpage(self) -> _TextPage: ...
    def get_objects(self, types: list[int], /) -> Iterator[object]: ...
    def close(self) -> None: ...


class _Document(Protocol):
    formenv: object | None

    def init_forms(self) -> None: ...
    def __len__(self) -> int: ...
    def get_page(self, index: int, /) -> _Page: ...
    def get_metadata_dict(self) -> Mapping[str, str]: ...
    def close(self) -> None: ...


class _Unopened(Exception):
    """pdfium could not open the document; `code` is its own."""

    def __init__(self, message: str, code: int | None) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class _Pages:
    """Page texts as they come, joined by a line break."""

    parts: list[str] = field(default_factory=list[str])
    spans: list[PageSpan] = field(default_factory=list[PageSpan])
    images: list[int] = field(default_factory=list[int])
    """Pages that show an image and have no text."""
    broken: list[int] = field(default_factory=list[int])
    end: int = 0

    def add(self, number: int, text: str) -> None:
        self.parts.append(text)
        self.spans.append(PageSpan(number, self.end, self.end + len(text)))
        self.end += len(text) + 1


class PdfReader:
    """The reader for PDF."""

    name = "pdfium"
    version = "2"

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        if b"%PDF-" not in data[:_HEADER_WITHIN]:
            return None
        # a page or a note that only mentions the header is not a PDF
        certainty = Certainty.SIGNATURE if data.lstrip()[:5] == b"%PDF-" else Certainty.FALLBACK
        return Recognition(
            _MEDIA_TYPE, max(certainty, Certainty.STRUCTURE if b"%%EOF" in data[-2048:] else certainty)
        )

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        if refused := why_refused(data):
            return self._without_text("unsupported", refused)
        with _PDFIUM:
            try:
                with _opened(data) as document:
                    return self._read(document, limits)
            except _Unopened as error:
                # pdfium may keep the code of the document before
                return self._unopened(error.code if b"/Encrypt" in data else None)

    def _read(self, document: _Document, limits: Limits) -> Extraction:
        metadata = document.get_metadata_dict()
        pages = _pages(document, limits)
        text = "\n".join(pages.parts)
        outcome, reason = _judge(pages, text, len(document))
        return Extraction(
            outcome=outcome,
            reason=reason,
            media_type=_MEDIA_TYPE,
            text=text,
            title=usable_title(metadata.get("Title")) or first_line_title(text),
            published=iso_date(metadata.get("CreationDate")) or iso_date(metadata.get("ModDate")),
            pages=tuple(pages.spans),
            method=self.name,
            method_version=self.version,
        )

    def _unopened(self, code: int | None) -> Extraction:
        if code == _WRONG_PASSWORD:
            return self._without_text("blocked", "encrypted: needs a password")
        if code == _BAD_SECURITY:
            return self._without_text("unsupported", "encrypted by a scheme that cannot be read")
        return self._without_text("error", "broken PDF: it cannot be opened, or has no pages")

    def _without_text(self, outcome: Outcome, reason: str) -> Extraction:
        return Extraction(outcome, reason, _MEDIA_TYPE, "", None, None, (), self.name, self.version)


@contextmanager
def _opened(data: bytes) -> Generator[_Document]:
    import pypdfium2  # noqa: PLC0415 - loads the pdfium library

    try:
        document = cast("_Document", pypdfium2.PdfDocument(data))
    except pypdfium2.PdfiumError as error:
        raise _Unopened(str(error), cast("int | None", getattr(error, "err_code", None))) from error
    try:
        with suppress(pypdfium2.PdfiumError):
            document.init_forms()
        yield document
    finally:
        document.close()


def _pages(document: _Document, limits: Limits) -> _Pages:
    import pypdfium2  # noqa: PLC0415 - loads the pdfium library

    pages = _Pages()
    for index in range(len(document)):
        try:
            page = document.get_page(index)
        except pypdfium2.PdfiumError:
            pages.broken.append(index + 1)
            pages.add(index + 1, "")
            continue
        try:
            pages.add(index + 1, _page_text(page, index + 1, pages, document.formenv))
        except pypdfium2.PdfiumError:
            pages.broken.append(index + 1)
            pages.add(index + 1, "")
        finally:
            page.close()
        if pages.end > 2 * limits.max_text:
            break
    return pages


def _page_text(page: _Page, number: int, pages: _Pages, form: object | None) -> str:
    layer = page.get_textpage()
    try:
        text = clean_text(layer.get_text_range())
    finally:
        layer.close()
    if form is not None and (filled := filled_in(form, page.raw)):
        text = clean_text("\n".join([text, *filled] if text.strip() else filled))
    if not text.strip():
        if next(iter(page.get_objects([_IMAGE])), None) is not None:
            pages.images.append(number)
        return text
    return text.replace(_BROKEN_WORD, "-\n") if _BROKEN_WORD in text else text


def _judge(pages: _Pages, text: str, count: int) -> tuple[Outcome, str]:
    if not text.strip():
        if pages.broken:
            return "error", f"broken PDF: {_named(pages.broken)} cannot be loaded"
        return "thin", "scanned: no text layer" if pages.images else "no text on any page"
    gaps: list[str] = []
    if pages.images:
        gaps.append(f"{_named(pages.images)} of {count} have no text layer (scanned)")
    if pages.broken:
        gaps.append(f"{_named(pages.broken)} of {count} cannot be loaded")
    return ("partial", "; ".join(gaps)) if gaps else ("ok", "")


def _named(numbers: list[int]) -> str:
    listed = ", ".join(str(number) for number in numbers[:_LISTED])
    more = f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else ""
    return f"page {listed}" if len(numbers) == 1 else f"pages {listed}{more}"
