"""A run as a file, in the form that the file's name asks for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from leadline.apps.cli.exits import Exit, Quit

if TYPE_CHECKING:
    from leadline.research.report.result import ResearchResult
    from leadline.research.stored import StoredRun

Form = Literal["markdown", "html", "json", "bundle"]

_FORMS: dict[str, Form] = {
    "": "markdown",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "markdown",
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".leadline": "bundle",
}


def form_of(path: Path, *, bundle: bool) -> Form:
    """The form that a name asks for.

    Raises:
        Quit: no report is written in that form, or a bundle where there may be none.
    """
    form = _FORMS.get(path.suffix.lower())
    if form is None or (form == "bundle" and not bundle):
        known = "md, .html, .json" + (" or .leadline" if bundle else "; a bundle is written with --bundle")
        raise Quit(Exit.USAGE, f"{path}: cannot write {path.suffix or 'that'}; name it .{known}")
    return form


def check_writable(path: Path, form: Form) -> None:
    """Refuse, before anything starts, a file that could not be written at the end.

    Raises:
        Quit: its folder is not there, it or its folder cannot be written, or it would be a bundle and is a device.
    """
    try:
        _check(path, form)
    except OSError as error:
        raise Quit(
            Exit.USAGE, f"{path}: it cannot be written: {error.strerror or error}; name another"
        ) from error


def _check(path: Path, form: Form) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise Quit(Exit.USAGE, f"{path}: there is no folder {folder}; make it, or name another")
    if path.is_dir():
        raise Quit(Exit.USAGE, f"{path}: that is a folder; name a file in it")
    if form == "bundle" and path.exists() and not path.is_file():
        raise Quit(Exit.USAGE, f"{path}: it is no ordinary file; name one")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise Quit(Exit.USAGE, f"{path}: it cannot be written; change its permissions, or name another")


def write_report(path: Path, form: Form, run: StoredRun, result: ResearchResult) -> str:
    """Write a run; returns what to tell of it.

    Raises:
        OSError, LeadlineError: the file cannot be written; what was there before is kept.
    """
    if form == "bundle":
        return f"bundle {path}  sha256 {run.write_bundle(path)}"
    if form == "json":
        data = result.to_json() + b"\n"
    elif form == "html":
        from leadline.research.report.html import render_html

        data = render_html(result, run.ledger.draft).encode("utf-8", "replace")
    else:
        data = result.report.encode("utf-8", "replace")
    _replace(path, data)
    return f"report {path}"


def _replace(path: Path, data: bytes) -> None:
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
