"""A second writer that does not ask: what a program does to a log of session files that it holds no lease of."""

from __future__ import annotations

from pathlib import Path

from leadline.core.session.codec import Logged, chain, compose, decode_line
from leadline.testing.conformance.session_store import Noted


def second_branch(log: Path, at: int, texts: tuple[str, ...] = ("second writer",)) -> bytes:
    """The lines of a writer who knows the log up to event number `at`, and nothing of what came after.

    They follow event `at` as those of the first writer do: same numbers, whole chain, other facts.
    """
    header, *lines = log.read_bytes().splitlines()
    digest = chain(lines[at] if at >= 0 else header)
    last = decode_line(lines[at]) if at >= 0 else None
    now = last.t if isinstance(last, Logged) else 0.0
    written: list[bytes] = []
    for number, text in enumerate(texts, at + 1):
        line, _, digest = compose(Noted(text=text), number, now, digest)
        written.append(line)
    return b"".join(written)


def append(log: Path, content: bytes) -> None:
    """Write at the end of a file, whoever has it open."""
    with log.open("ab") as file:
        file.write(content)
