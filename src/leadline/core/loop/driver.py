"""The loop: runs the turns of every agent with the services of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from leadline.core.agent.driver import Abort, Driver
from leadline.core.clock import Clock
from leadline.core.ids import Ids
from leadline.core.llm.adapter import Models
from leadline.core.loop.cut import cut_turn, stopped_midway
from leadline.core.loop.thread import Thread
from leadline.core.loop.turn import Turn
from leadline.core.prompt.sections import PromptSections
from leadline.core.session.repair import repairs
from leadline.core.spend.meter import Meter
from leadline.core.tools.pipeline import ToolPipeline
from leadline.core.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from leadline.core.agent.agent import Agent
    from leadline.core.loop.config import LoopConfig
    from leadline.kernel.context import Context


class Loop(Driver):
    """Turns of agents, as `turn.py` describes them."""

    def __init__(self, ctx: Context, config: LoopConfig) -> None:
        self.config = config
        self.retry = config.retry.policy()
        self.clock = ctx.get(Clock)
        self.ids = ctx.get(Ids)
        self.models = ctx.get(Models)
        self.tools = ctx.get(ToolRegistry)
        self.pipeline = ctx.get(ToolPipeline)
        self.prompt = ctx.get(PromptSections)
        self.meter = ctx.get(Meter)
        self._listeners = ctx.kernel.listeners.table
        self._threads: WeakKeyDictionary[Agent, Thread] = WeakKeyDictionary()

    async def run_turn(self, agent: Agent, abort: Abort, *, proceed: bool = False) -> None:
        """One turn of `agent`; see `Driver.run_turn`."""
        thread = self._threads.get(agent)
        if thread is None:
            thread = self._threads[agent] = Thread(agent, self.prompt, self.tools)
        if proceed and stopped_midway(agent.session):
            agent.session.append_all(repairs(agent.session))  # what its process was about to write
        cut = cut_turn(agent.session) if proceed else None
        try:
            await Turn(self, agent, thread, abort, cut).run(proceed=proceed)
        except BaseException:
            # What the thread takes for logged may not be: it is read from the log again.
            self._threads.pop(agent, None)
            raise

    def heard(self, signal: type[object]) -> bool:
        """Whether anyone at all listens to a signal; what nobody hears is not made."""
        return signal in self._listeners

    def unit(self) -> float:
        """A random number from 0 to 1."""
        return int(self.ids.token(4), 16) / 0xFFFFFFFF
