"""What a provider's refusal means: wait, or stop."""

from __future__ import annotations

import email.utils
import html
import re
from collections.abc import Iterable, Mapping

import msgspec

from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import (
    JsonReader,
    as_count,
    as_list,
    as_object,
    as_text,
)
from leadline.core.llm.failure import LlmFailure, Stop, Wait

_LONGEST_MESSAGE = 500
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>?")
_LENGTH = (
    r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
)
_PROSE_WAIT = re.compile(
    rf"(?:try again|retry|available again|resets?) (?:in|after) ((?:{_LENGTH}[ ,]*(?:and )?)+)", re.IGNORECASE
)
_SECONDS = {"ms": 0.001, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_STATUSES = ("code", "status")
_LONGEST_WINDOW = 9
"""Digits; what is longer is no count of tokens."""
_WAIT_STATUS = frozenset((408, 409, 425, 429))


def http_failure(
    profile: Profile, status: int, headers: Mapping[str, str], body: bytes, now: float
) -> LlmFailure:
    """The failure of a response that is not a success.

    Args:
        profile: the provider's patterns.
        status: HTTP status.
        headers: response headers by lower-case name.
        body: what came, possibly cut.
        now: seconds since the epoch, for a Retry-After that is a date.
    """
    text, codes = _said(body, headers.get("content-type", ""))
    message = _headline(status, text)
    said = "\n".join((text, *codes))
    failure = classify(profile, status, message, codes, retry_after_s(headers, said, now))
    request_id = headers.get("x-request-id") or headers.get("request-id")
    return msgspec.structs.replace(failure, request_id=request_id)


def event_failure(profile: Profile, error: object) -> LlmFailure:
    """The failure that an error object inside a stream reports."""
    members = as_object(error)
    text = (
        as_text(members.get("message"))
        or as_text(members.get("detail"))
        or as_text(error)
        or "the provider reported an error without a message"
    )
    codes = _codes(members)
    named = (profile.error_statuses[code] for code in codes if code in profile.error_statuses)
    status = as_count(members.get("code")) or as_count(members.get("status")) or next(named, None)
    if status is None and any(re.search("rate.?limit", code, re.IGNORECASE) for code in codes):
        status = 429
    known = status if status is not None and 400 <= status < 600 else None
    said = "\n".join((text, *codes))
    return classify(profile, known, shortened(text), codes, retry_after_s({}, said, 0.0))


def classify(
    profile: Profile, status: int | None, message: str, codes: Iterable[str], wait_s: float | None
) -> LlmFailure:
    """Which family a refusal belongs to. A refusal without a status counts as a server error."""
    evidence = "\n".join((message, *codes))
    if status != 429 and _matches(profile.overflow_patterns, evidence):
        step = "shorten the conversation, or use a model with a larger window"
        window = _window(profile.overflow_patterns, evidence)
        return Stop("CONTEXT_WINDOW_EXCEEDED", message, status, step, window_tokens=window)
    if _matches(profile.rate_limit_patterns, evidence):
        return Wait("RATE_LIMIT", message, wait_s, status)
    if status == 402 or _matches(profile.quota_patterns, evidence):
        step = "check balance and limits of the account at the provider"
        return Stop("QUOTA", message, status, step, wait_s)
    if status in (401, 403) or _matches(profile.auth_patterns, evidence):
        names = " or ".join(profile.key_env) or "the key in the configuration"
        return Stop("AUTH", message, status, f"check {names}: the provider does not accept it")
    if status == 404:
        step = f"check the model's name and base_url ({profile.base_url})"
        return Stop("NOT_FOUND", message, status, step)
    if status == 429:
        return Wait("RATE_LIMIT", message, wait_s, status)
    if status in (503, 529):
        return Wait("OVERLOADED", message, wait_s, status)
    if status is None or status >= 500:
        return Wait("SERVER", message, wait_s, status)
    if status in _WAIT_STATUS:
        return Wait("TIMEOUT" if status == 408 else "SERVER", message, wait_s, status)
    if 400 <= status < 500:
        return Stop(
            "INVALID_REQUEST", message, status, "see the provider's message; the request has to change"
        )
    return Stop(
        "HTTP", message, status, f"check base_url ({profile.base_url}): it does not answer as expected"
    )


def _window(patterns: Iterable[str], text: str) -> int | None:
    """The window that a refusal names, by the group `window` of a pattern."""
    for pattern in patterns:
        for found in re.finditer(pattern, text, re.IGNORECASE):
            digits = re.sub(r"[^0-9]", "", found.groupdict().get("window") or "")
            if digits and len(digits) <= _LONGEST_WINDOW and int(digits):
                return int(digits)
    return None


def retry_after_s(headers: Mapping[str, str], text: str, now: float) -> float | None:
    """Seconds the provider asks to wait: from its headers, else from its words."""
    value = headers.get("retry-after", "").strip()
    if millis := headers.get("retry-after-ms", "").strip():
        seconds = _number(millis)
        return None if seconds is None else seconds / 1000
    if value:
        seconds = _number(value)
        return seconds if seconds is not None else _until(value, now)
    found = _PROSE_WAIT.search(text)
    if found is None:
        return None
    lengths = re.findall(_LENGTH, found[1].lower())
    return sum(float(number) * (_SECONDS.get(unit) or _SECONDS[unit[0]]) for number, unit in lengths)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _until(date: str, now: float) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - now)


def _said(body: bytes, content_type: str) -> tuple[str, list[str]]:
    """The provider's message and its codes."""
    text = body.decode("utf-8", "replace").strip()
    if looks_like_html(content_type, text):
        return html_title(text), []
    try:
        read = JsonReader().read(body)
    except ValueError:
        return text, []
    value = as_object(next(iter(as_list(read)), read))
    error = value.get("error")
    inner = as_object(error) or value
    message = as_text(error) or next(
        (words for key in ("message", "detail", "msg") if (words := as_text(inner.get(key)))), ""
    )
    return message or text, _codes(inner)


def _codes(error: Mapping[str, object]) -> list[str]:
    """The short words of an error, its figures, and the words of its details: which quota, how long to wait."""
    codes = [as_text(error.get(key)) for key in ("code", "type", "status")]
    codes += [f"{key} {value}" for key, value in error.items() if type(value) is int and key not in _STATUSES]
    for detail in map(as_object, as_list(error.get("details"))):
        codes.append(as_text(detail.get("reason")))
        codes += [as_text(as_object(one).get("quotaId")) for one in as_list(detail.get("violations"))]
        if delay := as_text(detail.get("retryDelay")):
            codes.append(f"retry in {delay}")
    return codes


def looks_like_html(content_type: str, text: str) -> bool:
    """Whether a body is a web page."""
    return "html" in content_type or text[:200].lstrip().lower().startswith(("<!doctype html", "<html"))


def html_title(text: str) -> str:
    """The title of a web page, also of one that is cut off; the words on it when it has none."""
    found = _TITLE.search(text)
    title = found.group(1).strip() if found else ""
    return shortened(html.unescape(title or _TAG.sub(" ", text)))


def shortened(text: str) -> str:
    """``text`` on one line, and not longer than a message may be."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"


def _headline(status: int, text: str) -> str:
    line = shortened(text)
    if not line:
        return f"HTTP {status} with an empty body."
    return line if line.startswith(str(status)) else f"{status} {line}"


def _matches(patterns: Iterable[str], text: str) -> bool:
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
