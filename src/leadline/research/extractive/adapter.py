"""The extractive model: an adapter like any other, without a language model and without a network.

It acts on the typed purpose of a request and on the structured results in its conversation, never on the wording
of a prompt. What it says is a pure function of the request and of the stored texts that the request names.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread

from leadline.core.llm.adapter import LlmAdapter, ModelInfo, PreparedCall
from leadline.core.llm.request import LlmRequest
from leadline.core.llm.stream import Finish, StreamEvent, TextDelta, ToolCallDelta, UsageReport
from leadline.core.llm.usage import Usage

if TYPE_CHECKING:
    from leadline.research.extractive.unit import Texts

PROVIDER = "extractive"
MODEL = "extractive"
NO_TOKENS = Usage(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Extractive:
    """The provider `extractive` with its one model of the same name."""

    texts: Texts
    """Stored texts of documents, by hash."""

    @property
    def provider(self) -> str:
        return PROVIDER

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(model=model, tools=True, forced_tool_choice=False, origin="built in")

    def prepare(self, request: LlmRequest) -> PreparedCall:
        return _Prepared(request, self.texts, _digest(request))


@dataclass(frozen=True)
class _Prepared:
    request: LlmRequest
    texts: Texts
    digest: str

    async def stream(self, *, idempotency_key: str | None = None) -> AsyncGenerator[StreamEvent, None]:
        """The answer; the key has no use, as asking twice costs nothing and gives the same."""
        # The rules of extraction take longer to load than an agent that never asks for them takes to start.
        from leadline.research.extractive.reply import reply  # noqa: PLC0415

        said = await to_thread.run_sync(reply, self.request, self.texts)
        if isinstance(said, str):
            yield TextDelta(said)
        else:
            for index, call in enumerate(said):
                arguments = msgspec.json.encode(call.arguments).decode()
                identifier = f"call-{self.digest[:16]}-{index}"
                yield ToolCallDelta(index=index, id=identifier, name=call.name, arguments=arguments)
        yield UsageReport(NO_TOKENS)
        yield Finish("done")


def _digest(request: LlmRequest) -> str:
    """sha256 of the request as canonical JSON: the bytes that a server would be sent."""
    body: Mapping[str, object] = {
        "config": request.config,
        "purpose": request.purpose,
        "system": request.system,
        "tools": request.tools,
        "messages": list(request.conversation),
    }
    return hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()


if TYPE_CHECKING:

    def _is_adapter(adapter: Extractive) -> LlmAdapter:  # pyright: ignore[reportUnusedFunction] - a check
        return adapter
