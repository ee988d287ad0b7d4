"""The bridge: providers without a row of their own, through the library any-llm of the extra `leadline[bridge]`.

A request is encoded as a chat completion. That is what the digest is of and what the library is given; the bytes
that the library makes of it for a provider are its own. Nothing of it is imported before the first call.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, TypeVar, cast

import anyio
import anyio.to_thread
import msgspec

from leadline.capabilities.models.providers.calling import ProviderCall, WireFormat
from leadline.capabilities.models.providers.decode import ChatDecoder
from leadline.capabilities.models.providers.encode import encoder_for
from leadline.capabilities.models.providers.failures import classify, retry_after_s, shortened
from leadline.capabilities.models.providers.profiles import Profile
from leadline.capabilities.models.providers.provider_json import as_count, as_text
from leadline.capabilities.models.providers.text_tools import AlternatingChat
from leadline.core.llm.adapter import ModelInfo
from leadline.core.llm.failure import LlmFailure, Stop, Wait
from leadline.core.llm.messages import WireEncoder
from leadline.core.llm.request import LlmRequest
from leadline.core.llm.stream import Finish, StreamEvent
from leadline.kernel.errors import LeadlineError

T = TypeVar("T")
_MODULE = "any_llm"
_INSTALL = "install the library: pip install 'leadline[bridge]'"
_STATUSES: Mapping[str, int] = {
    "RateLimitError": 429,
    "AuthenticationError": 401,
    "InsufficientFundsError": 402,
    "ModelNotFoundError": 404,
    "InvalidRequestError": 400,
    "UnsupportedParameterError": 400,
    "ContextLengthExceededError": 400,
    "UpstreamProviderError": 502,
    "GatewayTimeoutError": 504,
}
"""What its errors come to where they tell no HTTP status."""
_LOST = ("connect", "transport", "protocol", "readerror", "network")
_MISUSED = (TypeError, ValueError, NotImplementedError)


class Dumped(Protocol):
    """What is used of an answer, or of a chunk of one."""

    def model_dump_json(self, *, exclude_none: bool) -> str: ...


class Library(Protocol):
    """What is used of one provider of the library."""

    async def acompletion(self, **options: object) -> AsyncIterator[Dumped] | Dumped: ...


class Factory(Protocol):
    """What makes one."""

    def create(
        self, provider: str, api_key: str | None, api_base: str | None, **options: object
    ) -> Library: ...


class BadBridgedModel(LeadlineError):
    """A model of the bridge does not say whose it is."""


@dataclass(frozen=True, slots=True)
class _Asked:
    provider: str
    options: Mapping[str, object]
    """What `acompletion` is given."""


def asked(profile: Profile, body: bytes) -> _Asked:
    """What the library is asked for, given the body of a chat completion.

    Raises:
        BadBridgedModel: neither the profile nor the model names a provider.
    """
    options = msgspec.json.decode(body, type=dict[str, object])
    model = as_text(options["model"])
    provider, rest = (profile.bridge, model) if profile.bridge else (model.partition("/")[::2])
    if not provider or not rest:
        raise BadBridgedModel(f"model {model!r} does not say whose it is; write bridge/PROVIDER/MODEL")
    return _Asked(provider, {**options, "model": rest})


async def over_the_bridge(
    call: ProviderCall, key: str | None, idempotency_key: str | None
) -> AsyncGenerator[Sequence[StreamEvent], None]:
    """See `Sending`. The library has no place for an idempotency key."""
    del idempotency_key
    profile, clock = call.route.profile, call.route.clock
    decoder = ChatDecoder(profile)
    deadline = clock.monotonic() + profile.total_timeout_s
    answer: AsyncIterator[Dumped] | Dumped | Wait | None = None

    def patience_s() -> float:
        silence_s = profile.linger_s if decoder.finish_seen else profile.idle_timeout_s
        return max(0.0, min(silence_s, deadline - clock.monotonic()))

    try:
        wanted = asked(profile, call.body)
        library = await _library(call, wanted.provider, key)
        answer = await _within(patience_s(), library.acompletion(**wanted.options))
        if isinstance(answer, AsyncIterator):
            while not decoder.ended:
                chunk = await _within(patience_s(), _next(answer))
                if isinstance(chunk, Wait):
                    yield decoder.cut(chunk)
                elif chunk is None:
                    yield decoder.close()
                else:
                    yield decoder.feed(chunk.model_dump_json(exclude_none=True))
        elif isinstance(answer, Wait):
            yield decoder.cut(answer)
        else:
            yield decoder.whole(answer.model_dump_json(exclude_none=True).encode())
    except Exception as error:  # noqa: BLE001 - the library and those below it fail in ways of their own
        yield _ending(decoder, profile, error, clock.now(), answered=answer is not None)
    finally:
        with anyio.CancelScope(shield=True), suppress(Exception):
            await _closed(answer)


def _ending(
    decoder: ChatDecoder, profile: Profile, error: Exception, now: float, *, answered: bool
) -> Sequence[StreamEvent]:
    if "ContentFilterError" in _names(error):
        return [Finish("refused", None, shortened(str(error)))]
    failure = _failure(profile, error, now, answered=answered)
    lost = isinstance(failure, Wait) and failure.code in ("TRANSPORT", "TIMEOUT")
    return decoder.cut(failure) if lost else decoder.fail(failure, incomplete=False)


def _failure(profile: Profile, error: Exception, now: float, *, answered: bool) -> LlmFailure:
    """What an error of the library means; it keeps the status and the codes of the provider."""
    names, message = _names(error), shortened(str(error)) or type(error).__name__
    if isinstance(error, ImportError):
        step = _INSTALL if error.name == _MODULE else "install what the message names"
        return Stop("UNSUPPORTED", f"the bridge cannot be used: {message}", None, step)
    if "MissingApiKeyError" in names:
        variable = as_text(getattr(error, "env_var_name", None))
        step = f"set {variable}, or give the provider a name and a key of its own (docs/models.md)"
        return Stop("MISSING_CREDENTIAL", message, None, step)
    if "UnsupportedProviderError" in names or isinstance(error, BadBridgedModel):
        return Stop("NOT_FOUND", message, None, "name it as bridge/PROVIDER/MODEL, as any-llm writes it")
    if "AnyLLMError" not in names:
        if isinstance(error, _MISUSED) and not answered:
            return Stop("UNSUPPORTED", f"the bridge cannot ask for this: {message}")
        return Wait("MALFORMED_RESPONSE", f"the bridge failed: {type(error).__name__}: {message}")
    status = as_count(getattr(error, "status_code", None))
    if status is None or status < 400:
        status = next((_STATUSES[name] for name in names if name in _STATUSES), None)
    if status is None and (broken := _broken(getattr(error, "original_exception", None), message)):
        return broken
    codes = [as_text(getattr(error, name, None)) for name in ("code", "error_type")]
    if "ContextLengthExceededError" in names:
        codes.append("context_length_exceeded")
    headers = {"retry-after": as_text(getattr(error, "retry_after", None))}
    return classify(profile, status, message, codes, retry_after_s(headers, message, now))


def _broken(cause: object, message: str) -> Wait | None:
    """A connection that failed, told by the kind of the error that the library met."""
    kinds = " ".join(one.__name__.lower() for one in type(cause).__mro__)
    if "timeout" in kinds:
        return Wait("TIMEOUT", message)
    return Wait("TRANSPORT", message) if any(word in kinds for word in _LOST) else None


def _names(error: Exception) -> Sequence[str]:
    """The kinds of an error, its own first; the library is not imported to know them."""
    return [kind.__name__ for kind in type(error).__mro__]


async def _next(answer: AsyncIterator[T]) -> T | None:
    return await anext(answer, None)


async def _within(patience_s: float, coming: Awaitable[T]) -> T | Wait:
    with anyio.move_on_after(patience_s):
        return await coming
    return Wait("TIMEOUT", f"the provider was silent for {patience_s:g} s")


async def _library(call: ProviderCall, provider: str, key: str | None) -> Library:
    """The library's provider, kept as long as the connections of the program.

    A key is given to it only where the profile says whose key it is; else the library looks for the usual one.
    """
    profile = call.route.profile
    base_url = profile.base_url or None
    own = key if profile.bridge else None

    def make() -> Library:
        factory = cast("Factory", import_module(_MODULE).AnyLLM)
        try:
            # Retries are told and counted here, or they would be paid without being seen.
            return factory.create(provider, own, base_url, unified_exceptions=True, max_retries=0)
        except Exception as error:
            if "UnsupportedParameterError" not in _names(error):
                raise
            return factory.create(provider, own, base_url, unified_exceptions=True)

    name = ("bridge", provider, own, base_url)
    # Importing takes seconds, in which others go on.
    return await call.route.client.beside(name, lambda: anyio.to_thread.run_sync(make), close)


async def close(library: Library) -> None:
    """Close the connections of a provider, however its own client calls that."""
    for holder in (library, getattr(library, "client", None)):
        await _closed(holder)


async def _closed(holder: object) -> None:
    for name in ("aclose", "close"):
        method: object = getattr(holder, name, None)
        if callable(method):
            done = method()
            if inspect.isawaitable(done):
                await done
            return


def _encoder(request: LlmRequest, profile: Profile, info: ModelInfo) -> WireEncoder:
    del info  # the form needs nothing of it
    return encoder_for(request, profile)


WIRE = WireFormat(_encoder, ChatDecoder, AlternatingChat, send=over_the_bridge)
