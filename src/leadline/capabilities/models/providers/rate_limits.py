"""What the head of a response says about rate limits. Which headers say it is data of the profile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.llm.limits import Bucket, RateLimits

_LARGEST = 10**15
_LENGTH = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ms|us|µs|ns|d|h|m|s)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FIELD = re.compile(r";\s*([a-z]+)\s*=\s*(\d{1,15})")
_MOMENT = 1e9
"""A number of seconds from here on is a moment since 1970, and no length of time."""
_MOMENT_MS = 1e11


class _Names(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BucketHeaders(_Names):
    """Headers of one limit, by lower-case name; the first of each that can be read counts."""

    limit: tuple[str, ...] = ()
    """What may be used in all."""
    remaining: tuple[str, ...] = ()
    """What is left."""
    reset: tuple[str, ...] = ()
    """When everything may be used again: a length of time (`6m0s`, `120ms`, seconds) or a moment."""
    within_s: float | None = Field(default=None, gt=0)
    """Seconds after which that is so at the latest, where no header tells."""


_REQUESTS = BucketHeaders(
    limit=("x-ratelimit-limit-requests", "ratelimit-limit", "x-ratelimit-limit"),
    remaining=("x-ratelimit-remaining-requests", "ratelimit-remaining", "x-ratelimit-remaining"),
    reset=("x-ratelimit-reset-requests", "ratelimit-reset", "x-ratelimit-reset"),
)
_TOKENS = BucketHeaders(
    limit=("x-ratelimit-limit-tokens",),
    remaining=("x-ratelimit-remaining-tokens",),
    reset=("x-ratelimit-reset-tokens",),
)


class RateLimitHeaders(_Names):
    """Where a provider tells its rate limits. Without anything: as chat completions usually do, or as
    `RateLimit` fields."""

    requests: BucketHeaders = _REQUESTS
    tokens: BucketHeaders = _TOKENS
    steady: bool = False
    """Whether what was used comes back little by little, and not all at once at the reset."""

    @cached_property
    def heard(self) -> frozenset[str]:
        """Every header without which nothing is told."""
        buckets = (self.requests, self.tokens)
        return frozenset(name for one in buckets for name in (*one.limit, *one.remaining)) | {"ratelimit"}


def rate_limits(names: RateLimitHeaders, headers: Mapping[str, str], now: float) -> RateLimits | None:
    """What `headers` (by lower-case name) say; None where they say nothing. `now`: seconds since 1970, UTC.

    A value that cannot be read counts as not there.
    """
    if names.heard.isdisjoint(headers):
        return None
    requests = _bucket(names.requests, headers, now, steady=names.steady)
    tokens = _bucket(names.tokens, headers, now, steady=names.steady)
    if requests is None:
        requests = _structured(headers)
    return RateLimits(requests, tokens) if requests is not None or tokens is not None else None


def _bucket(names: BucketHeaders, headers: Mapping[str, str], now: float, *, steady: bool) -> Bucket | None:
    remaining = _first_count(names.remaining, headers)
    limit = _first_count(names.limit, headers)
    if remaining is None and limit is None:
        return None
    resets = (seconds_until(headers[name], now) for name in names.reset if name in headers)
    resets_in_s = next((found for found in resets if found is not None), names.within_s)
    return Bucket(limit, remaining, resets_in_s, steady)


def _structured(headers: Mapping[str, str]) -> Bucket | None:
    """`RateLimit: "default";r=50;t=30` and `RateLimit-Policy: "default";q=100;w=60`; the tightest of several."""
    found: list[Bucket] = []
    quotas = {
        _policy(one): dict(_FIELD.findall(one)) for one in headers.get("ratelimit-policy", "").split(",")
    }
    for one in headers.get("ratelimit", "").split(","):
        members = dict(_FIELD.findall(one))
        if "r" in members:
            quota = quotas.get(_policy(one), {})
            reset = members.get("t", quota.get("w"))
            limit = int(quota["q"]) if "q" in quota else None
            found.append(Bucket(limit, int(members["r"]), float(reset) if reset is not None else None))
    return min(found, key=lambda bucket: bucket.remaining or 0, default=None)


def _policy(item: str) -> str:
    return item.partition(";")[0].strip()


def _first_count(names: tuple[str, ...], headers: Mapping[str, str]) -> int | None:
    found = (_count(headers[name]) for name in names if name in headers)
    return next((count for count in found if count is not None), None)


def _count(text: str) -> int | None:
    """A whole number; what is behind a comma or a semicolon belongs to older forms of the field."""
    digits = re.split("[,;]", text, maxsplit=1)[0].strip()
    if digits.endswith(".0"):
        digits = digits[:-2]
    if not (digits.isascii() and digits.isdecimal()):
        return None
    return int(digits) if len(digits) <= 15 and int(digits) <= _LARGEST else None


def seconds_until(text: str, now: float) -> float | None:
    """Seconds from `now` until what a header names: a length of time, or a moment in any of the usual ways."""
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        length = _length(text)
        return _until(text, now) if length is None else length
    if not 0 <= number < float("inf"):
        return None
    if number >= _MOMENT_MS:
        return max(0.0, number / 1000 - now)
    return max(0.0, number - now) if number >= _MOMENT else number


def _length(text: str) -> float | None:
    parts = _LENGTH.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _until(text: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text) if text[:4].isdecimal() else parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, OverflowError):
        return None
