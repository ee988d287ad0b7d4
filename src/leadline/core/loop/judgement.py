"""Decides what to do with an answer that ended, but not in a way the turn can go on from.

Pure: the counts of one turn go in with the answer, a decision comes out. Each kind of useless
answer has a bounded number of second chances, and then a typed end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from leadline.core.llm.failure import WaitCode
from leadline.core.llm.stream import FinishState

MAX_TRUNCATED = 3
"""Answers cut inside a tool call before the turn ends."""
MAX_MISWRITTEN = 3
"""Answers whose call cannot be read, of a model that calls tools in text, before the turn fails."""

FaultKind: TypeAlias = Literal["truncated", "empty", "leaked"]


@dataclass(frozen=True)
class Faults:
    """How many answers of this turn could not be used, by kind, without one that could between them."""

    truncated: int = 0
    empty: int = 0
    leaked: int = 0


@dataclass(frozen=True)
class Answer:
    """What is to be judged of one completed answer."""

    state: FinishState
    text: bool
    """Whether it holds visible text."""
    calls: tuple[str, ...]
    """Names of the tools it calls."""
    leaked_call: bool
    """Whether it ends with a tool call written as text."""
    max_tokens: int | None
    """The ceiling on output that the request had, else how many tokens the provider says were written."""
    correction: str = ""
    """What the model is told of a call written as text, where its adapter has words of its own."""


@dataclass(frozen=True)
class Accept:
    """Go on: run the calls if there are any, else the turn is over."""


@dataclass(frozen=True)
class Correct:
    """Tell the model what was wrong and ask again."""

    kind: FaultKind
    text: str


@dataclass(frozen=True)
class StopLength:
    """The answer reached the output ceiling and calls nothing: the turn stops, unless something waits."""

    reason: str


@dataclass(frozen=True)
class EndLength:
    """The turn ends at the output ceiling."""

    reason: str


@dataclass(frozen=True)
class Fail:
    """The turn ends with an error."""

    code: WaitCode
    reason: str


Judgement: TypeAlias = Accept | Correct | StopLength | EndLength | Fail


def judge(faults: Faults, answer: Answer) -> tuple[Faults, Judgement]:
    """What to do with the answer, and the counts after it."""
    if answer.state == "length":
        return _truncated(faults, answer)
    if answer.leaked_call and not answer.calls:
        return _leaked(faults, answer.correction)
    if not answer.text and not answer.calls:
        return _empty(faults)
    return Faults(), Accept()


def _truncated(faults: Faults, answer: Answer) -> tuple[Faults, Judgement]:
    limit = f"the output limit of {answer.max_tokens} tokens" if answer.max_tokens else "the output limit"
    if not answer.calls:
        return faults, StopLength(f"the answer reached {limit}")
    count = faults.truncated + 1
    after = replace(faults, truncated=count)
    names = ", ".join(dict.fromkeys(answer.calls))
    if count >= MAX_TRUNCATED:
        return after, EndLength(
            f"the answer was cut at {limit} {count} times in a row inside a call of {names}; "
            "raise max_tokens or ask for smaller pieces"
        )
    text = f"Your message was cut off at {limit}, so its call of {names} was not run."
    if count > 1:
        text += (
            f" This is the second time. A message, its tool arguments included, must stay below {limit}: "
            "split the content into several calls, each well below it."
        )
    return after, Correct("truncated", text + (" Send a shorter call." if count == 1 else ""))


def _leaked(faults: Faults, correction: str) -> tuple[Faults, Judgement]:
    if faults.leaked >= (MAX_MISWRITTEN if correction else 1):
        return faults, Fail(
            "MALFORMED_RESPONSE",
            "leaked tool call: the model wrote a tool call as text again after it was corrected",
        )
    return replace(faults, leaked=faults.leaked + 1), Correct(
        "leaked",
        correction
        or "Your message ends with a tool call written as text. It was not run. To call a tool, use the tool "
        "interface; otherwise answer without that markup.",
    )


def _empty(faults: Faults) -> tuple[Faults, Judgement]:
    if faults.empty:
        return faults, Fail(
            "EMPTY_RESPONSE", "empty response: the model answered twice with neither text nor a call"
        )
    return replace(faults, empty=1), Correct(
        "empty", "Your last message was empty. Go on with the task, or give the final answer as text."
    )
