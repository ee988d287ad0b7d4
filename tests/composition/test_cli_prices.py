"""What a person says of prices and limits: what cannot be is refused in plain words, and nothing is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ("{id: loop, merge: {max_cost: .inf}}", "max_cost"),
        ("{id: loop, merge: {max_cost: 1.0e-20}}", "max_cost"),
        ("{id: loop, merge: {max_seconds: .inf}}", "max_seconds"),
        ("{id: meter, merge: {prices: {mine/a: {input: .inf, output: 1}}}}", "prices.mine/a.input"),
        ("{id: meter, merge: {prices: {mine/a: {like: mine/a}}}}", "circle"),
    ],
)
def test_an_amount_that_is_none_is_told_before_anything_is_asked(
    command: Command, home: Path, tmp_path: Path, row: str, named: str
) -> None:
    patch = tmp_path / "patch.yml"
    patch.write_text(f"- {row}\n")
    refused = command("agent", "hello", "--patch", patch)
    assert (refused.code, refused.out) == (2, b"")
    assert named in refused.complaint
    assert "Infinity to integer" not in refused.complaint
