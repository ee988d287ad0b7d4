"""Read one log for the index: what its sources say of it, and its text; from where reading stopped before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from leadline.capabilities.session_index.seam import Facts, IndexSource, Passage
from leadline.core.session.codec import Header, Logged, chain, decode_header, decode_line
from leadline.core.session.errors import EventUndecodable
from leadline.core.session.log import Session
from leadline.core.session.projection import Checkpoint, Folded, checkpoint, restored

AnySource = IndexSource[msgspec.Struct]
Report = Callable[[BaseException, str], None]

_MAX_PASSAGE = 4_000
"""Code points up to which pieces of a transcript are kept together, so that words are found together."""


@dataclass(frozen=True)
class Progress:
    """How far a log was read."""

    offset: int
    """Bytes; 0 where only reading it again from the start can go on."""
    checkpoints: Mapping[str, Checkpoint]


@dataclass(frozen=True)
class Reading:
    """What reading a log, or the rest of one, gave."""

    facts: Facts
    passages: Sequence[Passage]
    progress: Progress
    whole: bool
    """Whether it was read from the start, so that what was known of it before is void."""


class LogReader:
    """Takes the bytes of a log in pieces. Gives up where a line does not continue the one before it.

    What it gives up on is read by the store's own loading, which can deal with anything.
    """

    def __init__(
        self, session_id: str, sources: Sequence[AnySource], known: Progress | None, report: Report
    ) -> None:
        self._id = session_id
        self._fold = _Fold(sources, report)
        self.offset = self._fold.restore(session_id, known) if known else 0
        self._whole = self.offset == 0
        self._end = self.offset
        self._rest = b""
        self.clean = True
        """False once it gave up."""

    def feed(self, chunk: bytes) -> None:
        """Read on."""
        if not self.clean:
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if not (self._event(line) if self._end else self._header(line)):
                self.clean = False
                return
            self._end += len(line) + 1

    def reading(self) -> Reading | None:
        """What came out; None when it gave up. A line that is not finished yet is left for the next time."""
        if not self.clean or not self._end:
            return None
        return self._fold.reading(self._id, self._end, whole=self._whole)

    def _header(self, line: bytes) -> bool:
        header = decode_header(line)
        if isinstance(header, str) or header.id != self._id:
            return False
        self._fold.begin(header, chain(line))
        return True

    def _event(self, line: bytes) -> bool:
        logged = decode_line(line)
        if isinstance(logged, str) or (logged.seq, logged.prev) != (self._fold.count, self._fold.digest):
            return False
        self._fold.add(logged, chain(line))
        return True


def read_session(session: Session, sources: Sequence[AnySource], report: Report) -> Reading:
    """The same of a session that was loaded, whatever damage there was in its log."""
    fold = _Fold(sources, report)
    fold.begin(session.header, session.digest)
    for logged in session.logged:
        fold.add(logged, session.digest)
    return fold.reading(session.id, 0, whole=True)


class _Fold:
    """The states of all sources, and the passages since reading began."""

    def __init__(self, sources: Sequence[AnySource], report: Report) -> None:
        self._sources = sources
        self._report = report
        self._states: list[msgspec.Struct] = []
        self._passages = _Passages()
        self.count = 0
        self.digest = ""

    def begin(self, header: Header, digest: str) -> None:
        self._states = [source.facts.init(header) for source in self._sources]
        self.digest = digest

    def restore(self, session_id: str, known: Progress) -> int:
        """Go on from `known`; the offset to read from, 0 where it is of no use."""
        kept: list[Folded[msgspec.Struct]] = []
        for source in self._sources:
            found = restored(source.facts, session_id, known.checkpoints.get(source.facts.key))
            if found is None:
                return 0
            kept.append(found)
        if not known.offset or len({(one.count, one.digest) for one in kept}) != 1:
            return 0
        self._states = [one.state for one in kept]
        self.count, self.digest = kept[0].count, kept[0].digest
        return known.offset

    def add(self, logged: Logged, digest: str) -> None:
        type_ = logged.type
        for index, source in enumerate(self._sources):
            facts = source.facts
            if not facts.types or type_ in facts.types:
                self._states[index] = facts.apply(self._states[index], logged)
            texts = source.texts.get(type_)
            if texts is not None:
                self._text(texts, logged)
        self.count += 1
        self.digest = digest

    def _text(self, texts: Callable[[Logged], Iterable[Passage]], logged: Logged) -> None:
        try:
            for passage in texts(logged):
                self._passages.add(passage)
        except EventUndecodable:
            return
        except Exception as error:  # noqa: BLE001 - one event less can be found; the list must not fail for it
            self._report(error, f"text of event {logged.seq} ({logged.type})")

    def reading(self, session_id: str, offset: int, *, whole: bool) -> Reading:
        folded = [Folded(state, self.count, self.digest) for state in self._states]
        pairs = list(zip(self._sources, folded, strict=True))
        checkpoints = {
            source.facts.key: checkpoint(source.facts, session_id, state) for source, state in pairs
        }
        facts = merged([source.facts.view(state.state) for source, state in pairs])
        return Reading(facts, self._passages.all(), Progress(offset, checkpoints), whole)


@dataclass
class _Passages:
    """Passages as they come; pieces of a transcript that follow one another are put together."""

    _done: list[Passage] = field(default_factory=list[Passage])
    _pieces: list[str] = field(default_factory=list[str])
    _size: int = 0

    def add(self, passage: Passage) -> None:
        text = passage.text.strip()
        if passage.key or passage.place != "transcript":
            self._done.append(passage)
        elif text:
            if self._size + len(text) > _MAX_PASSAGE:
                self._flush()
            self._pieces.append(text)
            self._size += len(text)

    def _flush(self) -> None:
        if self._pieces:
            self._done.append(Passage(place="transcript", text="\n".join(self._pieces)))
        self._pieces, self._size = [], 0

    def all(self) -> list[Passage]:
        self._flush()
        return self._done


def merged(told: Sequence[Facts]) -> Facts:
    """One value of what several sources say; of what several know, the last one's holds."""
    known = {
        name: value
        for facts in told
        for name in Facts.__struct_fields__
        if (value := getattr(facts, name)) not in ("", (), None)
    }
    return Facts(**known)
