"""Whose turn it is among those who wait: by priority, in turn between groups, first come within a group."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from leadline.core.spend.lines import Ask

PATIENCE = 8
"""Turns that go to higher priorities before a lower one that waits gets one."""


class Asking(Protocol):
    """Somebody who waits."""

    @property
    def ask(self) -> Ask: ...


W = TypeVar("W", bound=Asking)


class _Level(Generic[W]):
    """Those of one priority: groups in the order of their turns, and in each the first first."""

    __slots__ = ("groups", "passed_over")

    def __init__(self) -> None:
        self.groups: OrderedDict[str, OrderedDict[W, None]] = OrderedDict()
        self.passed_over = 0


class Order(Generic[W]):
    """Everybody who waits in one line.

    A group that had its turn goes behind the others of its priority, so that one with a thousand calls
    holds up one with a single call by one turn. A priority is passed over at most `PATIENCE` times in
    a row, and then as often as there are priorities that wait as long.
    """

    def __init__(self) -> None:
        self._levels: dict[int, _Level[W]] = {}
        self._size = 0
        self._adults = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[W]:
        """Everybody, level by level; the order of turns only within a group."""
        for priority in sorted(self._levels, reverse=True):
            for members in tuple(self._levels[priority].groups.values()):
                yield from tuple(members)

    @property
    def children(self) -> int:
        """How many of them are made for a child."""
        return self._size - self._adults

    def add(self, one: W) -> None:
        """Let `one` stand behind all of its group."""
        level = self._levels.get(one.ask.priority)
        if level is None:
            level = self._levels[one.ask.priority] = _Level()
        members = level.groups.get(one.ask.group)
        if members is None:
            members = level.groups[one.ask.group] = OrderedDict()
        members[one] = None
        self._size += 1
        self._adults += not one.ask.child

    def remove(self, one: W) -> None:
        """Let `one` go without a turn; does nothing where it does not wait."""
        level = self._levels.get(one.ask.priority)
        members = level.groups.get(one.ask.group) if level is not None else None
        if level is None or members is None or one not in members:
            return
        del members[one]
        self._size -= 1
        self._adults -= not one.ask.child
        if not members:
            del level.groups[one.ask.group]
            if not level.groups:
                del self._levels[one.ask.priority]

    def next(self, *, children: bool = True) -> W | None:
        """Whose turn it is; without `children`: among those that are not made for a child."""
        if not self._size or not (children or self._adults):
            return None
        for priority in self._priorities():
            for members in self._levels[priority].groups.values():
                for one in members:
                    if children or not one.ask.child:
                        return one
        return None

    def take(self, one: W) -> None:
        """Give `one` its turn."""
        chosen = one.ask.priority
        for priority, level in self._levels.items():
            if priority < chosen:
                level.passed_over += 1
        level = self._levels[chosen]
        level.passed_over = 0
        self.remove(one)
        if one.ask.group in level.groups:
            level.groups.move_to_end(one.ask.group)

    def ahead(self, one: W) -> int:
        """How many go before `one`, as far as priorities and turns tell."""
        count = 0
        for priority, level in self._levels.items():
            if priority > one.ask.priority:
                count += sum(map(len, level.groups.values()))
        level = self._levels.get(one.ask.priority)
        if level is None or one not in level.groups.get(one.ask.group, ()):
            return 0
        place = next(at for at, other in enumerate(level.groups[one.ask.group]) if other is one)
        before = True
        for group, members in level.groups.items():
            if group == one.ask.group:
                count, before = count + place, False
            else:
                count += min(len(members), place + before)
        return count

    def _priorities(self) -> list[int]:
        """The priorities in the order in which they are asked for somebody."""
        if len(self._levels) == 1:
            return list(self._levels)
        found = sorted(self._levels, reverse=True)
        waited = [one for one in found if self._levels[one].passed_over >= PATIENCE]
        if waited:
            first = max(waited, key=lambda one: self._levels[one].passed_over)
            found.remove(first)
            found.insert(0, first)
        return found
