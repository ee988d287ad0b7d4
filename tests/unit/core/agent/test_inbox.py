"""The queue of an agent: durable before it shows, and the same after any restart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.agent.errors import DuplicateMessage, UnknownMessage
from leadline.core.agent.inbox import Inbox, Queue
from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.messages import Text, UserMessage
from leadline.core.session.codec import Logged
from leadline.core.session.events import Event, InboxSpliced, InboxTarget, UserEntered
from leadline.testing.agents import agent_stack
from leadline.testing.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def message(name: str) -> UserMessage:
    return UserMessage(name, (Text(f"text of {name}"),))


class FakeSession:
    """Keeps events; `before` sees each write while the queue is still as it was."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, event: Event) -> None:
        self.append_all((event,))

    def append_all(self, events: Sequence[Event]) -> None:
        self.events += events


def inbox_of(session: FakeSession) -> tuple[Inbox, list[tuple[str, tuple[str, ...]]]]:
    told: list[tuple[str, tuple[str, ...]]] = []
    made = Inbox(session, Queue(), lambda change, them: told.append((change, tuple(m.id for m in them))))
    return made, told


async def test_a_change_is_in_the_log_before_the_lists_change(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        agent = await stack.agents.create(AgentSpec())
        seen: list[tuple[int, int]] = []

        def observe(line: Logged) -> None:
            seen.append((line.seq, len(agent.inbox)))

        agent.session.observe(observe)
        one = agent.inject("one")
        agent.inbox.replace(one.id, message("other"))
        agent.inbox.cancel("other")
        assert seen == [(0, 0), (1, 1), (2, 1)]
        assert len(agent.inbox) == 0


async def test_claim_cancel_and_replacement_are_told_apart() -> None:
    session = FakeSession()
    inbox, told = inbox_of(session)
    for name in "abcd":
        inbox.insert("next-turn", message(name))
    inbox.cancel("a")
    inbox.replace("b", message("B"))
    inbox.drop([inbox.next_turn[1]])
    inbox.enter([UserEntered(message=inbox.next_turn[0], turn=1, step=1, claims=("B",))])
    assert [it.outcome for it in session.events if isinstance(it, InboxSpliced)][4:] == [
        "cancelled",
        "replaced",
        "dropped",
    ]
    assert told[4:] == [("cancelled", ("a",)), ("replaced", ("B",)), ("dropped", ("c",)), ("claimed", ("B",))]
    assert [m.id for m in inbox.next_turn] == ["d"]


async def test_ids_are_unique_over_both_lists() -> None:
    inbox, _ = inbox_of(FakeSession())
    inbox.insert("next-turn", message("a"))
    inbox.insert("next-step", message("b"))
    with pytest.raises(DuplicateMessage, match="'a'"):
        inbox.insert("next-step", message("a"))
    with pytest.raises(DuplicateMessage, match="'b'"):
        inbox.replace("a", message("b"))
    with pytest.raises(UnknownMessage, match="'x'"):
        inbox.cancel("x")


async def test_a_turn_claims_all_of_next_step_and_one_of_next_turn() -> None:
    inbox, _ = inbox_of(FakeSession())
    for name in "pq":
        inbox.insert("next-turn", message(name))
    for name in "st":
        inbox.insert("next-step", message(name))
    assert [m.id for m in inbox.waiting("turn")] == ["s", "t", "p"]
    assert [m.id for m in inbox.waiting("step")] == ["s", "t"]


TARGETS: tuple[InboxTarget, ...] = ("next-turn", "next-step")
operations = st.lists(
    st.tuples(
        st.sampled_from(["insert", "cancel", "replace", "drop", "enter", "cancel_all"]),
        st.sampled_from(TARGETS),
        st.integers(0, 5),
    ),
    max_size=30,
)


@given(operations)
def test_whatever_was_done_the_log_folds_to_the_same_queue(steps: list[tuple[str, InboxTarget, int]]) -> None:
    session = FakeSession()
    inbox, _ = inbox_of(session)
    for number, (what, target, at) in enumerate(steps):
        queued = (*inbox.next_step, *inbox.next_turn)
        chosen = queued[at % len(queued)] if queued else None
        if what == "insert":
            inbox.insert(target, message(f"m{number}"))
        elif what == "cancel_all":
            inbox.cancel_all()
        elif chosen is not None and what == "cancel":
            inbox.cancel(chosen.id)
        elif chosen is not None and what == "replace":
            inbox.replace(chosen.id, message(f"r{number}"))
        elif chosen is not None and what == "drop":
            inbox.drop([chosen])
        elif chosen is not None:
            inbox.enter([UserEntered(message=chosen, claims=(chosen.id,))])
    folded = Queue()
    for event in session.events:
        folded.apply(event)
    assert (folded.next_turn, folded.next_step) == (list(inbox.next_turn), list(inbox.next_step))


async def test_a_burst_of_prompts_gets_one_turn_each_in_order(tmp_path: Path) -> None:
    model = ScriptedModel(["a", "b", "c"])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        for text in ("one", "two", "three"):
            agent.followup(text)
        await agent.when_idle()
        entered = [(it.turn, it.message.content[0]) for it in agent.session.of(UserEntered)]
        assert entered == [(1, Text("one")), (2, Text("two")), (3, Text("three"))]


async def test_what_is_injected_waits_for_the_next_turn_and_comes_first(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["ok"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.inject("by the way")
        await agent.when_idle()
        assert agent.last_turn_end is None
        agent.followup("question")
        await agent.when_idle()
        texts = [it.message.content[0] for it in agent.session.of(UserEntered)]
        assert texts == [Text("by the way"), Text("question")]


async def test_steering_an_idle_agent_starts_a_turn(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["ok"])) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.steer("go")
        await agent.when_idle()
        assert agent.last_turn_end is not None


async def test_queued_prompts_survive_shutdown_and_run_when_woken(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel()) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.send("later", wake=False)
        agent.inject("also")
        session_id = agent.id
    model = ScriptedModel(["done"])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.resume(session_id)
        assert [m.content[0] for m in agent.inbox.waiting("turn")] == [Text("also"), Text("later")]
        assert agent.status == "idle"
        agent.wake()
        await agent.when_idle()
        assert [m.content[0] for m in model.requests[0].conversation] == [Text("also"), Text("later")]


async def test_a_fork_does_not_inherit_the_queue(tmp_path: Path) -> None:
    async with agent_stack(tmp_path, ScriptedModel(["ok"])) as stack:
        parent = await stack.agents.create(AgentSpec())
        parent.send("waits through the turn", "next-step", wake=False)
        parent.inbox.cancel_all()
        parent.send("prompt", wake=False)
        parent.wake()
        await parent.when_idle()
        parent.inject("for the parent alone")
        fork = await stack.agents.create(AgentSpec(parent=parent, seed_turns=True))
        assert len(fork.inbox) == 0
        assert len(parent.inbox) == 1
        assert [it.message.content[0] for it in fork.session.of(UserEntered)] == [Text("prompt")]
