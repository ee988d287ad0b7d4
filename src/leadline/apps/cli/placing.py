"""Where a model is reached that was named on the command line: for hints, and for going on with a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from leadline.apps.cli.exits import Exit, Quit
from leadline.apps.cli.running import booted, stored_in
from leadline.kernel.errors import LeadlineError
from leadline.research.events import Started


def repeated(model: str | None, base_url: str | None) -> str:
    """The options that have to be given again to reach the model, to follow a command; empty where none has."""
    if not base_url or not model:
        return ""
    return f" --model {shlex.quote(model)} --base-url {shlex.quote(base_url)}"


async def placed(session_id: str, patches: Sequence[Path]) -> tuple[str | None, str | None]:
    """The model of a run and its address, where it was started with one on the command line.

    An address that leaves this machine is not taken from a log, which somebody else may have written: what is sent
    there, a key among it, is for the person to decide.

    Raises:
        Quit: its model was reached at such an address.
    """
    from leadline.research.engine.interrupted import Placed  # of runs alone: agents start without

    async with booted(stored_in(patches)) as app:
        try:
            session = await app.session(session_id)
        except LeadlineError:
            return None, None  # it may be in the store of a profile; who looks there says what is wrong
        place, started = session.last(Placed), session.last(Started)
        if place is None or started is None or not place.base_url:
            return None, None
        if not on_this_machine(place.base_url):
            raise Quit(
                Exit.USAGE,
                f"run {session.id} reached {started.model} at {place.base_url}; if that is still right, go on with: "
                f"leadline resume {session.id}{repeated(started.model, place.base_url)}",
            )
        return started.model, place.base_url


def on_this_machine(url: str) -> bool:
    """Whether an address is one of this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
