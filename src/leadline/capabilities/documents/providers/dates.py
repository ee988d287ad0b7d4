"""Dates as document metadata writes them, as ISO dates; what is no certain calendar date is no date."""

from __future__ import annotations

import re
from datetime import date
from email.utils import parsedate_to_datetime

_YEAR_FIRST = re.compile(r"\s*(?:D:)?(\d{4})[-/.]?(\d{2})[-/.]?(\d{2})(?!\d{3}(?:\D|$))")
_EARLIEST = 1400


def iso_date(raw: str | None) -> str | None:
    """`YYYY-MM-DD` of an ISO, PDF (`D:20240131…`) or mail date; None for anything else.

    Source: ISO 32000-1 §7.9.4 for PDF dates, RFC 5322 §3.3 for mail dates.
    """
    if not raw:
        return None
    found = _YEAR_FIRST.match(raw)
    if found:
        return _checked(*(int(part) for part in found.groups()))
    try:
        parsed = parsedate_to_datetime(raw)
    except (ValueError, IndexError, OverflowError):
        return None
    return _checked(parsed.year, parsed.month, parsed.day)


def _checked(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat() if year >= _EARLIEST else None
    except ValueError:
        return None
