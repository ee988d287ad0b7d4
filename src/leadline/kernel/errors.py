"""The errors that Leadline raises: one root, one tree.

LeadlineError
└── KernelError
    ├── FiberInactive           a registration on something that is going or gone
    ├── ServiceUnavailable      `get` found no provider that may be used now
    ├── DuplicateService        two providers of one service in one realm
    ├── DuplicateName           two values of one name in one layer of a registry
    ├── UnknownName             a restriction names what is not there
    ├── CallNextTwice           middleware continued more than once, or too late
    ├── ListenerGone            a listener was unloaded while its call was in flight
    ├── PluginFailed            a plugin broke its own declaration, or raised what would end the program
    ├── ConfigError             a configuration value, row or patch that cannot be used
    ├── BootFailed              enabled rows that did not become active
    └── ReloadFailed            a reload that was refused or rolled back

Every other package derives its errors from `LeadlineError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class LeadlineError(Exception):
    """The root of every error this project raises on purpose."""


class KernelError(LeadlineError):
    """The root of the plugin container's errors."""


class FiberInactive(KernelError):
    """A registration was tried on a context whose owner is unloading or disposed."""


class ServiceUnavailable(KernelError):
    """No provider of a service may be used by the one who asks.

    Attributes: key (the service's short name), asker (the path of the fiber that asked).
    """

    def __init__(self, message: str, *, key: str, asker: str) -> None:
        super().__init__(message)
        self.key = key
        self.asker = asker


class DuplicateService(KernelError):
    """A service already has a provider in this realm; the message names both."""


class DuplicateName(KernelError):
    """A name is already taken in this layer of a registry."""


class UnknownName(KernelError):
    """A name is not known where it is used; the message gives the nearest one."""


class CallNextTwice(KernelError):
    """A listener called `call_next` a second time, or after it had returned."""


class ListenerGone(KernelError):
    """A call in flight was ended because the listener's plugin was unloaded."""


class PluginFailed(KernelError):
    """A plugin did not keep what it declares, or raised what would end the program, such as SystemExit."""


class ConfigError(KernelError):
    """A configuration that cannot be used: what, where (`origin`, as `file:line`) and the next step.

    Where the origin is not known, `key` may say at which key of the configuration it is; the loader knows the rest.
    """

    def __init__(self, message: str, *, origin: str | None = None, key: Sequence[str | int] = ()) -> None:
        super().__init__(f"{origin}: {message}" if origin else message)
        self.origin = origin
        self.key = tuple(key)


class BootFailed(KernelError):
    """One or more enabled rows did not become active; `causes` has a line for each."""

    def __init__(self, causes: Sequence[str]) -> None:
        super().__init__("boot failed:\n" + "\n".join(f"  {cause}" for cause in causes))
        self.causes = tuple(causes)


class ReloadFailed(KernelError):
    """A new composition could not be put in place; what ran before runs again."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint to append to a message: the nearest known name, else what there is, else nothing."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""
