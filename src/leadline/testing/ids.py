"""Ids that are the same each time."""

from __future__ import annotations

from random import Random

from leadline.core.ids import Ids


class SeededIds(Ids):
    """Ids drawn from a seed: one seed, one sequence. Distinct as random ones are."""

    def __init__(self, seed: int | str = 0) -> None:
        self._random = Random(seed)

    def token(self, nbytes: int) -> str:
        return self._random.randbytes(nbytes).hex()
