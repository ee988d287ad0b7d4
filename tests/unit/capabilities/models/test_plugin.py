"""The plugin mounts shipped and configured providers and leaves no trace."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from leadline.capabilities.models.plugin import ProviderConfig, plugin
from leadline.capabilities.models.providers.catalogue import SHIPPED
from leadline.capabilities.models.providers.profiles import shipped_profiles
from leadline.capabilities.models.seam import ModelCatalogue
from leadline.core import clock
from leadline.core.llm.adapter import Models
from leadline.core.llm.assembler import Assembler
from leadline.core.llm.messages import Conversation, Text, UserMessage
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef
from leadline.kernel.context import Kernel
from leadline.kernel.errors import ConfigError
from leadline.testing.provider_server import ProviderServer

pytestmark = pytest.mark.anyio


async def ask(models: Models, ref: ModelRef) -> str:
    asked = LlmRequest(CallConfig(ref), CHAT, "", (), Conversation([UserMessage("u", (Text("hi"),))]))
    assembler = Assembler()
    async for event in models.adapter(ref.provider).prepare(asked).stream():
        assembler.add(event)
    return assembler.completion().text


async def test_the_shipped_providers_are_there_without_configuration() -> None:
    async with Kernel() as kernel:
        await kernel.root.mount(clock.plugin)
        await kernel.root.mount(plugin, {})
        models = kernel.root.get(Models)
        assert models.providers == SHIPPED
        for name in models.providers:
            facts = kernel.root.get(ModelCatalogue).provider(name)
            assert facts is not None
            assert facts.tried is None
            assert models.adapter(name).info("any").origin.startswith("profile ")
        assert set(shipped_profiles()) | {"openai-compatible"} == set(SHIPPED)


async def test_a_configured_provider_is_asked_with_its_key_read_at_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ProviderServer(["one", "two"]) as server, Kernel() as kernel:
        mine: Mapping[str, object] = {
            "base_url": server.base_url,
            "api_key_env": "MINE_KEY",
            "models": {"small": {"context_window": 4096}},
        }
        await kernel.root.mount(clock.plugin)
        await kernel.root.mount(plugin, {"default": "mine/small", "providers": {"mine": mine}})
        models = kernel.root.get(Models)
        for key in ("first", "second"):
            monkeypatch.setenv("MINE_KEY", key)
            await ask(models, models.default)
        assert [request.headers["authorization"] for request in server.requests] == [
            "Bearer first",
            "Bearer second",
        ]
        assert models.adapter("mine").info("small").context_window == 4096
        assert models.adapter("mine").info("small").origin == "configuration"
        assert models.adapter("mine").info("other").context_window is None


@pytest.mark.parametrize(("settings", "source"), [({}, "missing"), ({"key_required": False}, "none")])
async def test_a_key_that_is_named_and_not_there_is_missed_unless_none_is_needed(
    settings: Mapping[str, object], source: str
) -> None:
    async with Kernel() as kernel:
        mine: Mapping[str, object] = {
            "base_url": "http://127.0.0.1:9/v1",
            "api_key_env": "NO_SUCH_KEY",
            "settings": settings,
        }
        await kernel.root.mount(clock.plugin)
        await kernel.root.mount(plugin, {"providers": {"mine": mine}})
        facts = kernel.root.get(ModelCatalogue).provider("mine")
        assert facts is not None and facts.key.source == source


async def test_unmounting_closes_the_connections_and_withdraws_the_service() -> None:
    async with ProviderServer(["one"]) as server, Kernel() as kernel:
        await kernel.root.mount(clock.plugin)
        fiber = await kernel.root.mount(plugin, {"providers": {"mine": {"base_url": server.base_url}}})
        before = kernel.root.find(Models)
        assert before is not None
        assert await ask(before, ModelRef("mine", "m")) == "one"
        await fiber.dispose()
        assert kernel.root.find(Models) is None
        assert before.providers == ()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"default": "gpt"}, "provider/name"),
        ({"providers": {"x": {"profile": "nope"}}}, "'nope'; there are"),
        ({"providers": {"x": {"base_url": "ftp://h"}}}, "http://"),
        ({"providers": {"x": {"base_url": "http://u:p@h/v1"}}}, "credentials"),
        ({"providers": {"x": {"settings": {"strem": True}}}}, "strem"),
        ({"provider": {}}, "provider"),
    ],
)
async def test_a_wrong_configuration_is_told(config: Mapping[str, object], words: str) -> None:
    async with Kernel(on_report=lambda report: None) as kernel:
        await kernel.root.mount(clock.plugin)
        problem = ""
        try:
            await kernel.root.mount(plugin, config)
        except ConfigError as error:
            problem = str(error)
        problem += "".join(str(report.error) for report in kernel.reports)
        problem += "".join(str(found) for found in kernel.root.diagnose())
        assert words in problem


def test_a_key_in_the_configuration_is_not_shown() -> None:
    assert "sk-1" not in repr(ProviderConfig.model_validate({"api_key": "sk-1"}))
