"""The service that holds the checks of a program: the built-in ones and those that plugins add."""

from __future__ import annotations

from collections.abc import Collection

from leadline.kernel.context import Context
from leadline.kernel.errors import DuplicateName, LeadlineError, did_you_mean
from leadline.kernel.services import Service
from leadline.research.verify.check import Check
from leadline.research.verify.judge import CHECKS


class UnknownCheck(LeadlineError):
    """No check has the name that was asked for."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        super().__init__(f"check {name!r}: there is none of that name{did_you_mean(name, known)}")


class Checks(Service, key="checks"):
    """Every check that a sentence must pass to count as supported, built-in ones first."""

    def __init__(self) -> None:
        self._added: dict[str, Check] = {}
        self._only: list[frozenset[str]] = []

    def register(self, ctx: Context, check: Check) -> None:
        """Add a check for as long as the caller's plugin is mounted. It can only make verdicts stricter.

        Raises:
            DuplicateName: a check of that name is there already.
        """
        if any(one.name == check.name for one in self._every):
            raise DuplicateName(f"check {check.name!r} is already registered; give the new one another name")
        self._added[check.name] = check
        ctx.defer(f"check {check.name}", lambda: self._remove(check.name))

    def restrict(self, ctx: Context, names: Collection[str]) -> None:
        """Run these checks only, for as long as `ctx` lives. Without `wording` nothing can be supported.

        Raises:
            UnknownCheck: one of the names is none.
        """
        known = [one.name for one in self._every]
        for name in names:
            if name not in known:
                raise UnknownCheck(name, known)
        only = frozenset(names)
        self._only.append(only)
        ctx.defer("restriction of checks", lambda: self._only.remove(only))

    def _remove(self, name: str) -> None:
        self._added.pop(name, None)

    @property
    def all(self) -> tuple[Check, ...]:
        """The checks in the order in which they run."""
        return tuple(one for one in self._every if all(one.name in only for only in self._only))

    @property
    def _every(self) -> tuple[Check, ...]:
        return (*CHECKS, *self._added.values())
