"""Where Leadline keeps what outlives a process: one directory, readable by its owner alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from leadline.core.config import ConfigParser
from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service

VARIABLE = "LEADLINE_HOME"
_PRIVATE = 0o700


class HomeUnusable(LeadlineError):
    """The home directory, or one in it, cannot be made; names the path, the cause and the next step."""


class Home(Service, key="home"):
    """The home directory and the places in it. Making one touches nothing; `make` creates."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """The directory itself, absolute."""

    @classmethod
    def default(cls, environ: Mapping[str, str] | None = None) -> Home:
        """The home that `LEADLINE_HOME` names, else `~/.leadline`."""
        named = (os.environ if environ is None else environ).get(VARIABLE)
        return cls(Path(named).expanduser().absolute() if named else Path.home() / ".leadline")

    @property
    def sessions(self) -> Path:
        """Session logs."""
        return self.path / "sessions"

    @property
    def blobs(self) -> Path:
        """Bytes by their hash."""
        return self.path / "blobs"

    @property
    def corpora(self) -> Path:
        """Indexes of folders that were searched; each can be rebuilt."""
        return self.path / "corpora"

    @property
    def index(self) -> Path:
        """The index over all sessions; it can be rebuilt."""
        return self.path / "index.sqlite"

    def make(self, *parts: str) -> Path:
        """A directory below home, created together with those above it, each with mode 0700.

        Raises:
            HomeUnusable: it cannot be created.
        """
        made = self.path
        try:
            made.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            for part in parts:
                made = made / part
                made.mkdir(mode=_PRIVATE, exist_ok=True)
        except OSError as error:
            raise HomeUnusable(
                f"cannot use {made} as a data directory: {error.strerror or error}; "
                f"set {VARIABLE} to a directory that you may write"
            ) from error
        return made


class HomeConfig(BaseModel):
    """Configuration of the home directory."""

    model_config = ConfigDict(extra="forbid")

    path: Path | None = None
    """The directory; without it `LEADLINE_HOME`, else `~/.leadline`."""


async def _apply(ctx: Context, config: HomeConfig) -> None:
    home = Home(config.path.expanduser().absolute()) if config.path else Home.default()
    for part in ("sessions", "blobs", "corpora"):
        home.make(part)
    ctx.provide(Home, home)


plugin: Plugin[HomeConfig] = Plugin("home", _apply, config=ConfigParser(HomeConfig), provides=(Home,))
