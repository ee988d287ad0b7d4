"""Configuration of the row `limiter`: ceilings of models, written by a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

_LARGEST = 10**12


def _whole(value: object) -> object:
    """A whole number as it is meant: nothing that stands for none, no truth value, no blank, no fraction."""
    if value is None:
        raise ValueError("a number is missing; leave the key out where there is no limit")
    if isinstance(value, str):
        # A value from the environment is text.
        if not (value.isascii() and value.isdecimal()):
            raise ValueError(f"{value!r} is not a whole number; leave the key out where there is no limit")
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not a whole number; leave the key out where there is no limit")  # noqa: TRY004 - for pydantic
    return value


def _seconds(value: object) -> object:
    if value is None or isinstance(value, bool) or (isinstance(value, str) and not value.strip()):
        raise ValueError("a number of seconds is missing; leave the key out for the default")
    return value


Count: TypeAlias = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=_LARGEST)]
"""A whole number of at least one."""
Limit: TypeAlias = Annotated[
    Annotated[int, Field(ge=1, le=_LARGEST)] | None, BeforeValidator(_whole, json_schema_input_type=int)
]
"""As `Count`, where leaving the key out, and nothing else, means that there is no limit."""
Seconds: TypeAlias = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]


class LineConfig(BaseModel):
    """What one model, or each model of a provider, may be asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """`provider/name`, or `provider/*` for each model of the provider that has no row of its own."""
    max: Limit = None
    """Calls that may be under way at once; without it as many as are wanted."""
    requests_per_minute: Limit = None
    """Calls that may be made within any minute."""
    tokens_per_minute: Limit = None
    """Tokens, prompts and answers together, within any minute."""

    @field_validator("model")
    @classmethod
    def _named(cls, value: str) -> str:
        provider, slash, name = value.partition("/")
        if not (provider and slash and name) or "*" in provider or ("*" in name and name != "*"):
            raise ValueError("name one model as provider/name, or all of a provider as provider/*")
        return value


class LimiterConfig(BaseModel):
    """How many calls of models may be under way."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limits: tuple[LineConfig, ...] = ()
    """Ceilings of models. A model that is in none is held to what its provider says."""
    children: Count = 16
    """Calls that agents with a parent may have under way at a time, over the whole process and all models; the
    surplus waits its turn. An agent that waits for its own children holds none."""
    queue_timeout_s: Seconds = 600.0
    """Longest wait of one call in its line, in seconds; then it fails, and says what to change."""
    max_queued: Count = 10_000
    """Calls that may stand in one line; one more fails at once."""
    shared: bool = True
    """Whether a line with a ceiling is one line for all processes that use the same home directory."""

    @field_validator("limits")
    @classmethod
    def _once_each(cls, rows: tuple[LineConfig, ...]) -> tuple[LineConfig, ...]:
        names = [row.model for row in rows]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} has two rows; write its limits into one")
        return rows


class Ceilings:
    """Finds what is configured for a model."""

    def __init__(self, rows: Sequence[LineConfig]) -> None:
        self.rows = tuple(rows)
        self._rows = {row.model: row for row in rows}

    def of(self, model: str) -> LineConfig | None:
        """The row of `model`, else that of all models of its provider."""
        if not self._rows:
            return None
        return self._rows.get(model) or self._rows.get(f"{model.partition('/')[0]}/*")
