"""The HTTP client of all model providers of a plugin: one pool, made at the first call.

aiohttp, chosen by measurement (``bench/http_clients.py``). It is imported when the first call is
made, or by `HttpClient.load`, as importing it takes longer than all the rest.
"""

from __future__ import annotations

import io
import ipaddress
import os
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import unquote, urlsplit

import anyio

from leadline.core.llm.failure import Wait

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")
_KEEPALIVE_S = 30.0
_LARGE_BODY = 1 << 20


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where requests to one origin go through."""

    url: str
    user: str | None = None
    password: str | None = None


def proxy_for(url: str) -> Proxy | None:
    """The proxy that the environment names for ``url``; never one for loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    found = urllib.request.getproxies().get(parts.scheme)
    if not found:
        return None
    proxy = urlsplit(found if "://" in found else f"http://{found}")
    where = f"{proxy.hostname}:{proxy.port}" if proxy.port else str(proxy.hostname)
    user, password = proxy.username, proxy.password
    return Proxy(
        f"{proxy.scheme}://{where}",
        unquote(user) if user is not None else None,
        unquote(password) if password is not None else None,
    )


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def is_remote(url: str) -> bool:
    """Whether an address is of neither this machine nor its own network, as far as the address tells.

    Private addresses (RFC 1918, RFC 4193), names of one word, as containers have, and `.local` (RFC 6762) are near.
    """
    host = (urlsplit(url).hostname or "").lower()
    if is_loopback(host) or "." not in host.replace(":", ".") or host.endswith(".local"):
        return False
    try:
        return not ipaddress.ip_address(host).is_private
    except ValueError:
        return True


class HttpClient:
    """Sends requests over pooled connections, without a bound on their number.

    Effects: holds connections until `aclose`.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._beside: dict[object, object] = {}
        self._closing: list[Callable[[], Awaitable[None]]] = []
        self._making = anyio.Lock()

    def load(self) -> None:
        """Import what calls need, a tenth of a second that the first one would take otherwise."""
        import_module("aiohttp")

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            import aiohttp  # noqa: PLC0415  heavy, and needed by the first call only

            connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=_KEEPALIVE_S)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None, sock_read=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, proxy: Proxy | None, timeout_s: float
    ) -> Reply | Wait:
        """Send ``body`` and wait for the head of the response; a broken connection is a value."""
        return await self._sent("POST", url, headers, body, proxy=proxy, timeout_s=timeout_s)

    async def get(self, url: str, headers: Mapping[str, str], *, timeout_s: float) -> Reply | Wait:
        """Ask for what is at ``url``, without a proxy; as `post`."""
        return await self._sent("GET", url, headers, None, proxy=None, timeout_s=timeout_s)

    async def _sent(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        proxy: Proxy | None,
        timeout_s: float,
    ) -> Reply | Wait:
        import aiohttp  # noqa: PLC0415  see _opened

        if self._closed:
            return Wait("TRANSPORT", "the model client is closed")
        auth = None
        if proxy is not None and proxy.user is not None:
            auth = aiohttp.BasicAuth(proxy.user, proxy.password or "")
        # A large body is handed over in pieces, so that sending it does not hold up other tasks.
        data = io.BytesIO(body) if body is not None and len(body) >= _LARGE_BODY else body
        try:
            with anyio.move_on_after(timeout_s):
                response = await self._opened().request(
                    method,
                    url,
                    data=data,
                    headers=headers,
                    allow_redirects=False,
                    proxy=proxy.url if proxy else None,
                    proxy_auth=auth,
                )
                return Reply(response)
        except TimeoutError:
            pass
        except (aiohttp.ClientError, OSError) as error:
            return Wait("TRANSPORT", f"{_origin(url)}: {_reason(error)}")
        return Wait("TIMEOUT", f"{_origin(url)} did not answer within {timeout_s:g} s")

    async def beside(
        self, name: object, make: Callable[[], Awaitable[T]], close: Callable[[T], Awaitable[None]]
    ) -> T:
        """Something else that holds connections, made once for each name and closed with these."""
        async with self._making:
            if name not in self._beside:
                made = await make()
                self._beside[name] = made
                self._closing.append(lambda: close(made))
        return cast("T", self._beside[name])

    async def aclose(self) -> None:
        """Close every connection; later posts fail."""
        self._closed = True
        while self._closing:
            await self._closing.pop()()
        if self._session is not None:
            await self._session.close()


class Reply:
    """A response whose body is read piece by piece."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        """HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers by lower-case name."""
        return {name.lower(): value for name, value in self._response.headers.items()}

    @property
    def at_end(self) -> bool:
        """Whether the whole body has been read, so that the connection can serve again."""
        return self._response.content.at_eof()

    async def read(self, timeout_s: float) -> bytes | Wait:
        """What has come, waiting for something if need be; empty at the end of the body.

        The time counts while this call is waiting, not between calls.
        """
        import aiohttp  # noqa: PLC0415  see HttpClient._opened

        content = self._response.content
        try:
            here = content.read_nowait()
            if here or content.at_eof():
                return here
            with anyio.move_on_after(timeout_s):
                return await content.readany()
        except TimeoutError:
            pass
        except (aiohttp.ClientError, OSError) as error:
            return Wait("STREAM_CLOSED", f"the connection broke off: {_reason(error)}")
        return Wait("TIMEOUT", f"the provider was silent for {timeout_s:g} s")

    async def read_all(self, timeout_s: float, limit: int) -> bytes | Wait:
        """The rest of the body up to ``limit`` bytes; ``timeout_s`` bounds each silence."""
        parts = bytearray()
        while len(parts) < limit:
            part = await self.read(timeout_s)
            if isinstance(part, Wait):
                return part
            if not part:
                break
            parts += part
        return bytes(parts)

    def close(self) -> None:
        """Give the connection back if the body is read, else end it."""
        if self.at_end:
            self._response.release()
        else:
            self._response.close()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def _reason(error: Exception) -> str:
    words = _unconnected(error) or str(error) or type(error).__name__
    return " ".join(words.split())[:300]


def _unconnected(error: Exception) -> str:
    """Why there is no connection, in the words of the system: aiohttp's speak of TLS where there is none."""
    cause = getattr(error, "os_error", None)
    if not isinstance(cause, OSError) or type(cause).__module__ == "ssl":
        return ""
    why = os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or str(cause)
    return f"cannot connect to {getattr(error, 'host', '')}:{getattr(error, 'port', '')}: {why}"
