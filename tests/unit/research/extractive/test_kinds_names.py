"""Names are taken whole, particles between their words included."""

from __future__ import annotations

import pytest

from leadline.research.extractive.kinds import names_person
from leadline.research.extractive.question import read_question


@pytest.mark.parametrize(
    "name", ["Piet de Boer", "Anna van der Velde", "Ludwig van Beethoven", "Ana de la Cruz", "Omar bin Said"]
)
def test_a_name_with_particles_is_a_person(name: str) -> None:
    assert names_person(read_question("Who is the treasurer?"), f"{name} was re-elected treasurer.")


def test_a_sentence_without_a_name_is_none() -> None:
    assert not names_person(read_question("Who is the treasurer?"), "The accounts were read and approved.")
