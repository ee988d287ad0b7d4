"""Recordings as test data: what a model once said is said again, while the plugins under test do the rest.

    recording = await load_recording(app.ctx.get(SessionStore), "s-...")
    replayed = await replay_agent(app.ctx, recording)
    replayed.check()

Runs of research are replayed by `Leadline.replay`, which composes the same plugins a second time; `check_run` says of
its outcome what `check` says here. No request leaves the machine in either case.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from leadline.core.agent.agent import Agent
from leadline.core.agent.agents import Agents
from leadline.core.agent.signals import Enter, PreStep, StepDecision, TurnStopping
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import UserMessage
from leadline.core.session.events import AssistantSaid, RequestHeader, ToolAnswered, TurnEnd, UserEntered
from leadline.core.session.log import Session
from leadline.kernel.context import Context
from leadline.research.replay.differences import PartDifference
from leadline.research.replay.player import AskedRequest, Player, UnaskedRequest
from leadline.research.replay.recording import RecordedSession, load_recording
from leadline.research.replay.replay import Replayed
from leadline.research.replay.told import told, told_requests

__all__ = ["AgentReplay", "ToolDifference", "check_run", "load_recording", "replay_agent"]


@dataclass(frozen=True, kw_only=True)
class ToolDifference:
    """A tool that gave the model something else than it did when it was recorded."""

    call_id: str
    name: str
    was: str
    """As the model read it; empty where the call had no result."""
    now: str


@dataclass(frozen=True, kw_only=True)
class AgentReplay:
    """What became of a session that was played again."""

    session: str
    """Id of the new session."""
    asked: tuple[AskedRequest, ...]
    unasked: tuple[UnaskedRequest, ...]
    tools: tuple[ToolDifference, ...]
    """Results of tools that differ, in the order of the calls."""
    text: str
    """The agent's last words."""
    end: TurnEnd | None
    """How its last turn ended."""

    @property
    def differing(self) -> tuple[AskedRequest, ...]:
        """Requests that are not what was recorded, or that the recording has no answer to."""
        return tuple(one for one in self.asked if one.differences or one.answered == "missing")

    def check(self) -> None:
        """That nothing differs.

        Raises:
            AssertionError: something does; says which tools and which parts of which requests.
        """
        lines = [line for one in self.tools for line in _tool(one)]
        lines += told_requests(self.differing, self.unasked)
        if lines:
            raise AssertionError("\n".join(("the session is not what was recorded:", *lines)))


def check_run(replayed: Replayed) -> None:
    """That a run was replayed to the byte, with the very requests that were recorded.

    Raises:
        AssertionError: something differs; says what.
    """
    if not replayed.same:
        raise AssertionError("\n".join(told(replayed)))


def _tool(one: ToolDifference) -> Sequence[str]:
    shown = PartDifference(part="result", was=one.was, now=one.now).shown()
    return (f"{one.name} ({one.call_id}): its result differs", *(f"    {line}" for line in shown))


async def replay_agent(
    ctx: Context, recording: RecordedSession, spec: AgentSpec | None = None
) -> AgentReplay:
    """Let a new agent live through a recorded session: the person's words and the model's are the recorded ones.

    Tools run as they are now. Children that the agent starts are answered from the recorded children.

    Args:
        ctx: the root context of a running composition, as `Leadline.ctx`.
        recording: what `load_recording` gave.
        spec: what the recorded agent was made with beyond the composition, such as a persona.
    """
    spec = spec or AgentSpec()
    header = recording.session.last(RequestHeader)
    if spec.model is None and header is not None:
        spec = replace(spec, model=header.config.model)
    agents = ctx.get(Agents)

    def stopped(session: str) -> None:
        agent = agents.find(session)
        if agent is not None:
            agent.abort()

    player = Player(agents, recording, cut_off=stopped)
    home = ctx.subcontext("replay")
    try:
        player.mount(home)
        agent = await agents.create(replace(spec, label=spec.label or recording.label))
        try:
            player.bind(agent.id)
            await _live_through(agent, _Script(recording.session))
            return _replayed(agent, player, recording.session)
        finally:
            await agent.dispose()
    finally:
        await home.dispose()


class _Script:
    """What a person said in a recorded session, given to a live agent at the same turn and step."""

    def __init__(self, session: Session) -> None:
        self.turn = 0
        """The recorded turn that is lived through now."""
        self._said: dict[int, dict[int, list[UserMessage]]] = {}
        for entered in session.of(UserEntered, session.lifecycle_start):
            if entered.message.source.kind == "user" and entered.turn is not None:
                turn = self._said.setdefault(entered.turn, {})
                turn.setdefault(entered.step or 1, []).append(entered.message)

    @property
    def turns(self) -> Sequence[int]:
        """The turns in which a person said something."""
        return sorted(self._said)

    def take(self, step: int) -> list[UserMessage]:
        """What entered at a step of the turn; given once."""
        return self._said.get(self.turn, {}).pop(step, [])

    async def enter(
        self, signal: PreStep, call_next: Callable[[PreStep], Awaitable[StepDecision]]
    ) -> StepDecision:
        """Lets what was said in the middle of a turn enter the same step again."""
        decision = await call_next(signal)
        said = self.take(signal.step) if signal.step > 1 else []
        return Enter((*decision.messages, *said)) if said and isinstance(decision, Enter) else decision

    async def steer(self, signal: TurnStopping) -> None:
        """Says what was said when the turn was about to end."""
        for message in self.take(signal.step + 1):
            signal.agent.steer(message)


async def _live_through(agent: Agent, script: _Script) -> None:
    agent.ctx.on(PreStep, script.enter)
    agent.ctx.on(TurnStopping, script.steer)
    for turn in script.turns:
        script.turn = turn
        for message in script.take(1):
            agent.send(message, wake=False)
        agent.wake()
        await agent.when_idle()
        await agent.when_aborted()


def _replayed(agent: Agent, player: Player, recorded: Session) -> AgentReplay:
    said = [one.message.text for one in agent.session.of(AssistantSaid) if one.message.text.strip()]
    return AgentReplay(
        session=agent.id,
        asked=tuple(player.asked),
        unasked=player.unasked,
        tools=_tool_differences(recorded, agent.session),
        text=said[-1] if said else "",
        end=agent.last_turn_end,
    )


def _tool_differences(recorded: Session, now: Session) -> tuple[ToolDifference, ...]:
    before = {one.message.call_id: one.message for one in recorded.of(ToolAnswered, recorded.lifecycle_start)}
    return tuple(
        ToolDifference(
            call_id=given.call_id, name=given.name, was=was.content if was else "", now=given.content
        )
        for given in (one.message for one in now.of(ToolAnswered))
        if (was := before.get(given.call_id)) is None
        or (was.content, was.is_error) != (given.content, given.is_error)
    )
