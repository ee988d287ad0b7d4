"""The wire format that a profile names, imported when it is first wanted."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from leadline.capabilities.models.providers.calling import ProviderAdapter, Route, WireFormat
from leadline.capabilities.models.providers.profiles import Api
from leadline.core.llm.adapter import ModelInfo

_MODULES: Mapping[Api, str] = {
    "openai-chat": "openai_compatible",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
    "openai-responses": "openai_responses",
    "bridge": "bridge",
}
"""Module beside this one for each way of speaking; it has a `WIRE`."""


def wire_format(api: Api) -> WireFormat:
    """What speaks `api`."""
    found: object = import_module(f"{__package__}.{_MODULES[api]}").WIRE
    assert isinstance(found, WireFormat)
    return found


def adapter_for(route: Route, models: Mapping[str, ModelInfo] | None = None) -> ProviderAdapter:
    """The adapter of a provider; `models` is what the user's configuration says about its models."""
    return ProviderAdapter(route, wire_format(route.profile.api), models)
