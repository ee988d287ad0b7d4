"""One response of a provider over HTTP, read and decoded piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.capabilities.models.providers.ending import Decoder
from leadline.capabilities.models.providers.failures import html_title, http_failure, looks_like_html
from leadline.capabilities.models.providers.http import Reply
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.rate_limits import rate_limits
from leadline.core.clock import Clock
from leadline.core.llm.failure import LlmFailure, Wait
from leadline.core.llm.sse import SseDecoder
from leadline.core.llm.stream import Finish, LimitsReport, StreamEvent

_BODY_LIMIT = 64 << 20
_ERROR_BODY_LIMIT = 64 << 10
_DRAIN_S = 0.05


class Exchange:
    """Turns one response into events, a read at a time."""

    def __init__(
        self, profile: Profile, clock: Clock, decoder: Decoder, reply: Reply, deadline: float
    ) -> None:
        """Take over a response.

        Args:
            profile: of the provider.
            clock: for deadlines.
            decoder: a new one.
            reply: the response; it is closed by whoever opened it.
            deadline: monotonic seconds at which the attempt ends.
        """
        self._profile, self._clock = profile, clock
        self._reply = reply
        self._deadline = deadline
        self._sse = SseDecoder()
        self._decoder = decoder
        self._headers = reply.headers
        self._media_type = self._headers.get("content-type", "").partition(";")[0].strip().lower()
        self._begun = False
        self._limits_told = False
        self.ended = False

    async def advance(self) -> Sequence[StreamEvent]:
        """The next events; with the `Finish` it is ended."""
        if not self._limits_told:
            self._limits_told = True
            limits = rate_limits(self._profile.rate_limits, self._headers, self._clock.now())
            if limits is not None:
                return [LimitsReport(limits)]
        if self._reply.status != 200:
            self.ended = True
            return [Finish("error", await self._http_failure())]
        data = await self._reply.read(self._patience_s())
        if not self._begun:
            self._begun = True
            if not isinstance(data, Wait) and not self._is_stream(data):
                self.ended = True
                rest = await self._reply.read_all(self._profile.idle_timeout_s, _BODY_LIMIT)
                body = rest if isinstance(rest, Wait) else data + rest
                return _whole(self._decoder, body, self._media_type, self._profile.base_url)
        events = self._taken(data)
        if self._decoder.ended:
            self.ended = True
            await self._drain()
        return events

    def _is_stream(self, beginning: bytes) -> bool:
        """Whether the body is a stream of events: its first bytes say so before its media type does."""
        words = beginning.lstrip()
        if self._media_type == "text/event-stream":
            return not words.startswith(b"{")
        return words.startswith((b"data:", b"event:", b":"))

    async def _http_failure(self) -> LlmFailure:
        body = await self._reply.read_all(self._profile.idle_timeout_s, _ERROR_BODY_LIMIT)
        known = b"" if isinstance(body, Wait) else body
        return http_failure(self._profile, self._reply.status, self._headers, known, self._clock.now())

    def _patience_s(self) -> float:
        profile = self._profile
        silence_s = profile.linger_s if self._decoder.finish_seen else profile.idle_timeout_s
        return max(0.0, min(silence_s, self._deadline - self._clock.monotonic()))

    def _taken(self, data: bytes | Wait) -> list[StreamEvent]:
        if isinstance(data, Wait):
            if data.code == "TIMEOUT" and self._clock.monotonic() >= self._deadline:
                limit = f"{self._profile.total_timeout_s:g} s"
                data = Wait("TIMEOUT", f"the answer was not complete after {limit}")
            return self._decoder.cut(data)
        if not data:
            return self._decoder.close()
        if self._sse.pending > _BODY_LIMIT:
            return self._decoder.cut(
                Wait("MALFORMED_RESPONSE", "the stream holds an event that does not end")
            )
        return [event for part in self._sse.feed(data) for event in self._decoder.feed(part.data, part.event)]

    async def _drain(self) -> None:
        """Read what little may follow the end, so that the connection can be used again."""
        while not self._reply.at_end:
            data = await self._reply.read(_DRAIN_S)
            if isinstance(data, Wait) or not data:
                return


def _whole(decoder: Decoder, body: bytes | Wait, media_type: str, base_url: str) -> Sequence[StreamEvent]:
    if isinstance(body, Wait):
        return decoder.cut(body)
    if not body.strip():
        return decoder.cut(Wait("EMPTY_RESPONSE", "the provider answered with an empty body", status=200))
    if media_type.endswith("json") or media_type == "text/event-stream":
        return decoder.whole(body)
    text = body[:_ERROR_BODY_LIMIT].decode("utf-8", "replace")
    what = (
        f'a web page, "{html_title(text)}"'
        if looks_like_html(media_type, text)
        else media_type or "something unnamed"
    )
    message = f"{base_url} answered with {what} where a completion was expected; check base_url"
    return decoder.cut(Wait("MALFORMED_RESPONSE", message, status=200))
