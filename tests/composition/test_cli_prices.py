"""What a person says of prices and limits: what cannot be is refused in plain words, and nothing is written down."""

from __future__ import annotations

from pathlib import Path

from tests.composition.cli import Command


def test_a_price_that_is_said_in_a_circle_is_refused_and_not_written_down(
    command: Command, home: Path
) -> None:
    for what, like in (("mine/a", "mine/a"), ("mine/b", "mine/c")):
        command("models", "price", what, "--like", like)
    refused = command("models", "price", "mine/c", "--like", "mine/b")
    assert (refused.code, "circle" in refused.complaint) == (2, True)
    assert "mine/a" not in (home / "models.yml").read_text()
    assert "mine/c:" not in (home / "models.yml").read_text()
    assert command("models", "price", "mine/c").code == 0


def test_what_is_refused_is_named_without_the_words_of_a_library(command: Command, home: Path) -> None:
    limit = command("models", "limits", "fake", "--max", "1").complaint
    price = command("models", "price", "local/fake", "--input", "1").complaint
    assert limit == (
        "leadline: 'limits.0.model' cannot be 'fake': name one model as provider/name, or all of a provider as "
        "provider/*"
    )
    assert (
        price
        == "leadline: 'prices.local/fake': say both `input` and `output`, in dollars for a million tokens"
    )
