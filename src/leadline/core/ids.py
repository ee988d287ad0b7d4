"""Identity and randomness as a service, so that a replay is exact and no two things share a name."""

from __future__ import annotations

import secrets

from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service


class Ids(Service, key="ids"):
    """Unpredictable ids. `leadline.testing.ids.SeededIds` gives the same ones each time."""

    def new(self, prefix: str) -> str:
        """A fresh id, `<prefix>-<16 hex digits>`. It says nothing about time, place or order."""
        return f"{prefix}-{self.token(8)}"

    def token(self, nbytes: int) -> str:
        """`nbytes` random bytes as lower-case hex digits, two a byte."""
        return secrets.token_hex(nbytes)


async def _apply(ctx: Context, config: None) -> None:
    ctx.provide(Ids, Ids())


plugin: Plugin[None] = Plugin("ids", _apply, provides=(Ids,))
