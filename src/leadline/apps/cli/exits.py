"""Exit codes, and the one place where documents and messages leave the process.

stdout carries one document or nothing, always in UTF-8; everything else goes to stderr.
"""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from types import TracebackType
from typing import NoReturn

from leadline.kernel.errors import LeadlineError


class Exit(IntEnum):
    """What a command ends with."""

    DONE = 0
    """Completed, or partial (stderr says so)."""
    FAILED = 1
    USAGE = 2
    """The command, a file or an option was wrong; nothing was started."""
    CANCELLED = 130


class Quit(Exception):
    """Ends a command with an exit code and a line on stderr."""

    def __init__(self, code: Exit, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class usage_errors:  # noqa: N801 - reads as a statement: `with usage_errors():`
    """What the project refuses inside becomes exit code 2 with the error's own words.

    For `with` and `async with` alike.
    """

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LeadlineError):
            raise Quit(Exit.USAGE, str(error)) from error

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def document(text: str | bytes) -> None:
    """Write the command's one document to stdout, in UTF-8 whatever the locale, ending in a newline.

    Raises:
        Quit: the reader of stdout is gone.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    if not data.endswith(b"\n"):
        data += b"\n"
    sys.stdout.flush()
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Python would complain again at exit about the pipe it cannot flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Quit(Exit.FAILED, "") from None


def say(message: str) -> None:
    """Write a line to stderr; characters that it cannot take are escaped."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(message.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stderr.flush()


def leave(code: Exit) -> NoReturn:
    """End the process with `code`."""
    raise SystemExit(int(code))
