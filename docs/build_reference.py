"""Writes `docs/reference.md`: every row of the shipped profiles, with what it needs, provides and can be told."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from leadline.apps.sdk.composition import PROFILES, Options, composed
from leadline.kernel.loader.discover import import_plugin
from leadline.kernel.loader.rows import Row

TARGET = Path(__file__).with_name("reference.md")
HEAD = """# Reference: rows and their configuration

Written by `make docs` from the shipped profiles; a test compares. `leadline config show` prints what is composed
on your machine, with the file and line of each value. Change a row from a patch file or from `leadline.yml` in the
data directory:

```yaml
- {id: research, merge: {source_calls: 8}}
```

`merge` adds to what is there, `config` replaces it, `disabled: true` leaves the row out. A row with a `plugin` that
no layer has yet is added. Values may be `!env NAME`.
"""


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    seen: set[str] = set()
    for profile in PROFILES:
        rows = [
            row
            for row in composed(Options(profile=profile, home=Path("/nonexistent"))).rows
            if row.id not in seen
        ]
        seen.update(row.id for row in rows)
        parts.append(f"## Profile `{profile}`\n")
        above = [name for name in PROFILES if name != profile and PROFILES[name] == PROFILES[profile][:-1]]
        parts.append(f"All of `{above[0]}`, and:\n" if above else "")
        parts.extend(_row(row) for row in rows)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def _row(row: Row) -> str:
    plugin = import_plugin(row.plugin)
    lines = [f"### `{row.id}`\n", f"`{row.plugin}`\n"]
    lines.append(f"{_first(import_module(row.plugin.partition(':')[0]))}\n")
    uses = [("needs", plugin.needs), ("uses if there", plugin.wants), ("provides", plugin.provides)]
    told = [f"{word} {', '.join(f'`{one.service_key}`' for one in keys)}" for word, keys in uses if keys]
    lines.append(f"{'; '.join(told).capitalize()}.\n" if told else "")
    model: object = getattr(getattr(plugin, "config", None), "model", None)
    if isinstance(model, type) and issubclass(model, BaseModel):
        lines.append("| Key | Type | Default | |\n|---|---|---|---|")
        lines.extend(
            f"| `{key}` | {kind} | {default} | {doc} |" for key, kind, default, doc in fields_of(model)
        )
    return "\n".join(line for line in lines if line) + "\n"


def _first(module: object) -> str:
    return (inspect.getdoc(module) or "").split("\n", 1)[0]


def fields_of(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Key, type, default and meaning of every field, those of nested models included."""
    docs = _docstrings(model)
    for name, field in model.model_fields.items():
        key = f"{above}{name}"
        inner, holder = _nested(field.annotation)
        yield key, _type(field.annotation), _default(field), _cell(field.description or docs.get(name, ""))
        if inner is not None:
            yield from fields_of(inner, f"{key}.{holder}")


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The string below each field, as the source has it."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if not issubclass(cls, BaseModel) or cls is BaseModel:
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
        assert isinstance(body, ast.ClassDef)
        pairs = zip(body.body, body.body[1:], strict=False)
        found |= {
            field.target.id: str(below.value.value)
            for field, below in pairs
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        }
    return found


def _nested(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    if get_origin(annotation) in (Mapping, dict):
        inner, _ = _nested(get_args(annotation)[1])
        return inner, "NAME."
    if get_origin(annotation) in (UnionType, Union):
        return next((one for one in map(_nested, get_args(annotation)) if one[0]), (None, ""))
    return None, ""


def _type(annotation: Any) -> str:
    if annotation is type(None):
        return "null"
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{one}`" for one in inside)
    if origin in (UnionType, Union):
        return " or ".join(_type(one) for one in inside)
    if origin in (Mapping, dict):
        return f"mapping of {_type(inside[1])}"
    if origin in (tuple, list) or getattr(origin, "__name__", "") == "Sequence":
        return f"list of {_type(inside[0])}"
    name = getattr(annotation, "__name__", str(annotation))
    words = {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "Path": "path"}
    return words.get(name, {"SecretStr": "text", "object": "anything"}.get(name, name))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "as below"
    if value is None or value in ((), {}, ""):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
