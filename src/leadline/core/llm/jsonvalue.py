"""Types of parsed JSON, shared by everything that speaks to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""Any parsed JSON value."""

JsonObject: TypeAlias = Mapping[str, object]
"""A parsed JSON object whose members have not been looked at yet."""
