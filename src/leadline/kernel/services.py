"""Services: the type is the key, a realm is the room it is looked up in."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, ClassVar, TypeVar

from leadline.kernel.errors import DuplicateService, KernelError, ServiceUnavailable

if TYPE_CHECKING:
    from leadline.kernel.fiber import Fiber

S = TypeVar("S", bound="Service")
Realms = Mapping[str, Hashable]
"""Which realm a service key is looked up in; a key that is absent means the realm of all."""


class Service:
    """The base of every service definition: `class Clock(Service, key="clock")`.

    A definition is asked for (`ctx.get(Clock)`) and provided (`ctx.provide(Clock, value)`) by its
    class. A subclass without a key is an implementation of the definition above it.
    """

    service_key: ClassVar[str] = ""
    """The short name that configuration, documentation and reports use."""

    definition: ClassVar[type[Service]]
    """The class that declared the key."""

    def __init_subclass__(cls, *, key: str | None = None, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if key is not None:
            cls.service_key = key
            cls.definition = cls


def definition_of(cls: type[Service]) -> type[Service]:
    """The definition that `cls` declares or implements.

    Raises:
        KernelError: neither `cls` nor a base of it declares a key.
    """
    if not cls.service_key:
        raise KernelError(
            f"{cls.__name__} has no service key; declare it as class {cls.__name__}(Service, key=...)"
        )
    return cls.definition


@dataclass(eq=False)
class Provision:
    """One value that a fiber provides."""

    definition: type[Service]
    value: Service
    fiber: Fiber
    realm: Hashable
    uid: int
    withdrawing: bool = field(default=False)

    def usable_by(self, asker: Fiber) -> bool:
        """Whether `asker` may have it: it is what the asker was started with, or its provider is
        active, or the asker belongs to the provider."""
        return (
            (self.fiber.offers and not self.withdrawing)
            or asker.bound.get(self.definition) is self
            or asker.is_within(self.fiber)
        )


class Provisions:
    """The kernel's table of what is provided, by definition and realm."""

    def __init__(self) -> None:
        self._slots: dict[tuple[type[Service], Hashable], Provision] = {}
        self._uids = count(1)

    def __iter__(self) -> Iterator[Provision]:
        return iter(tuple(self._slots.values()))

    def at(self, definition: type[Service], realms: Realms) -> Provision | None:
        """What is provided there, usable or not."""
        return self._slots.get((definition, realms.get(definition.service_key)))

    def add(self, cls: type[Service], value: Service, fiber: Fiber) -> Provision:
        """Fill a slot.

        Raises:
            DuplicateService: the slot is taken; names both providers.
        """
        definition = definition_of(cls)
        present = self.at(definition, fiber.realms)
        if present is not None:
            raise DuplicateService(
                f"service {definition.service_key!r} is already provided by {present.fiber.path}, "
                f"so {fiber.path} cannot provide it too; disable one of the two or isolate it"
            )
        realm = fiber.realms.get(definition.service_key)
        provision = Provision(definition, value, fiber, realm, next(self._uids))
        self._slots[definition, realm] = provision
        return provision

    def remove(self, provision: Provision) -> None:
        self._slots.pop((provision.definition, provision.realm), None)

    def find(self, cls: type[S], asker: Fiber) -> S | None:
        """The value that `asker` may use, or None."""
        definition = definition_of(cls)
        provision = asker.bound.get(definition) or self.at(definition, asker.realms)
        if provision is None or not provision.usable_by(asker):
            return None
        if not isinstance(provision.value, cls):
            raise ServiceUnavailable(
                f"{asker.path} asks for {cls.__name__}, but {provision.fiber.path} provides "
                f"{definition.service_key!r} as {type(provision.value).__name__}; ask for {definition.__name__}",
                key=definition.service_key,
                asker=asker.path,
            )
        return provision.value
