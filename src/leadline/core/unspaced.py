"""Scripts that are written without spaces between words, made searchable by pairs of letters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from leadline.core.patterns import lazy_pattern

UNSPACED = "\u3005\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30fe\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\uac00-\ud7a3\U00020000-\U0003ffff"
"""Letters of such scripts, as the inside of a character class."""

RUN = lazy_pattern(f"[{UNSPACED}]+")
"""Such letters without anything between them."""


def pairs(text: str) -> str:
    """Letter pairs of each run without spaces, and its last letter, as words for a full-text index."""
    return " ".join(pair for run in RUN.findall(unicodedata.normalize("NFC", text)) for pair in _of(run))


def asked_pairs(run: str) -> list[str]:
    """The words of `pairs` that a text has when it has `run`; a single letter begins one of them."""
    return [run] if len(run) == 1 else [run[index : index + 2] for index in range(len(run) - 1)]


def _of(run: str) -> Iterable[str]:
    yield from (run[index : index + 2] for index in range(len(run) - 1))
    yield run[-1]
