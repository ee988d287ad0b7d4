"""The errors that tools raise; what goes wrong in one call is its result, not an error.

LeadlineError
└── ToolError
    ├── BadToolSpec       a definition that no model could use
    └── NestedCallError   a tool body called another tool where that is impossible
"""

from __future__ import annotations

from leadline.kernel.errors import LeadlineError


class ToolError(LeadlineError):
    """The root of what is wrong with a tool itself."""


class BadToolSpec(ToolError):
    """A tool cannot be used as it is defined.

    Attributes: tool (its name as given).
    """

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"tool {tool!r}: {problem}")
        self.tool = tool


class NestedCallError(ToolError):
    """`call.invoke` was used on an invocation that no pipeline runs."""
