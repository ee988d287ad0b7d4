"""Providers are registered as effects and chosen by name."""

from __future__ import annotations

import pytest

from leadline.core.llm.adapter import DuplicateProvider, LlmAdapter, Models, NoDefaultModel, UnknownProvider
from leadline.core.llm.request import BadModelRef, ModelRef
from leadline.kernel.context import Context, Kernel
from leadline.kernel.plugin import Plugin
from leadline.testing.scripted import ScriptedModel


@pytest.mark.anyio
async def test_a_provider_is_there_as_long_as_its_plugin() -> None:
    models = Models()

    async def apply(ctx: Context, config: None) -> None:
        models.register(ctx, ScriptedModel(provider="one"))

    async with Kernel() as kernel:
        fiber = await kernel.root.mount(Plugin("one", apply))
        assert models.providers == ("one",)
        await fiber.dispose()
        assert models.providers == ()


@pytest.mark.anyio
async def test_an_unknown_provider_names_the_known_ones_and_how_to_add_one() -> None:
    models = Models()
    async with Kernel() as kernel:
        models.register(kernel.root, ScriptedModel(provider="one"))
        models.register(kernel.root, ScriptedModel(provider="two"))
        with pytest.raises(
            UnknownProvider, match=r"'three'; known: one, two\. To add one: leadline models add three/NAME"
        ):
            models.adapter("three")
        with pytest.raises(DuplicateProvider, match="'one'"):
            models.register(kernel.root, ScriptedModel(provider="one"))


@pytest.mark.anyio
async def test_what_wraps_the_providers_sees_all_of_them_and_is_gone_with_its_plugin() -> None:
    models, own, stand_in = Models(), ScriptedModel(provider="one"), ScriptedModel(provider="gone")

    def missing(provider: str, found: LlmAdapter | None) -> LlmAdapter | None:
        return stand_in if found is None and provider == "gone" else found

    async def apply(ctx: Context, config: None) -> None:
        models.wrap(ctx, missing)

    async with Kernel() as kernel:
        models.register(kernel.root, own)
        fiber = await kernel.root.mount(Plugin("wrapping", apply))
        assert models.adapter("one") is own
        assert models.adapter("gone") is stand_in
        with pytest.raises(UnknownProvider):
            models.adapter("other")
        await fiber.dispose()
        with pytest.raises(UnknownProvider):
            models.adapter("gone")


def test_no_default_says_where_to_set_one() -> None:
    with pytest.raises(NoDefaultModel, match="`default`"):
        Models().resolve()


@pytest.mark.parametrize("text", ["gpt", "/m", "p/", " "])
def test_a_model_has_to_be_named_with_its_provider(text: str) -> None:
    with pytest.raises(BadModelRef, match="provider/name"):
        ModelRef.parse(text)


def test_a_model_name_may_hold_slashes() -> None:
    assert ModelRef.parse("local/org/name") == ModelRef("local", "org/name")
    assert str(ModelRef("local", "org/name")) == "local/org/name"


@pytest.mark.anyio
async def test_an_offered_provider_is_made_once_when_it_is_first_wanted() -> None:
    models, made = Models(), list[str]()

    def make() -> LlmAdapter:
        made.append("one")
        return ScriptedModel(provider="one")

    async def apply(ctx: Context, config: None) -> None:
        models.offer(ctx, "one", make)

    async with Kernel() as kernel:
        fiber = await kernel.root.mount(Plugin("one", apply))
        assert (models.providers, made) == (("one",), [])
        assert models.adapter("one") is models.adapter("one")
        assert made == ["one"]
        with pytest.raises(DuplicateProvider):
            models.register(kernel.root, ScriptedModel(provider="one"))
        await fiber.dispose()
        assert models.providers == ()


def test_a_role_without_a_model_of_its_own_has_none() -> None:
    models = Models(ModelRef("p", "m"), {"strong": ModelRef("p", "big")})
    assert models.for_role("strong") == ModelRef("p", "big")
    assert models.for_role("fast") is None
    assert models.is_default(ModelRef("p", "m"))
    assert not models.is_default(ModelRef("p", "big"))
