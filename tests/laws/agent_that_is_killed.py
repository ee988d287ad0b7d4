"""A program with a tool that has a side effect and does not survive the first: `python FILE BASE_URL EFFECTS`.

Prints the id of its session.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec


def program(base_url: str, effects: Path) -> Leadline:
    """The program, not yet running. Its tool writes a line to `effects`, and kills the process where it is the first."""
    app = Leadline(model="local/fake", base_url=base_url)

    @app.tool
    async def charge(what: str) -> str:
        """Charge somebody for something."""
        with effects.open("a") as file:
            first = file.tell() == 0
            file.write(f"{what}\n")
            file.flush()
            os.fsync(file.fileno())
        if first:
            os.kill(os.getpid(), signal.SIGKILL)
        return "charged"

    return app


async def main(base_url: str, effects: Path) -> None:
    """Ask for one turn."""
    async with program(base_url, effects) as app:
        agent = await app.ctx.get(Agents).create(AgentSpec())
        print(agent.id, flush=True)
        agent.followup("charge them")
        await agent.when_idle()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], Path(sys.argv[2]))
