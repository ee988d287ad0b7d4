"""Proves one request: makes it again from the log before it, and compares what comes out with what was logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.llm.adapter import UnknownProvider
from leadline.core.llm.request import Purpose
from leadline.core.loop.parts import Part, differing
from leadline.core.loop.thread import purpose_digest, request_of
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.events import RequestHeader, RequestSent
from leadline.kernel.errors import LeadlineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.core.llm.adapter import Models
    from leadline.core.llm.jsonvalue import JsonObject
    from leadline.core.llm.messages import Conversation
    from leadline.core.session.codec import Logged


class NotProvable(LeadlineError):
    """A request that cannot be made again here."""


class Differs(LeadlineError):
    """A request that is not what the log says it was."""

    def __init__(self, reason: str, parts: Sequence[Part] = ()) -> None:
        super().__init__(reason)
        self.parts = tuple(parts)
        """Which parts of it differ; empty where that cannot be told."""


class Proof:
    """What a log says of its requests beside their messages, up to some event."""

    def __init__(self, models: Models, session: str = "") -> None:
        """`session`: id of a live one, for adapters that tell sessions apart."""
        self._models = models
        self._session = session
        self._header: RequestHeader | None = None
        self._facts: dict[str, JsonObject] = {}
        """Facts of purposes by their digest."""
        self._proved_at: int | None = None

    def add(self, line: Logged) -> None:
        """Go on by one event. One that cannot be read leaves nothing known of what it says."""
        if line.type == RequestHeader.TYPE:
            self._header = None
            try:
                self._header = line.as_(RequestHeader)
            except EventUndecodable:
                return
        elif line.type == RequestSent.TYPE:
            try:
                sent = line.as_(RequestSent)
            except EventUndecodable:
                return
            facts = sent.purpose_data
            if facts is not None and purpose_digest(Purpose(sent.purpose, facts)) == sent.purpose_digest:
                self._facts[sent.purpose_digest] = facts

    def prove(self, sent: RequestSent, conversation: Conversation, seq: int | None = None) -> None:
        """Make the request again. `seq`: the number of its event, which a later difference is told from.

        Raises:
            Differs: it is not what was sent.
            NotProvable: it cannot be made here.
        """
        header = self._header
        if header is None:
            raise Differs("a request was sent, but no request/header that can be read stands before it")
        if str(header.config.model) != sent.model:
            raise Differs(
                f"it was sent to {sent.model}, the request/header names {header.config.model}", ("provider",)
            )
        if len(conversation) != sent.messages:
            raise Differs(
                f"it had {sent.messages} messages, the log before it gives {len(conversation)}",
                differing(sent, header, conversation) or ("messages",),
            )
        rebuilt = self._digest(header, self._purpose(sent), sent.purpose, conversation)
        if rebuilt != sent.digest:
            raise self._difference(header, sent, conversation, rebuilt, seq)
        unseen = differing(sent, header, conversation)
        if unseen:
            raise Differs(
                f"{_listed(unseen)}, which the body does not show; {self._where(seq)} was altered", unseen
            )
        if seq is not None:
            self._proved_at = seq

    def _difference(
        self,
        header: RequestHeader,
        sent: RequestSent,
        conversation: Conversation,
        rebuilt: str,
        seq: int | None,
    ) -> LeadlineError:
        parts = differing(sent, header, conversation)
        if not parts and sent.purpose_digest and sent.purpose_digest not in self._facts:
            return NotProvable("the facts of its purpose are not in the log")
        said = f"digest {sent.digest[:12]} is logged, the log before it gives {rebuilt[:12]}: "
        if parts:
            return Differs(f"{said}{_listed(parts)}; {self._where(seq)} was altered", parts)
        otherwise = f"provider {header.config.model.provider} is configured otherwise than it was"
        if sent.parts is None:
            return Differs(f"{said}{self._where(seq)} was altered, or {otherwise}")
        if not sent.idempotency_key.endswith(sent.digest[:32]):
            return Differs(
                f"{said}no part of it differs, and its key is of another digest: this one was altered"
            )
        return Differs(f"{said}no part of it differs, so that {otherwise}", ("provider",))

    def _purpose(self, sent: RequestSent) -> JsonObject:
        """The facts of its purpose; none where the log does not have them."""
        facts = sent.purpose_data
        if facts is not None and sent.purpose_digest:
            if purpose_digest(Purpose(sent.purpose, facts)) != sent.purpose_digest:
                raise Differs("the facts of its purpose do not have the digest that it names", ("purpose",))
            self._facts[sent.purpose_digest] = facts
        return facts if facts is not None else self._facts.get(sent.purpose_digest, {})

    def _digest(
        self, header: RequestHeader, facts: JsonObject, purpose: str, conversation: Conversation
    ) -> str:
        provider = header.config.model.provider
        try:
            adapter = self._models.adapter(provider)
        except UnknownProvider:
            raise NotProvable(f"provider {provider} is not configured") from None
        request = request_of(header, Purpose(purpose, facts), conversation, self._session)
        try:
            return adapter.prepare(request).digest
        except Exception as error:  # an adapter may choke on what was altered
            raise Differs(f"it cannot be made again: {type(error).__name__}: {error}") from error

    def _where(self, seq: int | None) -> str:
        """Which part of the log is in doubt: what the last proved request rests on is not."""
        last = self._proved_at
        end = "it" if seq is None else f"event {seq}"
        return f"something before {end}" if last is None else f"something between events {last} and {seq}"


def _listed(parts: Sequence[Part]) -> str:
    named = [_NAMES.get(part, f"the {part}") for part in parts]
    told = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f"{told} {'differs' if len(parts) == 1 and parts[0] in _ONE else 'differ'}"


_NAMES: dict[Part, str] = {"system": "the system text"}
_ONE = frozenset(("system", "provider", "effort", "purpose"))
