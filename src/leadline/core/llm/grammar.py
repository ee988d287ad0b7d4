"""The grammar of a stream: deltas and reports of usage, then one finish, then nothing."""

from __future__ import annotations

from leadline.core.llm.stream import Finish, StreamEvent, TextDelta, ToolCallDelta

_FAILED = ("error", "incomplete")


class StreamGrammar:
    """Holds one stream to the grammar, event by event."""

    def __init__(self) -> None:
        self._finish: Finish | None = None
        self._called = False

    def event(self, event: StreamEvent) -> str | None:
        """What is wrong with the next event; None where nothing is."""
        if self._finish is not None:
            return f"{type(event).__name__} comes behind the finish {self._finish.state!r}"
        match event:
            case Finish():
                self._finish = event
                return self._ending(event)
            case ToolCallDelta():
                self._called = True
            case TextDelta() if not event.text:
                return "a text delta without text"
            case _:
                pass
        return None

    def _ending(self, finish: Finish) -> str | None:
        if finish.state in _FAILED and finish.failure is None:
            return f"the finish {finish.state!r} does not say what failed"
        if finish.state == "done" and finish.failure is not None:
            return f"the finish 'done' names a failure: {finish.failure.code}"
        return None

    def closed(self) -> str | None:
        """What is wrong with a stream that ends here by itself; None where nothing is."""
        return None if self._finish is not None else "it ends without a finish"
