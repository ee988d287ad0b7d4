"""What `leadline models` writes down: one layer in the home directory, checked before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from leadline.apps.sdk.composition import MODELS_LAYER, Options, composed
from leadline.capabilities.models.keys import write_private
from leadline.core.home import Home
from leadline.kernel.errors import ConfigError, LeadlineError
from leadline.kernel.loader.compose import Composition, Layer
from leadline.kernel.loader.discover import import_plugin
from leadline.kernel.loader.document import Table
from leadline.kernel.loader.interpolate import environment, plain
from leadline.kernel.loader.patch import all_rows

ROWS = ("models", "meter", "limiter")
"""The rows that the file may speak of."""

LAST_GOOD = "models.last-good.yml"
_HEAD = "# Written by `leadline models`; what leadline.yml says goes over it.\n"


class ModelsFileError(LeadlineError):
    """The file with the added models cannot be read or written; names it and the next step."""


@dataclass(frozen=True)
class ModelsFile:
    """The file of one home directory."""

    home: Path

    @classmethod
    def of(cls, home: Path | None = None) -> ModelsFile:
        """That of `home`, else of the home directory that the environment names."""
        return cls(home or Home.default().path)

    @property
    def path(self) -> Path:
        """Where it is, or would be."""
        return self.home / MODELS_LAYER

    def read(self, row: str = "models") -> dict[str, object]:
        """The configuration of one of `ROWS` that it holds; empty where there is none.

        Raises:
            ModelsFileError: it cannot be read, or is not as `leadline models` writes it.
        """
        return self._rows().get(row, {})

    def _rows(self) -> dict[str, dict[str, object]]:
        import yaml

        try:
            raw: object = yaml.safe_load(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise ModelsFileError(f"cannot read {self.path}: {error}") from None
        except yaml.YAMLError:
            raise self._damaged() from None
        items = cast("list[object]", raw) if isinstance(raw, list) else []
        rows: dict[str, dict[str, object]] = {}
        for item in items:
            row = cast("dict[str, object]", item) if isinstance(item, dict) else {}
            name, merged = row.get("id"), row.get("merge")
            if name not in ROWS or not isinstance(merged, dict):
                raise self._damaged()
            rows[str(name)] = cast("dict[str, object]", merged)
        if not rows:
            raise self._damaged()
        return rows

    def _damaged(self) -> ModelsFileError:
        last = self.home / LAST_GOOD
        step = f"copy {last} over it" if last.exists() else "remove it and add the models again"
        return ModelsFileError(f"{self.path} is not as `leadline models` wrote it; {step}")

    def write(self, config: Mapping[str, object], row: str = "models") -> Composition:
        """Put `config` in the place of what is there of a row, if it can be used; the file that was is kept beside it.

        Returns:
            what is composed now.

        Raises:
            ConfigError: it cannot be used; nothing was written.
            ModelsFileError: it cannot be read or written; what was there is there still.
        """
        import yaml

        rows = {**self._rows(), row: dict(config)}
        layer = [
            {"id": name, "merge": rows.get(name, {})} for name in ROWS if rows.get(name) or name == ROWS[0]
        ]
        text = _HEAD + str(yaml.safe_dump(layer, sort_keys=False, allow_unicode=True))  # pyright: ignore[reportUnknownMemberType] - as the stubs have it
        composition = checked(Layer(str(self.path), text), self.home)
        try:
            Home(self.home).make()
            before = None
            with suppress(FileNotFoundError):
                before = self.path.read_text(encoding="utf-8")
            if before is not None:
                write_private(self.home / LAST_GOOD, before)
            write_private(self.path, text)
        except OSError as error:
            raise ModelsFileError(f"cannot write {self.path}: {error.strerror or error}") from None
        return composition


def checked(layer: Layer, home: Path) -> Composition:
    """What is composed with `layer` as the file; its rows are such as their plugins take.

    Raises:
        ConfigError: it is not.
    """
    composition = composed(Options(profile="headless", home=home), layer)
    for name in ROWS:
        row = next((row for row in all_rows(composition.rows) if row.id == name), None)
        if row is None or row.disabled:
            raise ConfigError(f"the composition has no row `{name}`; see: leadline config show")
        import_plugin(row.plugin).bind(plain(row.config, environment(), lambda ref: ref))
    return composition


def in_force(composition: Composition) -> Mapping[str, object]:
    """The configuration of the row `models`, all layers together."""
    row = next(row for row in all_rows(composition.rows) if row.id == "models")
    wanted = Table(
        {key: node for key, node in row.config.content.items() if key in ("default", "roles")}, row.origin
    )
    return cast("Mapping[str, object]", plain(wanted, environment(), lambda ref: ref))


def configured(row_id: str) -> Mapping[str, object]:
    """The configuration of a row, all layers of the home directory together; empty where it is not composed."""
    composition = composed(Options(profile="headless"))
    row = next((row for row in all_rows(composition.rows) if row.id == row_id), None)
    return (
        {} if row is None else cast("Mapping[str, object]", plain(row.config, environment(), lambda ref: ref))
    )
