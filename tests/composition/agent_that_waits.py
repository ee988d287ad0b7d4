"""A program whose tool needs somebody's yes, and in which nobody answers: `python FILE BASE_URL FOLDER`.

Prints the id of its session. `FOLDER/asked` and `FOLDER/done` get a line for each question and each call.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from leadline import Leadline
from leadline.core.agent.agents import Agents
from leadline.core.agent.spec import AgentSpec
from leadline.core.tools.approval import ApprovalDecision, ApprovalRequest, Approvals
from leadline.core.tools.policy import Ask, PreExecute
from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin


@asynccontextmanager
async def program(base_url: str, folder: Path, decision: ApprovalDecision | None) -> AsyncGenerator[Leadline]:
    """The program, running, with somebody who decides; None: who never does."""
    app = Leadline(model="local/fake", base_url=base_url)

    @app.tool(side_effects={"writes"})
    async def charge(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Charge somebody for something."""
        note(folder / "done", what)
        return f"charged {what}"

    class Somebody(Approvals):
        async def decide(self, request: ApprovalRequest) -> ApprovalDecision:
            note(folder / "asked", request.call_id)
            if decision is None:
                await anyio.sleep_forever()
            assert decision is not None
            return decision

    async def ask(signal: PreExecute) -> Ask:
        return Ask("it costs money")

    async def apply(ctx: Context, config: None) -> None:
        ctx.provide(Approvals, Somebody())
        ctx.on(PreExecute, ask)

    async with app:
        await app.ctx.mount(Plugin("somebody", apply, provides=(Approvals,)))
        yield app


def note(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


async def main(base_url: str, folder: Path) -> None:
    """Ask for one turn."""
    async with program(base_url, folder, None) as app:
        agent = await app.ctx.get(Agents).create(AgentSpec())
        print(agent.id, flush=True)
        agent.followup("charge them")
        await agent.when_idle()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], Path(sys.argv[2]))
