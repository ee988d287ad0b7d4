"""The one owner of how much of a result a model reads: beginning and end are kept, and what is missing is told."""

from __future__ import annotations

from leadline.core.tools.outcome import Truncation


def bounded(content: str, limit: int, blob: str | None = None) -> tuple[str, Truncation | None]:
    """`content` if it has at most `limit` characters, else its head and tail and the exact count between.

    `blob` is the sha256 under which the whole is stored. Head and tail together have `limit` characters;
    the notice comes on top.
    """
    total = len(content)
    if total <= limit:
        return content, None
    tail_chars = limit // 4
    head, tail = content[: limit - tail_chars], content[total - tail_chars :]
    omitted = total - limit
    stored = f"; the whole text is stored as {blob}" if blob else ""
    notice = f"[{omitted} of {total} characters left out here{stored}]"
    return f"{head}\n{notice}\n{tail}", Truncation(total, omitted, blob)
