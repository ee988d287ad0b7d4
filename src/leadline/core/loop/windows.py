"""What one agent learned of the windows of its models, and when a window that a provider names is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from leadline.core.llm.failure import Stop

if TYPE_CHECKING:
    from leadline.core.llm.failure import LlmFailure


class Windows:
    """Windows by `provider/model`, of one agent.

    A refusal may name any number. So it holds for the agent that was refused and for no other, and only where the
    model answered no larger prompt of it, and the agent's system text and tools fit: an agent is not closed for ever
    by one odd refusal.
    """

    __slots__ = ("_answered", "_in_part", "_named")

    def __init__(self) -> None:
        self._named: dict[str, int] = {}
        self._answered: dict[str, int] = {}
        self._in_part: set[str] = set()

    def of(self, model: str) -> int | None:
        """Tokens that the model takes, as it said; None: it said nothing that can be true."""
        return self._named.get(model)

    def answered(self, model: str, prompt: int | None) -> None:
        """The model read a prompt of so many tokens, as it reports, and answered it."""
        if prompt is None or prompt <= self._answered.get(model, 0):
            return
        self._answered[model] = prompt
        if self._named.get(model, prompt) < prompt:
            del self._named[model]

    def refused(self, model: str, failure: LlmFailure, least: int = 1) -> LlmFailure:
        """The model refused a request; the failure, without a window that cannot be true.

        `least`: tokens that every request of the agent has.
        """
        if not isinstance(failure, Stop) or failure.window_tokens is None:
            return failure
        if failure.window_tokens < max(least, self._answered.get(model, 1)):
            return structs.replace(failure, window_tokens=None)
        self._named[model] = min(failure.window_tokens, self._named.get(model, failure.window_tokens))
        return failure

    def in_part(self, model: str, reported: int, kept: int) -> bool:
        """Whether the model's provider counts only what was new to its cache, so that a small count says nothing.

        That is certain once it reported less than a server that cuts off can keep: such a one fills its window, or
        half of it, which held more before, and keeps the newest message and what stands before the conversation.

        Args:
            model: `provider/name`.
            reported: size of the prompt by the provider, of a request that was answered.
            kept: tokens of the request that no server cuts off, and that no tokeniser goes below.
        """
        if reported < kept and reported * 2 < self._answered.get(model, 0):
            self._in_part.add(model)
        return model in self._in_part
