"""The two families of model failure: wait and try again, or stop and tell the user."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

WaitCode: TypeAlias = Literal[
    "RATE_LIMIT",
    "SERVER",
    "OVERLOADED",
    "TRANSPORT",
    "TIMEOUT",
    "STREAM_CLOSED",
    "EMPTY_RESPONSE",
    "MALFORMED_RESPONSE",
]
StopCode: TypeAlias = Literal[
    "AUTH",
    "MISSING_CREDENTIAL",
    "QUOTA",
    "CONTEXT_WINDOW_EXCEEDED",
    "INVALID_REQUEST",
    "NOT_FOUND",
    "REFUSED",
    "UNSUPPORTED",
    "GAVE_UP",
    "HTTP",
    "CAPACITY",
    "BUDGET",
    "NO_PRICE",
]
"""``CAPACITY``: waited in line longer than allowed; ``BUDGET``: a ceiling is reached; ``NO_PRICE``: a ceiling on
money stands, and what the call costs is not known. The rest are the provider's refusals."""


class Wait(msgspec.Struct, frozen=True, tag_field="family", tag="wait", omit_defaults=True):
    """The same request may succeed later."""

    code: WaitCode
    message: str
    retry_after_s: float | None = None
    """Seconds the provider asked to wait: a minimum."""
    status: int | None = None
    request_id: str | None = None


class Stop(msgspec.Struct, frozen=True, tag_field="family", tag="stop", omit_defaults=True):
    """The same request will fail again; a person has to change something."""

    code: StopCode
    message: str
    status: int | None = None
    next_step: str | None = None
    """What to do about it."""
    resets_in_s: float | None = None
    """Seconds until the provider says it serves again, where it said so."""
    request_id: str | None = None
    window_tokens: int | None = None
    """For CONTEXT_WINDOW_EXCEEDED: the window that the provider named in its refusal."""


LlmFailure: TypeAlias = Wait | Stop
