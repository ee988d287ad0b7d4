"""The facts of a session log that core itself writes.

An event is a frozen struct with a type name; its owner declares it, and the same class is the schema
when it is written and when it is read. Rules for every event class:

- `TYPE` is `<domain>/<what>`; `VERSION` rises when a field changes its meaning, becomes required, or
  changes its default (defaults are not written); `upcast` then turns old data into the new form.
- An event that carries state holds the whole state after it, so that a fold takes the last one.
- `DERIVES` says that the event shapes what a model sees. A reader that does not know such an event
  can show the log but not continue it; any other unknown event is skipped and kept.

The order inside a turn is: turn/start, then for each step step/start, user/message..., request/header
(when changed), request/sent, assistant/chunk..., assistant/message, then for each call tool/call,
approval/asked and approval/decided (where somebody is asked) and tool/result, step/end; last turn/end. Where a process died, turn/resumed stands between what it wrote and
what the next one did in the same turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

import msgspec

from leadline.core.llm.failure import LlmFailure
from leadline.core.llm.jsonvalue import JsonObject
from leadline.core.llm.messages import AssistantMessage, ToolMessage, UserMessage
from leadline.core.llm.request import CallConfig, ToolSchema
from leadline.core.llm.usage import Usage


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of every event: `class Noted(Event, frozen=True, kw_only=True): TYPE = "..."`."""

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1
    DERIVES: ClassVar[bool] = False

    OPENS: ClassVar[str] = ""
    """Names a bracket (`turn`, `run`) that is open from this event on, until one that closes it."""

    CLOSES: ClassVar[str] = ""
    """Names the bracket that this event closes. A session left open by a dead writer is interrupted."""

    @classmethod
    def upcast(cls, version: int, data: Mapping[str, object]) -> Mapping[str, object]:
        """`data` of the older `version` in the form of `VERSION`; override when VERSION rises."""
        return data


# --- turns and steps ---------------------------------------------------------------------------------------

TurnReason: TypeAlias = Literal[
    "completed", "aborted", "blocked", "error", "max-tokens", "refusal", "budget", "interrupted"
]
"""`interrupted` is written by recovery alone: the writer died inside the turn."""


class AbortCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who stopped a turn."""

    kind: Literal["user", "parent", "plugin", "budget", "disposed"]
    detail: str = ""
    """The plugin and its reason, or the budget that was used up."""


class TurnLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ceilings that somebody set on a turn; None is no ceiling."""

    tokens: int | None = None
    cost: int | None = None
    """Picodollars."""
    calls: int | None = None
    seconds: float | None = None


class TurnStart(Event, frozen=True, kw_only=True):
    """Opens a turn, before any input is claimed."""

    TYPE: ClassVar[str] = "turn/start"
    OPENS: ClassVar[str] = "turn"

    turn: int
    """From 1, rising by one over the whole life of the session."""
    proceeds: bool = False
    """Whether the model is asked even though nothing waits to be said to it."""
    limits: TurnLimits | None = None
    """What an agent without a parent was given for it; they hold too when a later process goes on with it."""


class TurnResumed(Event, frozen=True, kw_only=True):
    """Somebody goes on with the latest turn: same turn, same step, where it stopped.

    Its process died in it, or it was broken off: stopped from outside, or left by the model's provider. What the end
    of a turn that was broken off made of unfinished things is void: the beginning of an answer is asked for
    anew, a call that never began is begun, and one that at most reads is made again.
    """

    TYPE: ClassVar[str] = "turn/resumed"
    OPENS: ClassVar[str] = "turn"
    DERIVES: ClassVar[bool] = True

    turn: int
    step: int
    """The step that is open, or was last; 0 before the first."""
    seconds: float = 0.0
    """Wall time that was spent on the turn before, the time in which nobody worked on it left out."""
    void: tuple[str, ...] = ()
    """Ids of messages that count no more: one answer that was cut off, or results of calls."""
    calls: tuple[str, ...] = ()
    """Ids of the calls whose results are void."""
    unbegun: tuple[str, ...] = ()
    """Those of them that had not begun: their tool/call counts no more either."""


class TurnEnd(Event, frozen=True, kw_only=True):
    """Closes a turn."""

    TYPE: ClassVar[str] = "turn/end"
    CLOSES: ClassVar[str] = "turn"

    turn: int
    reason: TurnReason
    cause: AbortCause | None = None
    """Given when the reason is `aborted`, `blocked` or `budget`."""
    failure: LlmFailure | None = None
    """Given when a model's provider failed."""
    error: str = ""
    """Given when a plugin or the harness failed: type and message."""


class StepStart(Event, frozen=True, kw_only=True):
    """One model call and the tools that it asks for begin."""

    TYPE: ClassVar[str] = "step/start"

    turn: int
    step: int
    """From 1 in each turn."""


class StepEnd(Event, frozen=True, kw_only=True):
    """Closes a step, however it went."""

    TYPE: ClassVar[str] = "step/end"

    turn: int
    step: int


# --- input -------------------------------------------------------------------------------------------------

InboxTarget: TypeAlias = Literal["next-turn", "next-step"]
InboxOutcome: TypeAlias = Literal["cancelled", "replaced", "dropped"]


class InboxSpliced(Event, frozen=True, kw_only=True):
    """The queue of waiting input changed; written before the queue itself changes.

    A message that enters the window is not removed by this event but by the `user/message` that
    claims it, so that claim and entry are one fact. What is in the inbox is, in order, every message
    that was inserted and neither removed here nor claimed there. A fork or a seed does not inherit
    it: only events after the last session/end-seed count.
    """

    TYPE: ClassVar[str] = "agent/inbox/spliced"

    target: InboxTarget
    inserted: tuple[UserMessage, ...] = ()
    position: int | None = None
    """Where they are inserted in the target's queue, counted after the removal; None: at its end."""
    removed: tuple[str, ...] = ()
    """Ids of messages that leave without entering the window."""
    outcome: InboxOutcome | None = None
    """Why they leave; given exactly when `removed` is."""
    refused: str | None = None
    """What a plugin said that did not let them enter; the turn ends as blocked then."""


class UserEntered(Event, frozen=True, kw_only=True):
    """A message in the user role enters the window: a prompt, steering, injected context.

    Messages that enter together are appended together, in one write.
    """

    TYPE: ClassVar[str] = "user/message"
    DERIVES: ClassVar[bool] = True

    message: UserMessage
    turn: int | None = None
    """None when it is put there outside a turn."""
    step: int | None = None
    claims: tuple[str, ...] = ()
    """Ids of the inbox messages that this entry uses up: usually the message's own; several when
    they were merged, none when it never waited in the inbox."""


# --- the request -------------------------------------------------------------------------------------------


class RequestHeader(Event, frozen=True, kw_only=True):
    """What a request consists of beside its messages. Written in full, but only when it changed."""

    TYPE: ClassVar[str] = "request/header"
    DERIVES: ClassVar[bool] = True

    config: CallConfig
    system: str = ""
    tools: tuple[ToolSchema, ...] = ()
    reason: Literal["initial", "resume", "change"] = "initial"


class RequestParts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The beginnings (16 hex digits) of the sha256 of what a request is made of: they tell which part of one differs."""

    system: str
    """Of the system text."""
    tools: str
    """Of their schemas."""
    parameters: str
    """Of the call's configuration without its model and effort."""
    messages: str
    """Of the messages in canonical form, without their ids."""
    effort: str | None = None
    """The reasoning effort itself."""


class RequestSent(Event, frozen=True, kw_only=True):
    """A request is about to be sent: written before its first byte leaves.

    Its body is a function of the last request/header and of what the events before this one derive.
    A `request/sent` that is followed by neither assistant/message nor request/ended was in flight
    when the writer died, and may have been billed.
    """

    TYPE: ClassVar[str] = "request/sent"

    turn: int | None = None
    step: int | None = None
    attempt: int = 1
    """From 1; a retry inside the step is the next one."""
    purpose: str
    """Name of the purpose, such as `agent/turn` or `research/planning`."""
    purpose_data: JsonObject | None = None
    """The purpose's own facts: in the first of these events that names their digest, not in later ones."""
    purpose_digest: str = ""
    """sha256 in hex of the purpose's facts as canonical JSON; empty where it has none."""
    model: str
    """`provider/model`."""
    digest: str
    """sha256 in hex of exactly the bytes of the body."""
    messages: int
    """How many messages the conversation had."""
    parts: RequestParts | None = None
    """What it is made of; None in logs of earlier versions."""
    idempotency_key: str = ""
    """What the provider is told so that a second sending of the same call is not a second call."""
    tokens: int | None = None
    """The size of the prompt in tokens as it was estimated, uncorrected; None where nobody estimated it."""


class RequestEnded(Event, frozen=True, kw_only=True):
    """An attempt ended without an assistant/message: it failed, or was cancelled before any text."""

    TYPE: ClassVar[str] = "request/ended"

    turn: int | None = None
    step: int | None = None
    attempt: int = 1
    digest: str
    """That of its `request/sent`."""
    state: Literal["refused", "error", "incomplete", "cancelled"]
    failure: LlmFailure | None = None
    usage: Usage | None = None
    """What the provider reported all the same; None when it reported nothing."""
    cost: int | None = None
    """Picodollars for that usage, at the price that held then; None where it is not known."""


class LlmRetry(Event, frozen=True, kw_only=True):
    """The same request will be tried again after a wait; written before the wait."""

    TYPE: ClassVar[str] = "llm/retry"

    turn: int | None = None
    step: int | None = None
    attempt: int
    """The attempt that failed."""
    delay_s: float
    failure: LlmFailure


# --- the answer --------------------------------------------------------------------------------------------

AnswerState: TypeAlias = Literal["done", "length", "refused", "interrupted"]


class AssistantChunk(Event, frozen=True, kw_only=True):
    """Text as it arrived, several deltas in one event. For live views; derives nothing."""

    TYPE: ClassVar[str] = "assistant/chunk"

    turn: int | None = None
    step: int | None = None
    attempt: int = 1
    """A later attempt makes the chunks of earlier ones void."""
    channel: Literal["text", "reasoning"] = "text"
    text: str


class AssistantSaid(Event, frozen=True, kw_only=True):
    """What a model said, once for each call that succeeded, even when it said nothing.

    Only an answer that is `done` keeps its tool calls when it is derived; an empty one derives nothing.
    """

    TYPE: ClassVar[str] = "assistant/message"
    DERIVES: ClassVar[bool] = True

    turn: int | None = None
    step: int | None = None
    attempt: int = 1
    message: AssistantMessage
    state: AnswerState = "done"
    """`interrupted`: cancelled in mid-stream; the text that had arrived is kept."""
    usage: Usage | None = None
    """As reported by the provider; None when it reported nothing."""
    cost: int | None = None
    """Picodollars for that usage, at the price that held then; None where it is not known."""
    digest: str = ""
    """That of its `request/sent`."""
    cut_calls: tuple[str, ...] = ()
    """Names of the tools whose calls were cut off, and so are not in the message."""
    leaked_call: bool = False
    """Whether its text ends with a tool call written as text."""
    correction: str = ""
    """What the model is told of that call; empty: the usual."""
    failure: LlmFailure | None = None
    """Given where the state is `refused` and the provider said more."""
    detail: str = ""
    """The provider's own word for a refusal."""


# --- tools -------------------------------------------------------------------------------------------------


class ToolCalled(Event, frozen=True, kw_only=True):
    """A tool is about to be run: the intent, durable before anything happens."""

    TYPE: ClassVar[str] = "tool/call"

    turn: int | None = None
    step: int | None = None
    call_id: str
    name: str
    arguments: str
    """Raw JSON text as the model wrote it."""
    side_effects: tuple[str, ...] = ()
    """What the tool declares: `reads`, `writes`, `network`."""
    root_call_id: str | None = None
    """The model's call on whose behalf this one is made; None when it is the model's own."""


ApprovalOutcome: TypeAlias = Literal["allowed-once", "denied", "expired", "cancelled", "no-approver"]
"""What becomes of a question whether a call may run. Only the first lets it."""


class ApprovalAsked(Event, frozen=True, kw_only=True):
    """A call waits for somebody's yes; its body has not begun. Survives a power cut before anybody is asked."""

    TYPE: ClassVar[str] = "approval/asked"

    turn: int | None = None
    step: int | None = None
    call_id: str
    reason: str
    """Why a policy wants it to be asked."""
    digest: str
    """sha256 in hex of the tool's name, a NUL and its arguments as they will be executed: what is decided about."""


class ApprovalDecided(Event, frozen=True, kw_only=True):
    """What became of the latest question about a call, before its body may begin."""

    TYPE: ClassVar[str] = "approval/decided"

    turn: int | None = None
    step: int | None = None
    call_id: str
    outcome: ApprovalOutcome
    reason: str = ""
    """What whoever decided said to it."""


class Spilled(msgspec.Struct, frozen=True, kw_only=True):
    """Where the whole of a result is, of which the model was shown beginning and end."""

    blob: str
    """sha256 of the whole text, sanitised, in the blob store."""
    chars: int
    """Characters of the whole."""
    head: int
    """Characters of its beginning that were shown."""
    tail: int
    """Characters of its end that were shown."""


class ToolAnswered(Event, frozen=True, kw_only=True):
    """The outcome of a call, as the model reads it and as programs do."""

    TYPE: ClassVar[str] = "tool/result"
    DERIVES: ClassVar[bool] = True

    turn: int | None = None
    step: int | None = None
    message: ToolMessage
    error_code: str | None = None
    """Given exactly when the message is an error."""
    started: bool = True
    """Whether the body ran at all; a call that was denied or invalid did not."""
    synthesised: bool = False
    """Written by recovery, not by the tool."""
    side_effects: tuple[str, ...] = ()
    """What may have been done to the world."""
    duration_s: float | None = None
    root_call_id: str | None = None
    """As in `tool/call`; the result of a nested call is not shown to the model."""
    concludes_turn: bool = False
    """Whether the turn ends after this step."""
    spilled: Spilled | None = None
    """Given where the message has only beginning and end of the result, and the whole is stored."""


# --- what was paid for -------------------------------------------------------------------------------------

ChargeState: TypeAlias = Literal["done", "failed", "cancelled"]


class Charged(Event, frozen=True, kw_only=True):
    """Something other than a request of this session was paid for: a search, a reader, an embedding, a model in a tool.

    What requests cost stands in the event that ends each of them.
    """

    TYPE: ClassVar[str] = "spend/charged"

    turn: int | None = None
    step: int | None = None
    call_id: str | None = None
    """The tool call on whose behalf it was; None where it was none."""
    what: str
    """Who was paid: `provider/model`, or the name of a service."""
    purpose: str
    calls: int = 1
    """How many calls of that service are charged together."""
    usage: Usage | None = None
    """As reported; None where it is not counted in tokens, or nothing was reported."""
    cost: int | None = None
    """Picodollars, at the price that held then; None where it is not known."""
    state: ChargeState = "done"
    """How it went. What failed or was cancelled may have been billed all the same."""


# --- the window --------------------------------------------------------------------------------------------

WindowCause: TypeAlias = Literal["prune", "compact", "trim", "undo"]


class Stub(msgspec.Struct, frozen=True):
    """What stands for the content of a result from now on."""

    message_id: str
    text: str


class WindowChanged(Event, frozen=True, kw_only=True):
    """A model sees less from here on, or again what it saw before; the log keeps everything.

    It names messages by their ids, so that nothing that is hidden or comes between moves what it means. An id
    that is not among what the model sees is passed over. A span is narrowed to whole answers with all their results.
    """

    TYPE: ClassVar[str] = "window/changed"
    DERIVES: ClassVar[bool] = True

    cause: WindowCause
    stubs: tuple[Stub, ...] = ()
    """Results whose content is replaced."""
    first: str = ""
    """Id of the first message that `summary` stands for."""
    last: str = ""
    """Id of the last one."""
    summary: UserMessage | None = None
    """Stands in the place of the messages from `first` to `last`."""
    undoes: int | None = None
    """`seq` of an earlier one of these events, which counts no more; nor do those that name its summary."""
    before: int = 0
    """Estimated tokens of the whole request before."""
    after: int = 0
    """The same, after."""
    child: str = ""
    """Id of the session in which the summary was written."""


# --- the log itself ----------------------------------------------------------------------------------------


class SeedEnded(Event, frozen=True, kw_only=True):
    """What stands before the last of these was copied into the session when it was made.

    Brackets that were left open before it belong to another lifecycle and are over.
    """

    TYPE: ClassVar[str] = "session/end-seed"


class DamageMoved(Event, frozen=True, kw_only=True):
    """Lines that could not be used were moved from the end of the log to a file beside it."""

    TYPE: ClassVar[str] = "session/damage-moved"

    file: str
    """Name of the file that holds the bytes, in the directory of the log."""
    first_line: int
    """Line of the log, from 1, at which they stood; 0 where the file is the archive that the log came from."""
    bytes: int
    sha256: str
    """Of the bytes that were moved."""
    reasons: tuple[str, ...] = ()


TitleSource: TypeAlias = Literal["first", "model", "user"]


class Titled(Event, frozen=True, kw_only=True):
    """The session has a title. One by a person holds against one by a model, and that against `first`."""

    TYPE: ClassVar[str] = "session/title"

    title: str
    """One line. Empty takes back what that source gave before."""
    source: TitleSource
    """`first`: cut from the first words; `model`: asked of a model; `user`: given by a person."""


CORE_EVENTS: tuple[type[Event], ...] = (
    TurnStart,
    TurnResumed,
    TurnEnd,
    StepStart,
    StepEnd,
    InboxSpliced,
    UserEntered,
    RequestHeader,
    RequestSent,
    RequestEnded,
    LlmRetry,
    AssistantChunk,
    AssistantSaid,
    ToolCalled,
    ApprovalAsked,
    ApprovalDecided,
    ToolAnswered,
    Charged,
    WindowChanged,
    SeedEnded,
    DamageMoved,
    Titled,
)
"""Every event that core owns; known to every registry of event types."""
