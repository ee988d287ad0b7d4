"""The errors of prompt assembly.

LeadlineError
└── PromptError
    ├── BadTemplate          a section's text is malformed
    └── UnknownVariable      a section uses a variable that has no value where it is assembled
"""

from __future__ import annotations

from leadline.kernel.errors import LeadlineError


class PromptError(LeadlineError):
    """The root of what is wrong with a prompt's parts."""


class BadTemplate(PromptError):
    """A text holds something that only looks like a variable."""


class UnknownVariable(PromptError):
    """A variable is not registered where a section that uses it is assembled, or has no value there."""
