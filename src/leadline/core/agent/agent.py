"""The agent handle: tell it things, stop it, wait for it, end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from leadline.core.agent.driver import Abort
from leadline.core.agent.errors import AgentDisposed
from leadline.core.agent.inbox import Inbox, Queue
from leadline.core.agent.signals import AgentStatusChanged, InboxChange, InboxChanged
from leadline.core.llm.messages import HUMAN, MessageSource, Text, UserMessage
from leadline.core.session.events import AbortCause, InboxTarget
from leadline.kernel.effects import Ending

if TYPE_CHECKING:
    from leadline.core.agent.driver import Driver
    from leadline.core.agent.spec import AgentSpec
    from leadline.core.ids import Ids
    from leadline.core.llm.request import ModelRef
    from leadline.core.session.events import TurnEnd
    from leadline.core.session.log import Session
    from leadline.core.spend.account import Account
    from leadline.kernel.context import Context, SubContext

Status: TypeAlias = Literal["idle", "running"]


class Agent:
    """One agent. It has the id of its session; its context dies with it.

    There is no result per message on purpose: what became of accepted input is in the log.
    """

    def __init__(
        self,
        *,
        session: Session,
        spec: AgentSpec,
        model: ModelRef,
        queue: Queue,
        home: SubContext,
        ctx: Context,
        driver: Driver,
        ids: Ids,
        account: Account,
        group: str,
    ) -> None:
        """Made by `Agents`. `home` is what dispose unwinds, `ctx` the part of it that others register on."""
        self.id: str = session.id
        self.session = session
        self.spec = spec
        self.model = model
        """The model its requests go to."""
        self.account = account
        """Whom its calls are charged to."""
        self.group = group
        """Id of the session at the root of its line of delegation: such groups are served in turn."""
        self.ctx = ctx
        """Scoped to this agent: what is registered here only it and its descendants see."""
        self.inbox = Inbox(session, queue, self._inbox_changed)
        self.last_turn_end: TurnEnd | None = None
        """How the latest turn ended; None before the first has."""
        self._home = home
        self._driver = driver
        self._ids = ids
        self._status: Status = "idle"
        self._idle = Ending()
        self._abort: Abort | None = None
        self._woken = False
        self._proceed = False
        self._disposing = False

    def __repr__(self) -> str:
        return f"<Agent {self.id} {self._status}>"

    @property
    def status(self) -> Status:
        """`running` from the moment it is woken until nothing is left to do."""
        return self._status

    @property
    def depth(self) -> int:
        """How many agents stand above it in the line of delegation; a root agent has 0."""
        return self.session.header.depth

    @property
    def disposed(self) -> bool:
        """Whether it takes no more input."""
        return self._disposing or self._home.effects.closed

    def message(self, text: str, source: MessageSource = HUMAN) -> UserMessage:
        """A new message of one text."""
        return UserMessage(self._ids.new("m"), (Text(text),), source)

    def send(
        self, message: UserMessage | str, target: InboxTarget = "next-turn", *, wake: bool = True
    ) -> UserMessage:
        """Queue a message, durably, and set the agent to work on it unless `wake` is False.

        Text becomes a human's own words. While a turn is being aborted, what wakes is queued for
        the next turn, whatever its target, and runs when the old turn has ended.

        Raises:
            AgentDisposed: it takes no more input.
            DuplicateMessage: the id is queued already.
        """
        if self.disposed:
            raise AgentDisposed(self.id)
        made = self.message(message) if isinstance(message, str) else message
        aborting = self._abort is not None and self._abort.cause is not None
        self.inbox.insert("next-turn" if wake and aborting else target, made)
        if wake:
            self.wake()
        return made

    def followup(self, message: UserMessage | str) -> UserMessage:
        """Queue a prompt that gets a turn of its own."""
        return self.send(message, "next-turn")

    def steer(self, message: UserMessage | str) -> UserMessage:
        """Tell the turn that runs something at its next step; an idle agent starts a turn with it."""
        return self.send(message, "next-step")

    def inject(self, message: UserMessage | str) -> UserMessage:
        """Leave something for the next step, whenever that comes."""
        return self.send(message, "next-step", wake=False)

    def wake(self) -> None:
        """Set the agent to work on what is queued. Nothing queued: nothing happens.

        Raises:
            AgentDisposed: it takes no more input.
        """
        if self.disposed:
            raise AgentDisposed(self.id)
        self._woken = True
        if self._status == "idle" and self._has_work:
            self._status, self._idle, self._abort = "running", Ending(), Abort()
            self._home.spawn(self._drive, name="turns")
            self.ctx.notice(AgentStatusChanged(self, "running"))

    def proceed(self) -> None:
        """Go on with the latest turn, where its process died in it or it was broken off; else with a new one that is
        told nothing new.

        Raises:
            AgentDisposed: it takes no more input.
        """
        self._proceed = True
        self.wake()

    async def cancel(self, cause: AbortCause | None = None, *, keep_inbox: bool = True) -> None:
        """End the turn that runs; returns when nothing of it writes any more. The first cause wins.

        What is queued stays until the next wake, or is taken back where `keep_inbox` is False.
        """
        self.abort(cause)
        if not keep_inbox:
            self._woken = False
            self.inbox.cancel_all()
        await self.when_aborted()

    def abort(self, cause: AbortCause | None = None) -> None:
        """As `cancel`, without waiting; for those who cannot wait, such as listeners."""
        if self._abort is not None and self._abort.cause is None:
            self._woken = False
            self._abort.abort(cause or AbortCause("user"))

    async def when_aborted(self) -> None:
        """Returns when no turn is being aborted."""
        while self._abort is not None and self._abort.cause is not None:
            await self._abort.ended.wait()

    async def when_idle(self) -> None:
        """Returns when the agent, as a whole, has nothing to do."""
        while self._status != "idle":
            await self._idle.wait()

    async def dispose(self) -> None:
        """End the agent: its turn is cancelled, its children and registrations end, its session closes.

        What is queued stays in the log. Idempotent, joins a disposal in flight, always frees.
        """
        self.stop()
        await self._home.dispose()

    def stop(self) -> None:
        """Take no more input and abort the turn that runs, without waiting."""
        self._disposing = True
        self.abort(AbortCause("disposed"))

    async def quiesce(self) -> None:
        """`stop`, and return when nothing of the agent runs."""
        self.stop()
        await self.when_idle()

    @property
    def _has_work(self) -> bool:
        return self._proceed or len(self.inbox) > 0

    async def _drive(self) -> None:
        try:
            while self._abort is not None and await self._run_turn(self._abort):
                self._abort = Abort()
        finally:
            self._abort, self._status = None, "idle"
            self._idle.set()
            self.ctx.notice(AgentStatusChanged(self, "idle"))

    async def _run_turn(self, abort: Abort) -> bool:
        """Run a turn; whether another one is due."""
        head, before = self.inbox.waiting("turn"), self.session.place.turn
        try:
            if abort.cause is None and self._has_work:
                self._woken, proceed, self._proceed = False, self._proceed, False
                await self._driver.run_turn(self, abort, proceed=proceed)
        finally:
            self._abort = None
            abort.ended.set()
        if self.disposed:
            return False
        if abort.cause is not None:
            # What was queued before the abort waits for someone to say so; what came after has.
            return self._woken and self._has_work
        if head and self.inbox.waiting("turn") == head and self.session.place.turn > before:
            # A new turn could not even take its input in; trying again would end the same way.
            return False
        return bool(self._proceed or self.inbox.next_turn or (self._woken and self.inbox.next_step))

    def _inbox_changed(self, change: InboxChange, messages: tuple[UserMessage, ...]) -> None:
        self.ctx.notice(InboxChanged(self, change, messages))
