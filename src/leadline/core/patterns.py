"""Regular expressions that are compiled when they are first used, not when their module is imported.

Compiling all that research reads text with takes as long as starting the rest of the program, and a command that
lists what is stored, or a run that waits for its first answer, needs none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import cast

Flags = int | re.RegexFlag


class Pattern:
    """Stands in for a `re.Pattern[str]` until somebody uses it; made by `lazy_pattern`."""

    def __init__(self, expression: str, flags: Flags) -> None:
        self._expression = expression
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def compile(self) -> re.Pattern[str]:
        """The pattern itself. Safe in a thread."""
        if self._compiled is None:
            self._compiled = re.compile(self._expression, self._flags)
        return self._compiled

    def __getattr__(self, name: str) -> object:
        # Asked only for what is not there yet: from the second use on, `search` and the like are those of the
        # compiled pattern itself and cost nothing more.
        if name.startswith("_"):
            raise AttributeError(name)
        found: object = getattr(self.compile(), name)
        setattr(self, name, found)
        return found


def lazy_pattern(expression: str, flags: Flags = 0) -> re.Pattern[str]:
    """What `re.compile` makes of the expression, made at the first use of one of its methods.

    For patterns at the level of a module. A bad expression is told at the first use; the tests use each once.
    It can be used in every way but one: functions of `re` do not take it (write `X.sub(...)`, not `re.sub(X, ...)`).
    """
    return cast("re.Pattern[str]", Pattern(expression, flags))


def compile_patterns(module: ModuleType) -> int:
    """Compile what stands at the level of a module, by itself or in tuples; returns how many there are.

    Safe in a thread.
    """
    found = list(_patterns(tuple(vars(module).values())))
    for one in found:
        one.compile()
    return len(found)


def _patterns(values: Iterable[object]) -> Iterator[Pattern]:
    for value in values:
        if isinstance(value, Pattern):
            yield value
        elif isinstance(value, tuple):
            yield from _patterns(cast("tuple[object, ...]", value))
