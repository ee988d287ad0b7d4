"""Keeps what an agent's requests begin with frozen until registrations change it."""

from __future__ import annotations

from typing import Protocol

from leadline.core.llm.request import ToolSchema
from leadline.core.prompt.sections import Assembled, PromptSections
from leadline.kernel.scope import Scope


class ToolSource(Protocol):
    """Where the schemas of a scope come from; the tool registry is one."""

    @property
    def version(self) -> int: ...
    def schemas(self, scope: Scope | None) -> tuple[ToolSchema, ...]: ...


class Epoch:
    """One agent's frozen prompt. Asking is cheap: two counters are compared.

    A change elsewhere, such as in another agent's scope, moves the counters and no byte: the very same
    value is given again then.
    """

    def __init__(self, prompt: PromptSections, tools: ToolSource, scope: Scope | None) -> None:
        self._prompt = prompt
        self._tools = tools
        self._scope = scope
        self._versions: tuple[int, int] | None = None
        self._current: Assembled | None = None
        self.number = 0
        """How many different prompts there have been; grows only when bytes change."""

    def current(self) -> Assembled:
        """What the next request begins with.

        Raises:
            UnknownVariable: a section cannot be rendered in this scope.
        """
        versions = (self._prompt.version, self._tools.version)
        if self._current is not None and versions == self._versions:
            return self._current
        made = self._prompt.assemble(self._scope, self._tools.schemas(self._scope))
        self._versions = versions
        if self._current is None or made.digest != self._current.digest:
            self._current = made
            self.number += 1
        return self._current
