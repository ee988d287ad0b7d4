"""What is put to the test: something that is done once from the start, and can be taken up after a crash."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias, cast, runtime_checkable

from leadline.kernel.errors import LeadlineError
from leadline.testing.faults.images import Image

Note: TypeAlias = Callable[[str, object], None]
"""Writes down a name and a plain value between the operations on the disk."""


@runtime_checkable
class Work(Protocol):
    """Something that a crash may not spoil."""

    async def start(self, folder: Path, note: Note) -> object:
        """Do all of it, with its files in the empty folder `folder`; what it came to, as plain values.

        `note` writes down what was promised to somebody (an answer paid for, an append that returned), so
        that `resume` can hold the files of a crash against it.
        """
        ...

    async def resume(self, folder: Path, image: Image) -> object:
        """Take up what a crash left in `folder`, as a new process would, and finish it; what it came to.

        `image` tells the crash and what had been noted before it. Where nothing was begun yet, begin.

        Raises:
            Exception: a promise was not kept.
        """
        ...


class NoSuchWork(LeadlineError):
    """The name of a work leads to none."""


def find_work(name: str) -> Work:
    """The work that is named: `package.module:attribute`, or `path/to/file.py:attribute`.

    Raises:
        NoSuchWork: there is nothing of that name, or it is no work.
    """
    place, _, attribute = name.rpartition(":")
    if not place:
        raise NoSuchWork(f"{name!r} names no attribute; write package.module:attribute")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        found = cast("object", getattr(module, attribute))
    except (ImportError, OSError, AttributeError) as error:
        raise NoSuchWork(f"{name!r} cannot be loaded: {error}; name a module and its attribute") from error
    if not isinstance(found, Work):
        raise NoSuchWork(f"{name!r} is a {type(found).__name__}; a work has the methods start and resume")
    return found


def _from_file(path: Path) -> object:
    name = f"_work_{path.stem}"
    if name in sys.modules and sys.modules[name].__file__ == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
