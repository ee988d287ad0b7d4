"""Exit codes, and what an error becomes on stderr."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum

from leadline.kernel.errors import BootFailed, LeadlineError

DEBUG = "LEADLINE_DEBUG"
"""Set to anything: tracebacks are shown."""


class Exit(IntEnum):
    """What a command ends with."""

    DONE = 0
    """Completed, or partial (stderr says so)."""
    FAILED = 1
    USAGE = 2
    """The command, a file, an option or the configuration cannot be used; nothing was started."""
    CANCELLED = 130


class Quit(Exception):
    """Ends a command with an exit code and a line on stderr."""

    def __init__(self, code: Exit, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@contextmanager
def refusing() -> Generator[None]:
    """What the project refuses in here becomes exit code 2 with the error's own words: nothing was started.

    Raises:
        Quit: in place of any `LeadlineError`.
    """
    try:
        yield
    except LeadlineError as error:
        raise Quit(Exit.USAGE, told(error)) from error


def told(error: LeadlineError) -> str:
    """An error in one line."""
    if isinstance(error, BootFailed):
        # A row that lacks a service only repeats why the provider of that service failed.
        roots = [cause for cause in error.causes if ": failed: " in cause] or error.causes
        return _line(f"cannot start: {'; '.join(roots)}")
    return _line(str(error))


def told_defect(error: BaseException) -> str:
    """What nobody expected, in one line."""
    return _line(f"internal error: {type(error).__name__}: {error}; set {DEBUG}=1 to see where")


def debugging() -> bool:
    """Whether tracebacks were asked for."""
    return bool(os.environ.get(DEBUG))


def _line(text: str) -> str:
    return " ".join(text.split())
