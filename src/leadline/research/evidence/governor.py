"""The bound on one unit's source calls, held when a call is made rather than asked for in a prompt."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from leadline.core.llm.jsonvalue import JsonValue

SEARCH = "corpus_search"
READ = "read"
SOURCE_TOOLS = frozenset({SEARCH, READ})
USABLE = frozenset({"ok", "partial"})


class SourceGovernor:
    """Counts the source calls of one unit and says which call may not be made.

    A unit may make `calls` source calls. After that it may still make `recovery_reads` reads of a document
    that an earlier search returned and that was not read yet, but only when a read of this unit failed.
    A call with the same tool and arguments as an earlier one is refused and costs nothing.
    """

    def __init__(self, calls: int, recovery_reads: int) -> None:
        self._left = calls
        self._calls = calls
        self._recovery_left = recovery_reads
        self._made: set[str] = set()
        self._returned: set[str] = set()
        self._read: set[str] = set()
        self._failed_read = False

    def refusal(self, tool: str, arguments: Mapping[str, JsonValue]) -> str | None:
        """Why this call may not be made; None admits it and counts it."""
        if tool not in SOURCE_TOOLS:
            return None
        key = f"{tool} {msgspec.json.encode(dict(sorted(arguments.items()))).decode()}"
        if key in self._made:
            return "The same call was already made in this unit; its result is above. Change the arguments or go on."
        if self._left > 0:
            self._left -= 1
        elif self._is_recovery(tool, arguments):
            self._recovery_left -= 1
        else:
            return (
                f"All {self._calls} source calls of this unit are used. Record the evidence you have and finish; "
                "name what is missing under unresolved."
            )
        self._made.add(key)
        return None

    def observe(self, tool: str, value: Mapping[str, JsonValue]) -> None:
        """Take note of what a source call returned."""
        if tool == SEARCH:
            hits = value.get("hits")
            if isinstance(hits, list):
                self._returned.update(
                    str(hit["source"]) for hit in hits if isinstance(hit, dict) and "source" in hit
                )
        elif tool == READ:
            self._read.add(str(value.get("source", "")))
            if value.get("outcome") not in USABLE:
                self._failed_read = True

    def _is_recovery(self, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        source = str(arguments.get("source", ""))
        return (
            tool == READ
            and self._recovery_left > 0
            and self._failed_read
            and source in self._returned
            and source not in self._read
        )
