"""What can go wrong before a child starts; what goes wrong inside one is its result.

LeadlineError
└── SubagentError
    ├── SubagentDepthError        the child would be deeper than allowed
    ├── OutputSchemaError         the wanted output cannot be asked for; lists all violations
    ├── DuplicateDriver           the name is taken
    ├── UnknownDriver             no driver of that name
    ├── UnsupportedCapability     the driver cannot do what the request needs
    └── SubagentNotStarted        the child's session or setup failed; nothing is left behind
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.kernel.errors import LeadlineError


class SubagentError(LeadlineError):
    """Root of what delegation refuses."""


class SubagentDepthError(SubagentError):
    """The child would stand deeper in the line of delegation than the request allows."""

    def __init__(self, attempted: int, maximum: int) -> None:
        """`attempted` is the depth the child would have, a root agent has 0."""
        super().__init__(
            f"a subagent at depth {attempted} is not allowed: the limit is {maximum}. "
            "Do the work in this agent, or raise max_depth."
        )
        self.attempted = attempted
        self.maximum = maximum


class OutputSchemaError(SubagentError):
    """The output schema is not one that a child can be held to."""

    def __init__(self, violations: Sequence[str]) -> None:
        """`violations` name the place inside the schema and what is wrong there."""
        super().__init__("the output schema cannot be used: " + "; ".join(violations))
        self.violations = tuple(violations)


class DuplicateDriver(SubagentError):
    """A subagent driver of that name is registered already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"a subagent driver {name!r} is registered already; give one of them another name")
        self.name = name


class UnknownDriver(SubagentError):
    """No subagent driver is registered under the name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        """`known` are the names that would work."""
        super().__init__(f"there is no subagent driver {name!r}; there are: {', '.join(known) or 'none'}")
        self.name = name
        self.known = tuple(known)


class UnsupportedCapability(SubagentError):
    """The driver cannot do something the request asks for, so nothing was started."""

    def __init__(self, driver: str, capabilities: Sequence[str]) -> None:
        """`capabilities` are those that the driver lacks."""
        super().__init__(
            f"the subagent driver {driver!r} cannot do: {', '.join(capabilities)}. "
            "Leave them out of the request or choose another driver."
        )
        self.driver = driver
        self.capabilities = tuple(capabilities)


class SubagentNotStarted(SubagentError):
    """The child could not be made; what was made of it has been undone."""

    def __init__(self, label: str, cause: BaseException) -> None:
        """`label` is the child's label, `cause` what failed."""
        super().__init__(f"the subagent {label!r} could not be started: {cause}")
        self.label = label
