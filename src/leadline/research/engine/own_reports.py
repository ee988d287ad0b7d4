"""Keeps reports out of the evidence of later reports: one that lies in the corpus is known by its form."""

from __future__ import annotations

import re
from functools import cache

from leadline.capabilities.documents.seam import Certainty, Extraction, Limits, Recognition
from leadline.research.report.labels import labels
from leadline.research.sources.language import LANGUAGES

_PAGE = re.compile(
    rb'<!DOCTYPE html>\s*<html lang="[^"]*" dir="(?:ltr|rtl)">\s*<head>\s*<meta charset="utf-8">\s*'
    rb'<meta http-equiv="Content-Security-Policy" content="default-src '
)
_RESULT = re.compile(rb'\{\s*"id"\s*:\s*"s-[0-9a-f]{16}"\s*,\s*"status"\s*:')


class OwnReports:
    """The reader that claims reports of this program, in each form that they are written in, and reads none."""

    name = "own-reports"
    version = "1"

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:2000]
        if start.startswith(b"# ") and _coverage().search(data):
            return Recognition("text/markdown", Certainty.SIGNATURE)
        if _PAGE.match(start) and b'<h1 dir="auto">' in data:
            return Recognition("text/html", Certainty.SIGNATURE)
        if _RESULT.match(start) and b'"coverage"' in data and b'"citations"' in data:
            return Recognition("application/json", Certainty.SIGNATURE)
        return None

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        reason = "a report of Leadline; what it rests on is evidence, not the report"
        return Extraction("disallowed", reason, media_type, "", None, None, (), self.name, self.version)


@cache
def _coverage() -> re.Pattern[bytes]:
    """The heading of the coverage and how its first line begins, in any language of reports."""
    known = [labels(language) for language in LANGUAGES]
    ways = "|".join(
        re.escape(f"## {each.coverage}") + r"\s+" + re.escape(f"- {each.questions}{each.colon}")
        for each in known
    )
    return re.compile(f"^(?:{ways})[0-9]".encode(), re.M)
