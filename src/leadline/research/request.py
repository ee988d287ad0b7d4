"""What a person asks of a run, checked before anything starts."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, get_args

from leadline.core.llm.request import ModelRef
from leadline.core.spend.money import SMALLEST
from leadline.kernel.errors import LeadlineError
from leadline.research.events import NO_CEILINGS, RunBudget
from leadline.research.roles.purposes import ReportFormat

Breadth = Literal["focused", "balanced", "broad"]

MOST_KEPT = 0.9
"""Largest share of a budget that can be kept for writing up."""

MAX_UNITS: dict[str, int] = {"focused": 1, "balanced": 2, "broad": 3}


class RequestRefused(LeadlineError):
    """A request that cannot be run: names the field, the cause and what to do. Nothing was started."""

    def __init__(self, field: str, cause: str, next_step: str) -> None:
        super().__init__(f"{field}: {cause}. {next_step}")
        self.field = field


@dataclass(frozen=True, kw_only=True)
class ResearchRequest:
    """A question, where to look, and in what form the answer is wanted."""

    question: str
    corpus: tuple[Path, ...] = ()
    """Files and folders that may be searched; nothing else is."""
    method: str = "adaptive"
    breadth: Breadth = "balanced"
    """Ceiling on parallel units: focused 1, balanced 2, broad 3."""
    format: ReportFormat = "report"
    language: str | None = None
    """Language of the report; None: that of the question."""
    purpose: str | None = None
    """What the answer is for."""
    context: str | None = None
    """What the researcher should know and the report need not prove."""
    model: ModelRef | None = None
    """None: the default model of the profile."""
    budget: RunBudget = NO_CEILINGS
    """Ceilings; where it says nothing, the configured ones hold."""

    @property
    def max_units(self) -> int:
        return MAX_UNITS[self.breadth]

    @property
    def words(self) -> str:
        """Everything the person said, which needs no evidence in the report."""
        return "\n".join(part for part in (self.question, self.purpose, self.context) if part)


def checked(
    question: str,
    *,
    corpus: Sequence[str | Path] = (),
    method: str | None = None,
    breadth: str | None = None,
    format: str | None = None,  # noqa: A002 - the published name of the option
    language: str | None = None,
    purpose: str | None = None,
    context: str | None = None,
    model: ModelRef | None = None,
    budget: RunBudget | None = None,
) -> ResearchRequest:
    """The request, trimmed and checked.

    Raises:
        RequestRefused: blank question, unknown choice, blank option, one path for a list of them, a corpus path
            that is not there, or a ceiling that is none.
    """
    if not question.strip():
        raise RequestRefused("question", "it is blank", "Say in a sentence what you want to know.")
    if isinstance(
        corpus, str | Path
    ):  # a text is a sequence too, whose one-letter paths could be "/" and "."
        raise RequestRefused(
            "corpus", "it is one path, not a list of paths", f"Write corpus=[{str(corpus)!r}]."
        )
    return ResearchRequest(
        question=question.strip(),
        corpus=tuple(existing(path) for path in corpus),
        method=_not_blank("method", method) or "adaptive",
        breadth=_choice("breadth", breadth, get_args(Breadth), "balanced"),  # pyright: ignore[reportArgumentType] - checked against the literal
        format=_choice("format", format, get_args(ReportFormat), "report"),  # pyright: ignore[reportArgumentType] - checked against the literal
        language=_not_blank("language", language),
        purpose=_optional(purpose),
        context=_optional(context),
        model=model,
        budget=checked_budget(budget or NO_CEILINGS),
    )


def checked_budget(budget: RunBudget) -> RunBudget:
    """The budget, if each of its ceilings is one.

    Raises:
        RequestRefused: a ceiling is zero, negative or no number, or a share is not between 0 and 0.9 (1 for a unit).
    """
    for field, value, example in (
        ("max_tokens", budget.tokens, "200000"),
        ("max_calls", budget.calls, "50"),
    ):
        if value is not None and (isinstance(value, bool) or value != int(value)):
            raise RequestRefused(field, f"{value} is no whole number", f"Write for example {example}.")
    for field, value, example in (
        ("max_tokens", budget.tokens, "200000"),
        ("max_cost", budget.cost, "0.50, in US dollars"),
        ("max_calls", budget.calls, "50"),
        ("max_seconds", budget.seconds, "600"),
    ):
        if value is not None and not (math.isfinite(value) and value >= SMALLEST):
            raise RequestRefused(
                field,
                f"{value:g} is no ceiling",
                f"Leave it out, or give more than 0, for example {example}.",
            )
    if budget.keep is not None and not 0 <= budget.keep <= MOST_KEPT:
        raise RequestRefused(
            "keep",
            f"{budget.keep:g} cannot be kept for writing up",
            f"Give a share from 0 to {MOST_KEPT}, such as 0.15.",
        )
    if budget.unit_share is not None and not 0 < budget.unit_share <= 1:
        raise RequestRefused(
            "unit_share",
            f"{budget.unit_share:g} is no share",
            "Give more than 0 and at most 1, or leave it out.",
        )
    return budget


def existing(given: str | Path) -> Path:
    """A path of a corpus, if there is something at it.

    Raises:
        RequestRefused: it is blank, leads nowhere, or nobody may go there.
    """
    if not str(given).strip():
        raise RequestRefused("corpus", "it is blank", "Name a file or a folder that can be read.")
    path = _at_home(Path(given))
    try:
        there = path.exists()
    except OSError as error:
        cause = f"{path} cannot be reached ({error.strerror})"
        raise RequestRefused("corpus", cause, "Name a file or a folder that can be read.") from error
    if not there:
        raise RequestRefused("corpus", f"{path} does not exist", "Name a file or a folder that can be read.")
    return path


def writable(field: str, given: str | Path) -> Path:
    """A path that a file can be written to at the end of a run.

    Raises:
        RequestRefused: its folder is not there or cannot be written, or it is a folder itself.
    """
    path = _at_home(Path(given))
    folder = path.absolute().parent
    if not os.path.isdir(folder):  # noqa: PTH112 - says no, too, where one may not look
        raise RequestRefused(field, f"there is no folder {folder}", "Make it, or name another.")
    if path.is_dir():
        raise RequestRefused(field, f"{path} is a folder", "Name a file in it.")
    if not os.access(folder, os.W_OK):
        raise RequestRefused(field, f"{folder} cannot be written", "Change its permissions, or name another.")
    return path


def _at_home(path: Path) -> Path:
    """With `~` as the home folder, which a shell leaves alone behind a `=`."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _choice(field: str, value: str | None, choices: tuple[str, ...], default: str) -> str:
    if value is None:
        return default
    if value in choices:
        return value
    near = get_close_matches(value, choices, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Choose one of {', '.join(choices)}."
    raise RequestRefused(field, f"{value!r} is not known", hint)


def _not_blank(field: str, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise RequestRefused(field, "it is blank", "Leave the option out, or give it a value.")
    return value.strip() if value else None


def _optional(value: str | None) -> str | None:
    return value.strip() if value and value.strip() else None
