"""Chat completions: the wire format that most providers speak, everything special in its profile."""

from __future__ import annotations

from leadline.capabilities.models.providers.calling import WireFormat
from leadline.capabilities.models.providers.decode import ChatDecoder
from leadline.capabilities.models.providers.encode import encoder_for
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.text_tools import AlternatingChat
from leadline.core.llm.adapter import ModelInfo
from leadline.core.llm.messages import WireEncoder
from leadline.core.llm.request import LlmRequest


def _encoder(request: LlmRequest, profile: Profile, info: ModelInfo) -> WireEncoder:
    del info  # the wire needs nothing of it
    return encoder_for(request, profile)


WIRE = WireFormat(_encoder, ChatDecoder, AlternatingChat)
