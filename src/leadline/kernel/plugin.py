"""A plugin as one frozen value: what it is called, needs, offers, and how it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from leadline.kernel.errors import ConfigError
from leadline.kernel.services import Service

if TYPE_CHECKING:
    from leadline.kernel.context import Context

C = TypeVar("C")
Start = Callable[["Context"], Awaitable[None]]


def no_config(raw: Mapping[str, object]) -> None:
    """The config of a plugin that takes none.

    Raises:
        ConfigError: a value was given all the same.
    """
    if raw:
        raise ConfigError(f"takes no configuration, but was given {', '.join(sorted(raw))}; remove it")


class Mountable(Protocol):
    """What the kernel needs of a plugin, whatever its config type. `Plugin` is one."""

    @property
    def name(self) -> str: ...
    @property
    def needs(self) -> tuple[type[Service], ...]: ...
    @property
    def wants(self) -> tuple[type[Service], ...]: ...
    @property
    def provides(self) -> tuple[type[Service], ...]: ...

    def bind(self, config: object) -> Start:
        """Validate `config` and return what starts the plugin with it."""
        ...


@dataclass(frozen=True)
class Plugin(Generic[C]):
    """Everything the kernel knows of a plugin. Importing the module that holds it does nothing.

    The plugin starts when all it `needs` is provided, stops when one of those leaves, and restarts
    when a provider of what it needs or `wants` is exchanged.
    """

    name: str
    """Short and unique among what is composed together; used in reports."""

    apply: Callable[[Context, C], Awaitable[None]]
    """Registers everything, each registration an effect of the context it is given."""

    config: Callable[[Mapping[str, object]], C] = cast("Callable[[Mapping[str, object]], C]", no_config)  # noqa: RUF009 - a cast does nothing
    """Makes the config from a mapping; raises ConfigError on what it cannot use."""

    needs: tuple[type[Service], ...] = ()
    """Services without which it does not start; read them with `ctx.get`."""

    wants: tuple[type[Service], ...] = ()
    """Services it uses where they exist; read them with `ctx.find`."""

    provides: tuple[type[Service], ...] = ()
    """Services that `apply` provides; not doing so is an error."""

    requires: str = ""
    """Distributions and versions it runs with, as in `leadline>=0.1,<0.3`; the loader checks them."""

    def bind(self, config: object) -> Start:
        """Validate `config` (None, a mapping, or a ready value) and return what starts the plugin.

        Raises:
            ConfigError: the mapping cannot be used.
        """
        if config is None or isinstance(config, Mapping):
            value = self.config(cast("Mapping[str, object]", config or {}))
        else:
            value = cast("C", config)
        return lambda ctx: self.apply(ctx, value)
