"""What a provider says about its rate limits, in the headers of a response."""

from __future__ import annotations

import msgspec


class Bucket(msgspec.Struct, frozen=True, omit_defaults=True):
    """One limit; None where nothing was said. Over which time it holds is the provider's affair."""

    limit: int | None = None
    """What may be used when nothing has been used yet."""
    remaining: int | None = None
    """What may still be used."""
    resets_in_s: float | None = None
    """Seconds from the response until everything may be used again."""
    steady: bool = False
    """Whether it fills up little by little until then, and not all at once."""


class RateLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """The limits of one model, as one response told them."""

    requests: Bucket | None = None
    tokens: Bucket | None = None

    def __bool__(self) -> bool:
        return self.requests is not None or self.tokens is not None
