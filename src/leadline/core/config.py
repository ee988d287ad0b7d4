"""Turn a mapping that a person wrote into a plugin's config model, or say what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from leadline.kernel.errors import ConfigError, did_you_mean

M = TypeVar("M", bound=BaseModel)


class ConfigParser(Generic[M]):
    """`ConfigParser(Model)` is what a plugin gives as its `config`: it makes a Model of a mapping."""

    def __init__(self, model: type[M]) -> None:
        self.model = model
        """The model; what documents the config can read its fields."""

    def __call__(self, raw: Mapping[str, object]) -> M:
        """The validated config.

        Raises:
            ConfigError: one or more values cannot be used; the message has a line for each, which
                names the key, what was found, what is expected and, for an unknown key, the nearest.
        """
        try:
            return self.model.model_validate(dict(raw))
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            key = found[0]["loc"] if found else ()
            raise ConfigError("; ".join(self._line(one) for one in found), key=key) from None

    def _line(self, error: ErrorDetails) -> str:
        path = error["loc"]
        key = ".".join(str(part) for part in path) or "config"
        if error["type"] == "extra_forbidden":
            return f"unknown key {key!r}{did_you_mean(str(path[-1]), self._fields_at(path[:-1]))}"
        if error["type"] == "missing":
            return f"{key!r} is missing; add it ({self._expected(path)})"
        why = error["msg"].removeprefix("Value error, ")
        found = _shown(path, error["input"])
        return f"{key!r} cannot be {found}: {why}" if found else f"{key!r}: {why}"

    def _fields_at(self, path: tuple[int | str, ...]) -> list[str]:
        model = _model_at(self.model, path)
        return [field.alias or name for name, field in model.model_fields.items()] if model else []

    def _expected(self, path: tuple[int | str, ...]) -> str:
        model = _model_at(self.model, path[:-1])
        field = model.model_fields.get(str(path[-1])) if model else None
        if field is None or field.annotation is None:
            return "see its plugin's configuration"
        kind = field.annotation.__name__ if isinstance(field.annotation, type) else str(field.annotation)
        return f"{kind}: {field.description}" if field.description else kind


_SECRET = ("key", "secret", "token", "password")


def _shown(path: tuple[int | str, ...], value: object) -> str:
    """A value for a message; what may be or hold a secret is left out. Empty where it is a whole table."""
    last = str(path[-1]).rsplit("_", 1)[-1] if path else ""
    if last in _SECRET:
        return "what was given (not shown)"
    if isinstance(value, Mapping):
        return ""
    return (
        repr(value) if value is None or isinstance(value, str | int | float | bool) else type(value).__name__
    )


def _model_at(model: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model that holds what `path` points at; None where that is not a plain nested model."""
    for part in path:
        field = model.model_fields.get(str(part))
        inner: object = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return None
        model = inner
    return model
