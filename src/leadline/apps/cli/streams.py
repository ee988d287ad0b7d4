"""The one place where documents and messages leave the process.

stdout carries one document or nothing, in UTF-8 whatever the locale; everything else goes to stderr.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TextIO

from leadline.apps.cli.exits import Exit, Quit, debugging

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def document(text: str | bytes) -> None:
    """Write the command's one document to stdout, ending in a newline.

    Raises:
        Quit: stdout cannot take it, such as a pipe whose reader is gone.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if not data.endswith(b"\n"):
        data += b"\n"
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - a process may be started without one
        raise Quit(Exit.FAILED, "there is no stdout to write to")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        _give_up(sys.stdout)
        raise Quit(Exit.FAILED, f"cannot write to stdout: {error.strerror or error}") from None


def say(message: str) -> None:
    """Write to stderr, control characters made visible; a stderr that takes nothing stops nobody."""
    put(visible(message) + "\n")


def put(text: str) -> None:
    """Write to stderr as it is; characters that it cannot take are escaped."""
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - a process may be started without one
        return
    encoding = sys.stderr.encoding or "utf-8"
    try:
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)
    except ValueError:  # closed by somebody else in this process
        return


def _give_up(stream: TextIO) -> None:
    """Send what is left of a stream nowhere: Python would fail at exit over what it cannot flush."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def visible(text: str) -> str:
    """The text with control characters and changes of direction as escapes; line ends and tabs stay."""
    return _HIDDEN.sub(lambda found: ascii(found.group())[1:-1], text)


class OneLine(logging.Handler):
    """Errors that had no caller to go to, as one line each; tracebacks where they were asked for."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"leadline: {' '.join(record.getMessage().split())}")
        if debugging() and record.exc_info:
            say("".join(traceback.format_exception(*record.exc_info)).rstrip())


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def catch_reports() -> None:
    """Let the project's log go to stderr, line by line."""
    log = logging.getLogger("leadline")
    log.handlers = [OneLine()]
    log.propagate = False


@contextmanager
def reports_held() -> Generator[None]:
    """Keep reports back. If this fails they are dropped, as its error tells the same; else they are told after it."""
    log = logging.getLogger("leadline")
    kept, handlers = _Kept(), log.handlers
    log.handlers = [kept]
    failed = True
    try:
        yield
        failed = False
    finally:
        log.handlers = handlers
        for record in kept.records if debugging() or not failed else ():
            log.handle(record)
