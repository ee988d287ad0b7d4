"""Reads what was filled into the form of a PDF, page by page."""

# pypdfium2's bindings of the library are generated and untyped
# pyright: reportUnknownMemberType=none, reportUnknownVariableType=none, reportUnknownArgumentType=none
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

_MOST_FIELDS = 2000
"""Fields of one page that are looked at."""


def filled_in(form: Any, page: Any) -> list[str]:
    """The texts of the fields of `page` in their order, each behind what its field is called, if it says so.

    Args:
        form: the raw form environment of the document.
        page: the raw page.
    """
    from pypdfium2 import raw  # noqa: PLC0415 - loads the pdfium library

    shown = (raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
    lines: list[str] = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        field = raw.FPDFPage_GetAnnot(page, index)
        if not field:
            continue
        try:
            if raw.FPDFAnnot_GetFormFieldType(form, field) not in shown:
                continue
            value = _text(raw.FPDFAnnot_GetFormFieldValue, form, field)
            name = _text(raw.FPDFAnnot_GetFormFieldAlternateName, form, field)
        finally:
            raw.FPDFPage_CloseAnnot(field)
        if value:
            lines.append(f"{name}: {value}" if name else value)
    return lines


def _text(read: Callable[..., int], form: Any, field: Any) -> str:
    size = read(form, field, None, 0)
    buffer = ctypes.create_string_buffer(max(size, 2))
    read(form, field, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[:size].decode("utf-16-le", "replace").strip("\0 \r\n")
