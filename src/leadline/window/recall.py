"""The tool `recall`: reads back whatever left the window, of the caller's own session and of no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field

from leadline.core.llm.jsonvalue import JsonValue
from leadline.core.llm.messages import Message
from leadline.core.session.blobs import Blobs
from leadline.core.session.errors import BlobError
from leadline.core.session.events import Spilled
from leadline.core.session.log import Session
from leadline.core.tools.budget import Room, fitting
from leadline.core.tools.fence import derived_token, fence, fence_lines
from leadline.core.tools.graphemes import cut_after, cut_before
from leadline.core.tools.invocation import ToolInvocation
from leadline.core.tools.pipeline import ToolPipeline
from leadline.core.tools.registry import ToolRegistry
from leadline.core.tools.spec import READS, Tool, ToolOutput, description_from
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.window.finding import spans
from leadline.window.memory import Ambiguous, Kept, Memory, role_of, words_of
from leadline.window.spill import RECALL

_SNAP = 100
"""A part ends at a line or word end if there is one in its last so many characters."""

_AROUND = 80
"""Characters that are shown before and behind a place that was found."""

_MOST_PLACES = 40
_MOST_LISTED = 20


class RecallArguments(BaseModel):
    """What the model gives."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="What to read: an id as it stands in place of what was left out.",
    )
    start: int = Field(
        default=1, ge=1, alias="from", description="The first character to read, counted from 1."
    )
    length: int | None = Field(
        default=None, ge=1, description="How many characters at most; default: as many as fit."
    )
    find: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="A text to look for; the answer tells the places where it stands.",
    )


def recall_tool(pipeline: ToolPipeline, blobs: Blobs | None) -> Tool:
    """`recall`, for the sessions of whoever calls it."""

    async def execute(args: RecallArguments, call: ToolInvocation) -> ToolOutput:
        if call.session is None:
            return _failed(
                "NO_SESSION", "There is no session behind this call, so there is nothing to recall."
            )
        return await _Recall(call, call.session, blobs, pipeline.room(call)).answer(args)

    return Tool(
        name=RECALL,
        description=description_from("leadline.window", "recall.md"),
        parameters=RecallArguments,
        execute=execute,
        side_effects=READS,
        parallel=True,
    )


@dataclass(frozen=True)
class _Place:
    kept: Kept
    start: int
    """From 0."""
    snippet: str


class _Recall:
    """One call."""

    def __init__(self, call: ToolInvocation, session: Session, blobs: Blobs | None, room: Room) -> None:
        self._call = call
        self._session = session
        self._blobs = blobs
        self._room = room
        self._memory = Memory(session)

    async def answer(self, args: RecallArguments) -> ToolOutput:
        if args.id is None:
            if args.find is None:
                return self._unknown("Give an id, or a text to find.")
            return await self._places(self._memory.left_out(), args)
        try:
            kept = self._memory.find(args.id)
        except Ambiguous as several:
            return _failed("AMBIGUOUS_ID", f"Several ids begin with {args.id!r}: {several}. Give more of it.")
        if kept is None:
            return self._unknown(f"Nothing in this session has the id {args.id!r}.")
        return await (self._part(kept, args) if args.find is None else self._places([kept], args))

    # one part of one thing

    async def _part(self, kept: Kept, args: RecallArguments) -> ToolOutput:
        text, note = await self._text(kept)
        total = len(text)
        if not text:
            return _failed("EMPTY", f"There is no text in it: {kept.what} ({kept.id}).")
        start = args.start - 1
        if args.start > total:
            return _failed(
                "PAST_THE_END", f"from={args.start} is past the end: it has {total} characters, 1 to {total}."
            )
        end = _end(text, start, fitting(self._room, text, start, args.length or total))
        while not self._room.holds(content := self._shown(kept, text, start, end, note)):
            shorter = _end(text, start, max(1, (end - start) * 4 // 5))
            if shorter >= end:
                break
            end = shorter
        return ToolOutput(_value(kept, start, end, total), content)

    def _shown(self, kept: Kept, text: str, start: int, end: int, note: str) -> str:
        total = len(text)
        head = f"{_sentence(kept)}, characters {start + 1} to {end} of {total}"
        if end < total:
            head += f"; continue with from={end + 1}."
        else:
            head += "; complete." if start == 0 else "; to its end."
        return f"{head}{note}\n{self._framed(kept, text, text[start:end])}"

    def _framed(self, kept: Kept, whole: str, part: str) -> str:
        """The part as it may enter a prompt: what may be from elsewhere stands in a fence of its own."""
        if not kept.outside:
            return part
        return fence(part, self._token(self._secret(whole)), f"{kept.what} ({kept.id})")

    def _secret(self, text: str) -> str:
        """Something that nobody outside knows: the token of the fence that the text came in, the same in every replay."""
        return next((line.opens for line in fence_lines(text) if line.opens), self._session.id)

    def _token(self, secret: str) -> str:
        return derived_token(secret, RECALL, self._call.call_id)

    # places of a text

    async def _places(self, among: Sequence[Kept], args: RecallArguments) -> ToolOutput:
        wanted = args.find or ""
        first = args.start - 1 if args.id is not None else 0
        places: list[_Place] = []
        total, secret = 0, self._session.id
        for kept in among:
            text, _ = await self._text(kept)
            secret = self._secret(text) if secret == self._session.id else secret
            count, found = await to_thread.run_sync(partial(_found, kept, text, wanted, first))
            total += count
            places += found
        if not places:
            where = _sentence(among[0]) if args.id is not None else "what was left out"
            behind = f" from {args.start} on" if first else ""
            return ToolOutput(
                {"find": wanted, "total": 0, "places": []},
                f"“{_line(wanted)}” does not stand in {where}{behind}. Letters with and without accents differ.",
            )
        shown = places[:_MOST_PLACES]
        while not self._room.holds(content := self._told(shown, total, args, secret)) and len(shown) > 1:
            shown = shown[: len(shown) * 3 // 4]
        value: JsonValue = {
            "find": wanted,
            "total": total,
            "places": [{"id": one.kept.id, "from": one.start + 1} for one in shown],
        }
        return ToolOutput(value, content)

    def _told(self, shown: Sequence[_Place], total: int, args: RecallArguments, secret: str) -> str:
        one = args.id is not None
        where = _sentence(shown[0].kept) if one else "what was left out"
        lines = [
            f"from={place.start + 1}{'' if one else f' of id {place.kept.id} ({place.kept.what})'}: {place.snippet}"
            for place in shown
        ]
        head = f"“{_line(args.find or '')}” stands {_times(total)} in {where}; read at a place with its from."
        if len(shown) < total:
            rest = f"from={shown[-1].start + 2}" if one else "an id"
            head += f" The first {len(shown)} follow; find the others with {rest}."
        return f"{head}\n" + fence("\n".join(lines), self._token(secret), f"places in {where}")

    # texts

    async def _text(self, kept: Kept) -> tuple[str, str]:
        """The text of something, and what has to be said about it."""
        if len(kept.messages) == 1:
            return await self._whole(kept.messages[0])
        parts: list[str] = []
        notes: list[str] = []
        for message in kept.messages:
            text, note = await self._whole(message)
            parts.append(f"--- {role_of(message)} ({message.id}) ---\n{text}")
            notes.append(note)
        return "\n\n".join(parts), next(filter(None, notes), "")

    async def _whole(self, message: Message) -> tuple[str, str]:
        spilled = self._memory.spilled(message)
        if spilled is None:
            return words_of(message), ""
        try:
            return await self._stored(spilled), ""
        except BlobError as error:
            self._call.ctx.report(error, f"reading the whole of result {message.id}")
            return words_of(
                message
            ), " What was left out of it cannot be read any more; this is what you were shown."

    async def _stored(self, spilled: Spilled) -> str:
        if self._blobs is None:
            raise BlobError(f"no blob store is mounted that would have {spilled.blob}")
        return (await to_thread.run_sync(self._blobs.get, spilled.blob)).decode("utf-8", "replace")

    # nothing there

    def _unknown(self, why: str) -> ToolOutput:
        kept = self._memory.left_out()
        if not kept:
            return _failed("UNKNOWN_ID", f"{why} Nothing was left out: you see everything.")
        lines = [f"- {one.id}: {one.what}" for one in kept[-_MOST_LISTED:]]
        more = f" (the latest {_MOST_LISTED} of {len(kept)})" if len(kept) > _MOST_LISTED else ""
        return _failed("UNKNOWN_ID", f"{why} What can be recalled{more}:\n" + "\n".join(lines))


def _end(text: str, start: int, most: int) -> int:
    """Where a part ends: words stay whole where that costs little, and what a person sees as one character always."""
    end = start + most
    if end >= len(text):
        return len(text)
    if most > 2 * _SNAP:
        for border in ("\n", " "):
            found = text.rfind(border, end - _SNAP, end)
            if found >= 0:
                return cut_after(text, found + 1)
    cut = cut_before(text, end)
    return cut if cut > start else cut_after(text, end)


def _found(kept: Kept, text: str, wanted: str, first: int) -> tuple[int, list[_Place]]:
    """How often it stands there from `first` on, and the first places."""
    count = 0
    found: list[_Place] = []
    for start, end in spans(text, wanted):
        if start < first:
            continue
        count += 1
        if len(found) < _MOST_PLACES:
            found.append(_Place(kept, start, _line(text[max(0, start - _AROUND) : end + _AROUND])))
    return count, found


def _value(kept: Kept, start: int, end: int, total: int) -> JsonValue:
    following = end + 1 if end < total else None
    return {"id": kept.id, "from": start + 1, "to": end, "total": total, "next": following}


def _sentence(kept: Kept) -> str:
    return f"{kept.what[0].upper()}{kept.what[1:]} ({kept.id})"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _line(text: str) -> str:
    return " ".join(text.split())


def _failed(code: str, message: str) -> ToolOutput:
    return ToolOutput({"error": code, "message": message}, message, is_error=True, error_code=code)


async def _apply(ctx: Context, config: None) -> None:
    ctx.get(ToolRegistry).register(ctx, recall_tool(ctx.get(ToolPipeline), ctx.find(Blobs)))


plugin: Plugin[None] = Plugin(
    "window.recall",
    _apply,
    needs=(ToolRegistry, ToolPipeline),
    wants=(Blobs,),
)
