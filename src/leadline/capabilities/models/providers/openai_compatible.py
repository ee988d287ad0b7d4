"""Chat completions: the wire format that most providers speak, everything special in its profile."""

from __future__ import annotations

from collections.abc import Mapping

from leadline.capabilities.models.providers.calling import ProviderAdapter, Route, WireFormat, profile_info
from leadline.capabilities.models.providers.decode import ChatDecoder
from leadline.capabilities.models.providers.encode import encoder_for
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.text_tools import AlternatingChat
from leadline.core.llm.adapter import ModelInfo
from leadline.core.llm.messages import WireEncoder
from leadline.core.llm.request import LlmRequest

__all__ = ("OpenAiCompatible", "Route", "profile_info")


def _encoder(request: LlmRequest, profile: Profile, info: ModelInfo) -> WireEncoder:
    del info  # the wire needs nothing of it
    return encoder_for(request, profile)


class OpenAiCompatible(ProviderAdapter):
    """A provider of chat completions."""

    def __init__(self, route: Route, models: Mapping[str, ModelInfo] | None = None) -> None:
        """As `ProviderAdapter`."""
        super().__init__(route, WireFormat(_encoder, ChatDecoder, AlternatingChat), models)
