"""Rows into fibers: the boot, which fails loudly, and the reload, which is a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from anyio import CancelScope, Lock, get_cancelled_exc_class

from leadline.kernel.context import Context
from leadline.kernel.diagnose import Diagnosis, explain
from leadline.kernel.effects import contained, interrupted, join
from leadline.kernel.errors import BootFailed, ConfigError, ReloadFailed
from leadline.kernel.fiber import Fiber, State
from leadline.kernel.loader.compose import Composition
from leadline.kernel.loader.discover import check_requirement, import_plugin
from leadline.kernel.loader.document import Node, Origin, Ref, Table
from leadline.kernel.loader.interpolate import environment, plain, references
from leadline.kernel.loader.rows import Row
from leadline.kernel.plugin import Mountable, Plugin, Start
from leadline.kernel.services import Service

Resolve = Callable[[str], Mountable]


@dataclass(frozen=True)
class Changes:
    """What a reload did, as ids of rows."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A row, ready to be mounted."""

    row: Row
    plugin: Mountable
    config: object
    parent: str | None

    def same_place(self, other: Entry) -> bool:
        """Whether the fiber of `other` can serve this entry, at most with another config."""
        return (self.plugin, self.parent, self.row.isolate) == (other.plugin, other.parent, other.row.isolate)

    def same_as(self, other: Entry) -> bool:
        """Whether there is nothing to change between the two."""
        return self.same_place(other) and self.config == other.config


@dataclass(frozen=True)
class Broken:
    """Stands in for a plugin that could not be prepared, so that its failure shows like any other."""

    name: str
    error: Exception
    needs: tuple[type[Service], ...] = ()
    wants: tuple[type[Service], ...] = ()
    provides: tuple[type[Service], ...] = ()

    def bind(self, config: object) -> Start:
        raise self.error


@dataclass(frozen=True)
class Referring:
    """A plugin whose config refers to services; it is made when they are there."""

    plugin: Mountable
    config: object
    needs: tuple[type[Service], ...]
    wants: tuple[type[Service], ...]
    row: Row = field(compare=False)
    environ: Mapping[str, str] = field(compare=False)
    definitions: Mapping[str, type[Service]] = field(compare=False)

    @property
    def name(self) -> str:
        return self.plugin.name

    @property
    def provides(self) -> tuple[type[Service], ...]:
        return self.plugin.provides

    def bind(self, config: object) -> Start:
        async def start(ctx: Context) -> None:
            made = plain(self.row.config, self.environ, lambda ref: self._read(ctx, ref))
            await self.plugin.bind(made)(ctx)

        return start

    def _read(self, ctx: Context, ref: Ref) -> object:
        definition = self.definitions.get(ref.service)
        service = ctx.find(definition) if definition is not None else None
        if service is None:
            raise KeyError(f"nothing provides the service {ref.service!r}; give a default")
        if not hasattr(service, ref.attribute):
            raise KeyError(f"the service {ref.service!r} has no {ref.attribute!r}")
        value: object = getattr(service, ref.attribute)
        return value


async def boot(
    ctx: Context,
    composition: Composition,
    *,
    resolve: Resolve = import_plugin,
    environ: Mapping[str, str] | None = None,
) -> Reloader:
    """Mount the enabled rows of `composition` on `ctx`; what is returned can reload them.

    All rows are tried before anything is told. A row that only lacks a service that nothing
    provides does not stop the boot: it is in `Reloader.inactive`, and starts when one appears.

    Raises:
        BootFailed: another enabled row that is not `optional` did not become active; each is told
            with its deepest cause. What did start stays mounted until `ctx` ends.
    """
    reloader = Reloader(ctx, resolve, environ)
    await reloader.start(composition)
    return reloader


class Reloader:
    """The mounted rows of one composition, and their exchange for those of another."""

    def __init__(self, ctx: Context, resolve: Resolve, environ: Mapping[str, str] | None) -> None:
        self.current = Composition()
        """What is mounted."""
        self.fibers: dict[str, Fiber] = {}
        """Row id to fiber, in order of mounting."""
        self._ctx = ctx
        self._resolve = resolve
        self._environ = environ
        self._entries: dict[str, Entry] = {}
        self._lock = Lock()

    @property
    def inactive(self) -> list[Diagnosis]:
        """The enabled rows that are not active now, and why."""
        return [explain(it) for it in self.fibers.values() if it.state is not State.ACTIVE]

    async def start(self, composition: Composition) -> None:
        """The first mounting; see `boot`."""
        await self._converge(self._prepare(composition, strict=False))
        self.current = composition
        if problems := self._problems():
            raise BootFailed(tuple(problems.values()))

    async def reload(self, composition: Composition) -> Changes:
        """Exchange what is mounted for `composition`; only rows that differ are touched.

        Everything new is imported and validated first. If a row then fails to start, or the caller
        is cancelled, the former rows are put back.

        Raises:
            ReloadFailed: it was refused, or undone; `__cause__` or the message tells why.
        """
        outcome: list[Changes | ReloadFailed] = []
        scope = CancelScope()

        async def transaction() -> None:
            async with self._lock:
                try:
                    with scope:
                        outcome.append(await self._exchange(composition))
                except ReloadFailed as error:
                    outcome.append(error)

        # In a task of its own: a reload may unload the very plugin whose work asked for it. It is
        # carried through then, while any other cancellation of the caller undoes it.
        task = self._ctx.spawn(transaction, name="reload")
        try:
            await task.wait()
        except get_cancelled_exc_class():
            if not interrupted():
                scope.cancel()
                await join(task.ended)
            raise
        if not outcome:
            raise ReloadFailed("the reload was stopped before its end") from task.error
        if isinstance(outcome[0], ReloadFailed):
            raise outcome[0]
        return outcome[0]

    async def _exchange(self, composition: Composition) -> Changes:
        former = dict(self._entries)
        try:
            entries = self._prepare(composition, strict=True)
        except ConfigError as error:
            raise ReloadFailed(f"reload refused, nothing was changed: {error}") from error
        told = self._problems()
        try:
            await self._converge(entries)
            if problems := [why for key, why in self._problems().items() if key not in told]:
                raise ReloadFailed("reload undone, the former rows run again:\n  " + "\n  ".join(problems))
        except BaseException:
            if not self._ctx.effects.closed:
                with CancelScope(shield=True):
                    await self._converge(former)
            raise
        self.current = composition
        return Changes(
            added=tuple(key for key in entries if key not in former),
            removed=tuple(key for key in former if key not in entries),
            changed=tuple(
                key for key, it in entries.items() if key in former and not it.same_as(former[key])
            ),
        )

    def _prepare(self, composition: Composition, *, strict: bool) -> dict[str, Entry]:
        environ = environment() if self._environ is None else self._environ
        parents = {child.id: row.id for row in composition.enabled() for child in row.rows or ()}
        plugins: dict[str, Mountable] = {}
        for row in composition.enabled():
            try:
                plugins[row.id] = _group(row) if row.rows is not None else self._load(row)
            except BaseException as raised:  # noqa: BLE001 - a row's failure is its own; boot and diagnose() tell it
                plugins[row.id] = _broken(row, contained(raised), strict)
        known = {it.definition for it in self._ctx.kernel.provisions}
        known |= {
            it for plugin in plugins.values() for it in (*plugin.provides, *plugin.needs, *plugin.wants)
        }
        definitions = {it.service_key: it for it in known}
        return {
            row.id: _entry(row, plugins[row.id], parents.get(row.id), environ, definitions, strict)
            for row in composition.enabled()
        }

    def _load(self, row: Row) -> Mountable:
        plugin = self._resolve(row.plugin)
        for requirement in filter(None, (row.requires, getattr(plugin, "requires", ""))):
            check_requirement(requirement)
        return plugin

    async def _converge(self, entries: Mapping[str, Entry]) -> None:
        """Make what is mounted equal to `entries`."""
        kept: dict[str, Entry] = {}
        for key, entry in entries.items():
            present = self._entries.get(key)
            above = entry.parent is None or entry.parent in kept
            if present is not None and above and entry.same_place(present):
                kept[key] = entry
        for key in reversed(tuple(self.fibers)):
            if key not in kept:
                del self._entries[key]
                await self.fibers.pop(key).dispose()
        for key, entry in kept.items():
            present, self._entries[key] = self._entries[key], entry
            if not entry.same_as(present):
                await self.fibers[key].update(entry.config)
        await self._mount([it for it in entries.values() if it.row.id not in self.fibers])
        await self._ctx.settled()

    async def _mount(self, entries: list[Entry]) -> None:
        for entry in _providers_first(entries):
            ctx = self._ctx if entry.parent is None else self.fibers[entry.parent].context
            self._entries[entry.row.id] = entry
            self.fibers[entry.row.id] = fiber = ctx.attach(
                entry.plugin, entry.config, id=entry.row.id, isolate=entry.row.isolate
            )
            await fiber.settled()

    def _problems(self) -> dict[str, str]:
        """Row id to why it is not active, where that is neither allowed nor a mere absence."""
        problems: dict[str, str] = {}
        for key, fiber in self.fibers.items():
            row, why = self._entries[key].row, explain(fiber)
            if fiber.state is not State.ACTIVE and not row.optional and not why.missing:
                problems[key] = f"{_origin(row, fiber.error)}: {why}"
        return problems


def _origin(row: Row, error: BaseException | None) -> Origin:
    """Where the value that an error is about was written; where that is not known, the row."""
    node: Node = row.config
    for part in error.key if isinstance(error, ConfigError) else ():
        if not isinstance(node, Table) or str(part) not in node.content:
            break
        node = node.content[str(part)]
    return node.origin if node is not row.config else row.origin


def _group(row: Row) -> Plugin[None]:
    return Plugin(row.id, _no_work)


async def _no_work(ctx: Context, config: None) -> None:
    """A group only holds its rows."""


def _broken(row: Row, error: Exception, strict: bool) -> Broken:
    named = error
    if not (isinstance(error, ConfigError) and error.origin):
        named = ConfigError(str(error), origin=str(_origin(row, error)))
    if strict:
        raise named from error
    return Broken(row.id, named)


def _entry(
    row: Row,
    plugin: Mountable,
    parent: str | None,
    environ: Mapping[str, str],
    definitions: Mapping[str, type[Service]],
    strict: bool,
) -> Entry:
    try:
        for value, ref in references(row.config):
            if ref.default is None and ref.service not in definitions:
                raise ConfigError(
                    f"!ref {ref.service}.{ref.attribute}: nothing here provides the service {ref.service!r}; "
                    "mount a plugin that does, or give a default",
                    origin=str(value.origin),
                )
        config = plain(row.config, environ, lambda ref: ref)
        if any(references(row.config)):
            refs = [ref for _, ref in references(row.config) if ref.service in definitions]
            needs = (*plugin.needs, *(definitions[ref.service] for ref in refs if ref.default is None))
            wants = (*plugin.wants, *(definitions[ref.service] for ref in refs if ref.default is not None))
            plugin = Referring(plugin, config, needs, wants, row, environ, definitions)
            return Entry(row, plugin, config, parent)
        if strict:
            plugin.bind(config)
    except BaseException as raised:  # noqa: BLE001 - a row's failure is its own; boot and diagnose() tell it
        return Entry(row, _broken(row, contained(raised), strict), None, parent)
    return Entry(row, plugin, config, parent)


def _providers_first(entries: Iterable[Entry]) -> list[Entry]:
    """A stable order in which a provider comes before those who use it, so that few start twice.

    Groups come before what is in them, since a child is mounted on its group.
    """
    left, ordered = list(entries), list[Entry]()
    while left:
        ready = [it for it in left if not any(_waits(it, other) for other in left)]
        # In a ring the first in line goes first, but never before its own group.
        ready = ready or [it for it in left if all(it.parent != other.row.id for other in left)]
        ordered.append(ready[0])
        left.remove(ready[0])
    return ordered


def _waits(entry: Entry, other: Entry) -> bool:
    used = {*entry.plugin.needs, *entry.plugin.wants}
    return entry.parent == other.row.id or (entry is not other and not used.isdisjoint(other.plugin.provides))
