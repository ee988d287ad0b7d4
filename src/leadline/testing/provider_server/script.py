"""Which reply the next request gets: first in, first out, with routes for some requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from leadline.testing.provider_server.behaviours import Behaviour
from leadline.testing.provider_server.counting import Lie, ServerPrice
from leadline.testing.provider_server.limits import ServerLimits, ServerWindow
from leadline.testing.provider_server.speech import offered

EXHAUSTED = Behaviour("server_error", message="the script of the provider server has no reply left")


class Route(msgspec.Struct, frozen=True, omit_defaults=True):
    """Replies kept for requests that offer a tool, or hold a text."""

    replies: tuple[Behaviour, ...]
    tool: str | None = None
    contains: str | None = None
    repeat: bool = False
    """Whether the last reply is given again for ever."""


class ScriptFile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A script as a JSON file; but for the replies, its fields are the options of `ProviderServer`."""

    replies: tuple[Behaviour, ...] = ()
    routes: tuple[Route, ...] = ()
    repeat: bool = False
    """Whether the last of ``replies`` is given again for ever."""
    latency_s: float = 0.0
    strict: bool = False
    lie: Lie | None = None
    limits: ServerLimits | None = None
    window: ServerWindow | None = None
    prices: Mapping[str, ServerPrice] = {}
    caching: bool = False


class Script:
    """A queue of replies; a request that matches a route draws from that route's queue."""

    def __init__(
        self, replies: Iterable[Behaviour | str] = (), routes: Iterable[Route] = (), *, repeat: bool = False
    ) -> None:
        self._queue = _Queue(replies, repeat)
        self._routes = [(route, _Queue(route.replies, route.repeat)) for route in routes]

    @classmethod
    def read(cls, path: Path) -> tuple[Script, ScriptFile]:
        """The script in a file: a JSON array of replies, or an object of the fields of `ScriptFile`.

        Raises:
            msgspec.ValidationError: the file is not such a script.
        """
        data = path.read_bytes()
        if data.lstrip().startswith(b"["):
            settings = ScriptFile(msgspec.json.decode(data, type=tuple[Behaviour, ...]))
        else:
            settings = msgspec.json.decode(data, type=ScriptFile)
        return cls(settings.replies, settings.routes, repeat=settings.repeat), settings

    def push(self, *replies: Behaviour | str) -> None:
        """Add replies at the end of the queue."""
        self._queue.push(replies)

    @property
    def left(self) -> int:
        """How many replies have not been played."""
        return len(self._queue) + sum(len(queue) for _, queue in self._routes)

    def next(self, body: Mapping[str, object], raw: bytes) -> Behaviour:
        """The reply for this request; a server error once there is none."""
        for route, queue in self._routes:
            if _matches(route, body, raw):
                return queue.take()
        return self._queue.take()


class _Queue:
    def __init__(self, replies: Iterable[Behaviour | str], repeat: bool) -> None:
        self._left: deque[Behaviour] = deque()
        self._repeat = repeat
        self._last = EXHAUSTED
        self.push(replies)

    def push(self, replies: Iterable[Behaviour | str]) -> None:
        self._left.extend(Behaviour(text=reply) if isinstance(reply, str) else reply for reply in replies)

    def take(self) -> Behaviour:
        if not self._left:
            return self._last
        reply = self._left.popleft()
        if self._repeat:
            self._last = reply
        return reply

    def __len__(self) -> int:
        return len(self._left)


def _matches(route: Route, body: Mapping[str, object], raw: bytes) -> bool:
    if route.contains is not None and route.contains.encode() not in raw:
        return False
    return route.tool is None or route.tool in offered_tools(body)


def offered_tools(body: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the tools that a request body offers."""
    return tuple(offered(body))
