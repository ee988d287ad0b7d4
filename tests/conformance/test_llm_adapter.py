"""The adapters in the tree keep the promises of an adapter."""

from __future__ import annotations

import pytest

from leadline.capabilities.models.plugin import plugin
from leadline.capabilities.models.providers.calling import Route
from leadline.capabilities.models.providers.formats import adapter_for
from leadline.capabilities.models.providers.http import HttpClient
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core import clock
from leadline.core.llm.messages import Conversation
from leadline.core.llm.request import LlmRequest
from leadline.testing.conformance.kernel import check_leaves_no_trace
from leadline.testing.conformance.llm_adapter import CHECKS, Check
from leadline.testing.provider_server import Behaviour, CallSpec, ProviderServer
from leadline.testing.scripted import Playable, Reply, ScriptedModel

pytestmark = pytest.mark.anyio


def answers(request: LlmRequest) -> Playable:
    assert isinstance(request.conversation, Conversation)
    return Reply("Nine fathoms.", reasoning="hm", pieces=3)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_scripted_model(check: Check) -> None:
    await check(ScriptedModel(answers))


CHAT = sorted(
    name for name in shipped_profiles() if build_profile(name, shipped_profiles()).api == "openai-chat"
)
"""The others have their own server in tests/unit/capabilities/models/test_wires_http.py."""


@pytest.mark.parametrize("profile", CHAT)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_every_shipped_profile(check: Check, profile: str) -> None:
    reply = Behaviour(text="Nine fathoms.", reasoning="hm", chunk_chars=2, calls=(CallSpec("lookup"),))
    async with ProviderServer(lambda _: reply, strict=True) as server:
        client = HttpClient()
        built = build_profile(profile, shipped_profiles(), {"base_url": server.base_url})
        try:
            await check(adapter_for(Route(profile, built, client, clock.Clock(), lambda: "key")))
        finally:
            await client.aclose()


async def test_the_models_plugin_leaves_no_trace() -> None:
    await check_leaves_no_trace(plugin, {}, providers=[(clock.plugin, None)])
