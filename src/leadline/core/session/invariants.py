"""The registry of invariants: rules that are checked while everything runs, each owned by who guarantees it.

An invariant is no validation: it can only be broken by a defect. It says so at the place where the
defect is, and not where its consequences come to light. All are off unless they are switched on; then
nothing is called and nothing listens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, Field

from leadline.core.session.codec import Header
from leadline.core.session.events import Event
from leadline.core.session.log import BeforeAppend, Session
from leadline.kernel.context import Context
from leadline.kernel.errors import ConfigError, DuplicateName, LeadlineError
from leadline.kernel.services import Service

S = TypeVar("S")
_NAME = re.compile(r"[a-z][a-z0-9-]*/[a-z][a-z0-9-]*")


class InvariantBroken(LeadlineError):
    """Something is not as its owner guarantees; a defect of Leadline or of a plugin."""

    def __init__(self, name: str, where: str, reason: str) -> None:
        self.name = name
        """The invariant."""
        self.reason = reason
        super().__init__(
            f"invariant {name} is broken in {where}: {reason}; this is a defect, please report it with the log. "
            f"To go on without the check, block {name!r} in the configuration of the row `invariants`"
        )


@dataclass(frozen=True)
class LogInvariant(Generic[S]):
    """A rule of a session log: checked before each event is written, which it can refuse.

    `init` and `apply` are a pure fold, as those of a projection. `apply` is total: it is also given what
    is in logs already, written when the rule did not hold or was not checked.
    """

    name: str
    """`<owner>/<what>`."""
    holds: str
    """What is true as long as it is not broken: one sentence."""
    init: Callable[[Header], S]
    """What is known before the first event."""
    check: Callable[[S, BeforeAppend], str | None]
    """Why the event may not follow, given what the events before it came to; None where it may."""
    apply: Callable[[S, Event], S]
    """What is known after one more event; a new value, never the changed old one."""
    types: frozenset[str] = frozenset()
    """The types of the events that matter to it; empty: all."""
    stored: bool = True
    """Whether it needs the log alone, so that a stored log can be held to it."""


def rule_of_one_event(
    name: str,
    holds: str,
    check: Callable[[BeforeAppend], str | None],
    *types: type[Event],
    stored: bool = True,
) -> LogInvariant[None]:
    """An invariant that has nothing to remember: each event of these types is checked by itself. See `LogInvariant`."""
    return LogInvariant(
        name=name,
        holds=holds,
        init=lambda header: None,
        check=lambda known, before: check(before),
        apply=lambda known, event: None,
        types=frozenset(one.TYPE for one in types),
        stored=stored,
    )


Tell: TypeAlias = "Callable[[str, str], InvariantBroken | None]"
"""`tell(where, reason)`: the invariant is broken. Gives the error to raise, where things are to be stopped."""


@dataclass(frozen=True)
class LiveInvariant:
    """A rule of what happens while agents run."""

    name: str
    """`<owner>/<what>`."""
    holds: str
    """What is true as long as it is not broken: one sentence."""
    watch: Callable[[Context, Tell], None]
    """Listens where it has to, as effects of the context that it is given."""


AnyInvariant: TypeAlias = "LogInvariant[object] | LiveInvariant"


class InvariantsConfig(BaseModel):
    """Which invariants are checked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = False
    """Whether invariants are checked at all. It costs time with every event."""

    allow: tuple[str, ...] = ("*",)
    """Names of those that are checked; `*` stands for any letters, such as in `session/*`."""

    block: tuple[str, ...] = ()
    """Names of those that are not; stronger than `allow`."""

    refuse: bool = True
    """Whether what breaks one is stopped, as far as it can be; otherwise it is reported and goes on."""

    requests_every: int = Field(default=1, ge=1)
    """Of the requests of a session, every how many-th is derived anew from its whole log (`loop/derived-requests`)."""

    def on(self, name: str) -> bool:
        """Whether the invariant of that name is checked."""
        return (
            self.enabled
            and any(fnmatchcase(name, pattern) for pattern in self.allow)
            and not any(fnmatchcase(name, pattern) for pattern in self.block)
        )


@dataclass
class _Followed:
    """How far one session was followed: what each rule knows at event `at`, and behind what is being written."""

    at: int = 0
    known: dict[str, object] = field(default_factory=dict[str, object])
    next: int = 0
    ahead: dict[str, object] = field(default_factory=dict[str, object])


class Invariants(Service, key="invariants"):
    """The invariants of what is mounted."""

    def __init__(self, ctx: Context, config: InvariantsConfig | None = None) -> None:
        """`ctx` tells of what is broken and can stop nothing."""
        self._ctx = ctx
        self._config = config or InvariantsConfig(enabled=True)
        self._all: dict[str, AnyInvariant] = {}
        self._by_type: dict[str, list[LogInvariant[object]]] = {}
        self._of_any: list[LogInvariant[object]] = []
        self._sessions: WeakKeyDictionary[Session, _Followed] = WeakKeyDictionary()

    def register(self, ctx: Context, *invariants: LogInvariant[S] | LiveInvariant) -> None:
        """Hold everything to `invariants` for as long as the owner of `ctx` lives.

        Raises:
            ConfigError: a name is not of the form `<owner>/<what>`.
            DuplicateName: another one has the name.
            FiberInactive: the owner is unloading or disposed.
        """
        for one in invariants:
            ctx.check_open(f"invariant {one.name}")
            if _NAME.fullmatch(one.name) is None:
                raise ConfigError(f"invariant {one.name!r} needs a name of the form <owner>/<what>")
            if one.name in self._all:
                raise DuplicateName(f"invariant {one.name!r} is there already; choose another name")
            self._all[one.name] = one  # pyright: ignore[reportArgumentType]  # init, check and apply fit each other
            self._sort()
            ctx.defer(f"invariant {one.name}", lambda name=one.name: self._remove(name))
            if isinstance(one, LiveInvariant) and self.on(one.name):
                one.watch(ctx, lambda where, reason, name=one.name: self.broken(name, where, reason))

    def _remove(self, name: str) -> None:
        self._all.pop(name, None)
        self._sort()

    def _sort(self) -> None:
        of_logs = [one for one in self._all.values() if isinstance(one, LogInvariant) and self.on(one.name)]
        self._of_any = [one for one in of_logs if not one.types]
        self._by_type = {}
        for one in of_logs:
            for type_ in one.types:
                self._by_type.setdefault(type_, []).append(one)
        self._sessions.clear()

    def __iter__(self) -> Iterator[AnyInvariant]:
        return iter(tuple(self._all.values()))

    @property
    def requests_every(self) -> int:
        """Every how many-th request is derived anew."""
        return self._config.requests_every

    def on(self, name: str) -> bool:
        """Whether the invariant of that name is checked here."""
        return self._config.on(name)

    def broken(self, name: str, where: str, reason: str) -> InvariantBroken | None:
        """Tell that an invariant does not hold; the error to raise where that is to be stopped."""
        error = InvariantBroken(name, where, reason)
        self._ctx.report(error, f"invariant {name}")
        return error if self._config.refuse else None

    def veto(self, before: BeforeAppend) -> None:
        """Hold an event that is about to be written to every rule that is on.

        Raises:
            InvariantBroken: it breaks one.
        """
        followed = self._followed(before)
        for one in self._about(before.event.TYPE):
            known = (
                followed.ahead[one.name] if one.name in followed.ahead else one.init(before.session.header)
            )
            reason = one.check(known, before)
            if reason is not None:
                error = self.broken(one.name, f"session {before.session.id}, event {before.seq}", reason)
                if error is not None:
                    raise error
            followed.ahead[one.name] = one.apply(known, before.event)
        followed.next = before.seq + 1

    def _about(self, type_: str) -> Sequence[LogInvariant[object]]:
        return (*self._by_type.get(type_, ()), *self._of_any)

    def _followed(self, before: BeforeAppend) -> _Followed:
        """What is known where `before` stands. What was asked about and then not written is forgotten."""
        session, seq = before.session, before.seq
        followed = self._sessions.get(session)
        if followed is None:
            followed = self._sessions[session] = _Followed()
        if seq == len(session.logged):
            if followed.next == seq:
                followed.known, followed.at = followed.ahead, seq
            else:
                self._catch_up(followed, session, seq)
            followed.ahead = dict(followed.known)
        followed.next = -1
        return followed

    def _catch_up(self, followed: _Followed, session: Session, seq: int) -> None:
        for line in session.since(followed.at):
            about = self._about(line.type)
            event = session.event(line) if about else None
            if event is None:
                continue
            for one in about:
                known = followed.known[one.name] if one.name in followed.known else one.init(session.header)
                followed.known[one.name] = one.apply(known, event)
        followed.at = seq


def broken_in(
    session: Session, invariants: Sequence[AnyInvariant]
) -> Iterator[tuple[int, LogInvariant[object], str]]:
    """Where a log breaks rules that need the log alone: number of the event, rule, reason."""
    rules = [one for one in invariants if isinstance(one, LogInvariant) and one.stored]
    known = {one.name: one.init(session.header) for one in rules}
    for line in session.logged:
        event = session.event(line)
        if event is None:
            continue
        before = BeforeAppend(session, event, line.seq)
        for one in rules:
            if one.types and line.type not in one.types:
                continue
            reason = one.check(known[one.name], before)
            if reason is not None:
                yield line.seq, one, reason
            known[one.name] = one.apply(known[one.name], event)
