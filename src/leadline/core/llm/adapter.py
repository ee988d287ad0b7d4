"""The seam between the harness and a provider of models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from leadline.core.llm.request import LlmRequest, ModelRef
from leadline.core.llm.stream import StreamEvent
from leadline.kernel.context import Context
from leadline.kernel.errors import LeadlineError
from leadline.kernel.services import Service

ModelRole: TypeAlias = Literal["fast", "standard", "strong", "review"]
"""What a model is wanted for; configuration says which model that is."""

MODEL_ROLES: tuple[ModelRole, ...] = ("fast", "standard", "strong", "review")


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about a model; None where nothing is."""

    model: str
    context_window: int | None = None
    """Tokens."""
    max_output: int | None = None
    """Tokens."""
    efforts: tuple[str, ...] = ()
    """Reasoning efforts the provider takes, weakest first."""
    tools: bool = True
    forced_tool_choice: bool = False
    """Whether ``required`` or a tool's name is honoured as a choice."""
    structured_output: Literal["none", "tool", "json_object", "json_schema"] = "none"
    origin: str = "unknown"
    """Where these facts come from: the profile, the user's configuration, ..."""
    remote: bool = False
    """Whether its provider is reached at an address that is not of this machine or its own network."""


class PreparedCall(Protocol):
    """One request, encoded and ready to be sent."""

    @property
    def digest(self) -> str:
        """sha256 in hex of exactly the bytes that will be sent as the body."""
        ...

    def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        """Make one attempt and yield what comes, ending with a `Finish`.

        A provider's failure is the final `Finish`, never an exception; only cancellation and
        defects raise. Close the generator (``contextlib.aclosing``) when leaving early. Calling
        it again makes another attempt with the same bytes.
        """
        ...


class LlmAdapter(Protocol):
    """One provider of models."""

    @property
    def provider(self) -> str:
        """The name before the slash in ``provider/model``."""
        ...

    def info(self, model: str) -> ModelInfo:
        """What is known about ``model``; a model that is not listed passes with unknowns."""
        ...

    def prepare(self, request: LlmRequest) -> PreparedCall:
        """Encode ``request``. Pure: no network, no credential, same request same digest."""
        ...


Wrapper: TypeAlias = Callable[[str, LlmAdapter | None], LlmAdapter | None]
"""`(provider, adapter) -> adapter`: what answers for a provider, given what would answer without it.

`adapter` is None where no provider of that name is mounted; returning it as it is leaves it alone.
"""


class ModelsError(LeadlineError):
    """A model or its provider could not be chosen."""


class UnknownProvider(ModelsError):
    """No adapter has this provider name."""


class DuplicateProvider(ModelsError):
    """Two adapters claim one provider name."""


class NoDefaultModel(ModelsError):
    """A model was needed, none was named, and no default is configured."""


class Models(Service, key="models"):
    """The providers of models that are mounted, and the default model."""

    def __init__(
        self, default: ModelRef | None = None, roles: Mapping[ModelRole, ModelRef] | None = None
    ) -> None:
        self._default = default
        self._roles = dict(roles or {})
        self._adapters: dict[str, LlmAdapter] = {}
        self._offers: dict[str, Callable[[], LlmAdapter]] = {}
        self._wrappers: list[Wrapper] = []

    @property
    def default(self) -> ModelRef:
        """The model of a request that names none.

        Raises:
            NoDefaultModel: none is configured.
        """
        if self._default is None:
            raise NoDefaultModel(
                "no model was named and the models plugin has no default; "
                "name one as provider/name or set `default` in the configuration of the row `models`"
            )
        return self._default

    def is_default(self, model: ModelRef) -> bool:
        """Whether `model` is the default."""
        return model == self._default

    @property
    def roles(self) -> Mapping[ModelRole, ModelRef]:
        """The roles that have a model of their own."""
        return dict(self._roles)

    def for_role(self, role: ModelRole) -> ModelRef | None:
        """The model that is configured for a role; None: the default does."""
        return self._roles.get(role)

    @property
    def providers(self) -> tuple[str, ...]:
        """Names of the mounted providers, sorted."""
        return tuple(sorted({*self._adapters, *self._offers}))

    def register(self, ctx: Context, adapter: LlmAdapter) -> None:
        """Make a provider available for as long as ``ctx`` lives.

        Raises:
            DuplicateProvider: the name is taken.
        """
        self._check_free(adapter.provider)
        self._adapters[adapter.provider] = adapter
        ctx.defer(f"model provider {adapter.provider}", lambda: self._withdraw(adapter.provider))

    def offer(self, ctx: Context, name: str, make: Callable[[], LlmAdapter]) -> None:
        """As `register`, of a provider that is made when it is first wanted; `make` may raise `LeadlineError`.

        Raises:
            DuplicateProvider: the name is taken.
        """
        self._check_free(name)
        self._offers[name] = make
        ctx.defer(f"model provider {name}", lambda: self._withdraw(name))

    def _check_free(self, name: str) -> None:
        if name in self._adapters or name in self._offers:
            raise DuplicateProvider(
                f"provider {name!r} is already registered; give the second one another name"
            )

    def _withdraw(self, name: str) -> None:
        self._adapters.pop(name, None)
        self._offers.pop(name, None)

    def _made(self, name: str) -> LlmAdapter | None:
        if name not in self._adapters and name in self._offers:
            self._adapters[name] = self._offers[name]()
        return self._adapters.get(name)

    def wrap(self, ctx: Context, wrapper: Wrapper) -> None:
        """Put something between the loop and every provider for as long as ``ctx`` lives.

        It also answers for providers that are not mounted, if it wants to. The latest one stands
        outermost. A request that is on its way when it comes or goes is not touched.
        """
        self._wrappers.append(wrapper)
        ctx.defer("wrapper of model providers", lambda: self._wrappers.remove(wrapper))

    def adapter(self, provider: str) -> LlmAdapter:
        """The adapter of ``provider``, with everything that is wrapped around it.

        Raises:
            UnknownProvider: none is registered under that name.
        """
        found = self._made(provider)
        for wrapper in self._wrappers:
            found = wrapper(provider, found)
        if found is None:
            known = ", ".join(self.providers) or "none"
            raise UnknownProvider(
                f"no model provider is called {provider!r}; known: {known}. "
                f"To add one: leadline models add {provider}/NAME --base-url http://127.0.0.1:8080/v1"
            )
        return found

    def resolve(self, model: ModelRef | None = None) -> tuple[LlmAdapter, ModelRef]:
        """The adapter for ``model``, or for the default when it is None.

        Raises:
            NoDefaultModel, UnknownProvider.
        """
        chosen = self.default if model is None else model
        return self.adapter(chosen.provider), chosen
