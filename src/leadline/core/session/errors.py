"""The errors of session logs, their stores and blobs.

LeadlineError
└── SessionError
    ├── AppendRefused           an event that must not enter a log; nothing was written
    │   ├── EventInvalid        its fields break its own schema, or hold what JSON cannot
    │   ├── EventOutOfPlace     the log is not in a state in which this event can be true
    │   ├── AppendVetoed        a veto listener said no
    │   ├── ReentrantAppend     appended from inside a veto or an observer of an append
    │   ├── SessionClosed       the session was closed before
    │   └── StaleLease          another writer has taken over; this one may not write any more
    ├── SessionWriteFailed      the disk refused; the log is as before and may be tried again
    ├── SessionNotFound         no session of that id
    ├── SessionExists           an id that is taken
    ├── SessionLocked           another process writes it now
    ├── SessionFormatTooNew     written by a later version
    ├── SessionUnreadable       its header cannot be used
    ├── SessionNotContinuable   readable, but what the model saw cannot be rebuilt in full
    ├── ForkRefused             a fork at a place where none can be made
    └── EventUndecodable        data that is not what was asked for
BlobError
    ├── BlobMissing             no bytes under that hash
    ├── BlobDamaged             bytes that no longer have their hash
    ├── BlobWriteFailed         the disk refused
    └── BlobListFailed          the store cannot be listed
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from leadline.kernel.errors import LeadlineError


class SessionError(LeadlineError):
    """The root of what can go wrong with a session log."""


class AppendRefused(SessionError):
    """An event that must not enter the log. Nothing was written; the session is as before."""


class EventInvalid(AppendRefused):
    """A field does not fit the event's own schema, or holds what a JSON log cannot keep."""


class EventOutOfPlace(AppendRefused):
    """The event contradicts the log: a second answer, a step outside a turn."""


class AppendVetoed(AppendRefused):
    """A veto listener refused; the listener's own error is the cause."""


class ReentrantAppend(AppendRefused):
    """An observer or a veto of an append tried to append to the same session."""


class SessionClosed(AppendRefused):
    """The session was closed; open it again to write."""


class StaleLease(AppendRefused):
    """Another writer holds the session now, or its log was changed by someone else."""


class SessionWriteFailed(SessionError):
    """The log could not be written. It is as it was before the append, which may be tried again.

    Attributes: path, cause (the system's words).
    """

    def __init__(self, path: str, cause: str, next_step: str) -> None:
        super().__init__(f"cannot write session log {path}: {cause}; {next_step}")
        self.path = path
        self.cause = cause


class SessionNotFound(SessionError):
    """No session of that id is in the store."""


class SessionExists(SessionError):
    """A session of that id is in the store already; nothing was overwritten."""


class SessionLocked(SessionError):
    """Another holder writes the session now.

    Attributes: session_id, host, pid, since (epoch seconds; None where it cannot be told).
    """

    def __init__(self, session_id: str, host: str, pid: int | None, since: float | None) -> None:
        super().__init__(
            f"session {session_id} is being written by process {pid if pid else 'unknown'} on "
            f"{host or 'an unknown host'} since {_shown(since)}; wait for it, stop it, or only read the session"
        )
        self.session_id = session_id
        self.host = host
        self.pid = pid
        self.since = since


class SessionFormatTooNew(SessionError):
    """The log was written by a later version; it is left untouched.

    Attributes: session_id, format.
    """

    def __init__(self, session_id: str, number: int) -> None:
        super().__init__(
            f"session {session_id} needs a version of Leadline that reads format {number} or later; "
            "upgrade, or open it with the version that wrote it"
        )
        self.session_id = session_id
        self.format = number


class SessionUnreadable(SessionError):
    """The header of the log cannot be used, so that it cannot be written; reading shows what is left."""


class SessionNotContinuable(SessionError):
    """The log can be read, but not go on: something in it shapes the window and cannot be understood.

    Attributes: session_id, type, seq (of the event; None when it is the log itself).
    """

    def __init__(
        self, session_id: str, missing: str, *, type_: str | None = None, seq: int | None = None
    ) -> None:
        super().__init__(f"session {session_id} can be read but not continued: {missing}")
        self.session_id = session_id
        self.type = type_
        self.seq = seq
        self.missing = missing


class ForkRefused(SessionError):
    """A fork was asked for at a place that is not in the log, or inside an open turn."""


class EventUndecodable(SessionError):
    """The data of a line does not fit the event type that was asked for."""


class BlobError(LeadlineError):
    """The root of what can go wrong with blobs."""


class BlobMissing(BlobError):
    """No bytes are stored under the hash."""


class BlobDamaged(BlobError):
    """The stored bytes do not have the hash that they are stored under."""


class BlobWriteFailed(BlobError):
    """The disk refused; nothing is stored under the hash that was not there before."""


class BlobListFailed(BlobError):
    """The store cannot tell what it holds."""


def refused_by_disk(error: BaseException) -> bool:
    """Whether `error`, or one of those that it gathers, says that something could not be written down."""
    if isinstance(error, BaseExceptionGroup):
        return any(
            refused_by_disk(one) for one in cast("BaseExceptionGroup[BaseException]", error).exceptions
        )
    return isinstance(error, SessionWriteFailed | BlobWriteFailed)


def _shown(since: float | None) -> str:
    """A time in ISO form, UTC; it may come from a file that somebody altered."""
    try:
        return (
            "an unknown time"
            if since is None
            else datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
        )
    except (ValueError, OverflowError, OSError):
        return "an unknown time"
