"""What a surface may know of model providers: who is reached where, which key is there, what a server offers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leadline.core.llm.adapter import ModelInfo
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service

KeySource = Literal["configuration", "environment", "keyring", "file", "missing", "none"]
"""Where a key comes from; `missing`: one is needed and not there; `none`: none is needed and none is there."""


class KeyStoreError(LeadlineError):
    """A key could not be stored, read or removed; never holds the key."""


@dataclass(frozen=True, kw_only=True)
class KeyState:
    """Whether a provider has its key; the key itself is nowhere in it."""

    source: KeySource
    variable: str | None = None
    """The environment variable, where it is there."""
    problem: str | None = None
    """Why what is stored cannot be used."""

    @property
    def usable(self) -> bool:
        """Whether a call can be made with it, or without one."""
        return self.source != "missing"


@dataclass(frozen=True, kw_only=True)
class ProviderFacts:
    """One provider as it is composed."""

    name: str
    profile: str
    api: str
    base_url: str
    """Blank: it has to be given."""
    key: KeyState
    key_env: tuple[str, ...]
    key_required: bool
    key_page: str
    tried: str | None
    """Date on which the profile was tried live; None: constructed from what the provider publishes."""
    configured: bool
    """Whether the configuration speaks of it; the others ship."""
    local: bool
    """Whether it is a server on one's own machine, which can be looked for."""
    models: tuple[ModelInfo, ...]
    """The models of which something is known."""
    added: tuple[str, ...]
    """Those of them that the configuration names."""

    @property
    def usable(self) -> bool:
        """Whether nothing is missing that can be told without asking it."""
        return self.addressed and self.key.usable

    @property
    def addressed(self) -> bool:
        """Whether it is known where to ask; the bridge's library knows by itself."""
        return bool(self.base_url) or self.api == "bridge"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What became of looking for a server on this machine."""

    provider: str
    base_url: str
    models: tuple[str, ...] = ()
    problem: str | None = None
    """Why nothing was found there; None: it answered."""


class ModelCatalogue(Service, key="model_catalogue"):
    """The providers that are composed, without asking any of them; `discover` asks those of this machine."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the providers, sorted."""

    @property
    @abstractmethod
    def profiles(self) -> tuple[str, ...]:
        """Names of the profiles that a provider may have, sorted."""

    @abstractmethod
    def provider(self, name: str) -> ProviderFacts | None:
        """What is known of a provider; None where there is none of that name.

        Raises:
            ConfigError: its profile cannot be used.
        """

    @abstractmethod
    async def discover(self, timeout_s: float) -> Sequence[Found]:
        """Ask the servers of this machine, on their usual ports, which models they have.

        Only loopback addresses are asked, all at once, each for at most `timeout_s`.
        """
