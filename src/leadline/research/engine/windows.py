"""What the windows of a run's models mean for it: what a question may have, and what a source call gives."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.core.llm.adapter import Models
from leadline.core.llm.request import ModelRef
from leadline.core.llm.tokens import text_tokens
from leadline.research.request import RequestRefused, ResearchRequest
from leadline.research.roles.prompts import MODEL_ROLE

QUESTION_SHARE = 4
"""So many times a question, with its purpose and context, has to fit every window: each role is told it."""
PART_SHARE = 0.14
"""Part of a researcher's window that one source call may fill. What is larger would be cut (`window/spill.py`)."""
SOURCES_SHARE = 0.4
"""Part of a researcher's window that all its source calls together may fill, so that none has to leave it again."""
LEAST_RESULT = 200
"""Tokens of a result in however small a window."""


def windows_of(models: Models, default: ModelRef, routed: Mapping[str, str]) -> Mapping[str, int]:
    """Tokens that the model of each role takes, where that is known."""
    found: dict[str, int] = {}
    for role in MODEL_ROLE:
        adapter, ref = models.resolve(ModelRef.parse(routed[role]) if role in routed else default)
        window = adapter.info(ref.model).context_window
        if window is not None:
            found[role] = window
    return found


def check_question(request: ResearchRequest, windows: Mapping[str, int]) -> None:
    """Refuse a question that leaves no room for the work on it.

    Raises:
        RequestRefused: it does not fit.
    """
    if not windows:
        return
    window = min(windows.values())
    told = (request.question, request.purpose, request.context)
    size = sum(text_tokens(text) for text in told if text)
    most = window // QUESTION_SHARE
    if size > most:
        raise RequestRefused(
            "question",
            f"with purpose and context it has about {size:,} tokens, and at most {most:,} leave room for the work "
            f"in a window of {window:,}",
            "Shorten it, put material into a document of the corpus, or use a model with a larger window.",
        )


def result_tokens(window: int | None, calls: int) -> int | None:
    """Tokens that one source call may give, where a unit makes so many; None: as many as the tool gives."""
    if window is None:
        return None
    return max(LEAST_RESULT, int(window * min(PART_SHARE, SOURCES_SHARE / max(1, calls))))
