"""The audit of one log: what it proves, what it finds, and that it is total."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from leadline.core.agent.spec import AgentSpec
from leadline.core.llm.adapter import Models, PreparedCall
from leadline.core.llm.failure import Wait
from leadline.core.llm.messages import AssistantMessage, Conversation, Text, UserMessage
from leadline.core.llm.request import CallConfig, LlmRequest, Purpose
from leadline.core.llm.wire import canonical_wire
from leadline.core.loop.audit import SessionAudit, audit
from leadline.core.loop.thread import purpose_digest
from leadline.core.session.events import (
    AssistantSaid,
    Event,
    RequestEnded,
    RequestHeader,
    RequestSent,
    UserEntered,
)
from leadline.kernel.context import Kernel
from leadline.testing.agents import agent_stack
from leadline.testing.scripted import Reply, ScriptedModel
from leadline.testing.sessions import memory_session

pytestmark = pytest.mark.anyio

MODEL = ScriptedModel()
CONFIG = CallConfig(MODEL.ref)
HEADER = RequestHeader(config=CONFIG, system="Be brief.")
HELLO = UserMessage("m-1", (Text("hello"),))
FACTS: dict[str, object] = {"question": "why?"}


def sent(
    messages: Sequence[UserMessage], *, facts: dict[str, object] | None = None, attempt: int = 1
) -> RequestSent:
    """The request that a sound log would have at this place."""
    purpose = Purpose("test", facts or {})
    request = LlmRequest(CONFIG, purpose, HEADER.system, (), Conversation(messages))
    return RequestSent(
        attempt=attempt,
        purpose="test",
        purpose_data=facts,
        purpose_digest=purpose_digest(purpose),
        model=str(MODEL.ref),
        digest=canonical_wire(request).digest,
        messages=len(messages),
    )


async def found(*events: Event, provider: str = "scripted") -> SessionAudit:
    async with Kernel() as kernel:
        models = Models()
        models.register(kernel.root, ScriptedModel(provider=provider))
        return audit(memory_session(events=events), models)


def said(digest: str, text: str = "hi", attempt: int = 1) -> AssistantSaid:
    message = AssistantMessage(f"a-{digest[:4]}", (Text(text),), str(MODEL.ref))
    return AssistantSaid(message=message, digest=digest, attempt=attempt)


async def test_a_sound_log_is_proved() -> None:
    request = sent([HELLO], facts=FACTS)
    it = await found(HEADER, UserEntered(message=HELLO), request, said(request.digest))
    assert it.ok
    assert (it.requests, it.proved, it.events, it.kind) == (1, 1, 4, "agent")


async def test_a_log_without_requests_holds() -> None:
    assert (await found(UserEntered(message=HELLO))).ok


async def test_a_request_before_any_header_is_found() -> None:
    it = await found(UserEntered(message=HELLO), sent([HELLO]))
    assert [(one.seq, "no request/header" in one.reason) for one in it.problems] == [(1, True)]


async def test_only_what_stands_before_a_request_counts() -> None:
    it = await found(HEADER, sent([HELLO]), UserEntered(message=HELLO))
    assert "it had 1 messages, the log before it gives 0" in str(it.problems[0])


async def test_the_header_in_force_is_the_last_one_before_the_request() -> None:
    other = RequestHeader(config=CONFIG, system="Be long.", reason="change")
    request = sent([HELLO])
    assert (await found(other, HEADER, UserEntered(message=HELLO), request)).ok
    it = await found(HEADER, other, UserEntered(message=HELLO), request)
    assert "something before event 3 was altered" in str(it.problems[0])


async def test_what_an_earlier_request_proves_is_not_in_doubt() -> None:
    first = sent([HELLO])
    later = UserMessage("m-2", (Text("altered"),))
    forged = sent([HELLO, UserMessage("m-2", (Text("original"),))])
    it = await found(HEADER, UserEntered(message=HELLO), first, UserEntered(message=later), forged)
    assert it.proved == 1
    assert "something between events 2 and 4 was altered" in str(it.problems[0])


async def test_facts_stand_in_the_first_event_that_names_them_and_count_for_later_ones() -> None:
    first = sent([HELLO], facts=FACTS)
    again = RequestSent(
        attempt=2,
        purpose="test",
        purpose_digest=first.purpose_digest,
        model=first.model,
        digest=first.digest,
        messages=1,
    )
    assert (await found(HEADER, UserEntered(message=HELLO), first, again)).proved == 2
    it = await found(HEADER, UserEntered(message=HELLO), again)
    assert not it.problems
    assert str(it.not_provable[0]) == "event 2: the facts of its purpose are not in the log"


async def test_facts_that_do_not_have_their_digest_are_found() -> None:
    request = msgspec.structs.replace(sent([HELLO], facts=FACTS), purpose_data={"question": "what?"})
    it = await found(HEADER, UserEntered(message=HELLO), request)
    assert "the facts of its purpose do not have the digest" in str(it.problems[0])


async def test_a_provider_that_is_not_mounted_is_no_problem_of_the_log() -> None:
    it = await found(HEADER, UserEntered(message=HELLO), sent([HELLO]), provider="other")
    assert (it.problems, it.ok) == ((), False)
    assert str(it.not_provable[0]) == "event 2: provider scripted is not configured"


async def test_an_answer_has_to_name_the_request_of_its_attempt() -> None:
    request = sent([HELLO])
    base = (HEADER, UserEntered(message=HELLO), request)
    assert (await found(*base, RequestEnded(digest=request.digest, state="error"))).ok
    assert "but" in str((await found(*base, said("0" * 64))).problems[0])
    assert "answers request none" in str((await found(*base, said(""))).problems[0])
    assert "which is not in the log" in str((await found(*base, said(request.digest, attempt=2))).problems[0])
    assert (await found(said(""))).ok, "an answer that nobody asked a model for needs no request"


async def test_every_attempt_of_a_step_is_proved_by_itself(tmp_path: Path) -> None:
    model = ScriptedModel([Wait("RATE_LIMIT", "slow down", retry_after_s=0.0), Reply("ok")])
    async with agent_stack(tmp_path, model) as stack:
        agent = await stack.agents.create(AgentSpec())
        agent.followup("hello")
        await agent.when_idle()
        await agent.dispose()
        it = audit(await stack.sessions.read(agent.id), stack.ctx.get(Models))
    assert it.ok, it
    assert (it.requests, it.proved) == (2, 2)


async def test_an_adapter_that_chokes_on_a_log_is_a_finding_and_no_failure() -> None:
    class Choking(ScriptedModel):
        def prepare(self, request: LlmRequest) -> PreparedCall:
            raise ValueError("cannot encode this")

    async with Kernel() as kernel:
        models = Models()
        models.register(kernel.root, Choking())
        it = audit(memory_session(events=(HEADER, UserEntered(message=HELLO), sent([HELLO]))), models)
    assert "it cannot be made again: ValueError: cannot encode this" in str(it.problems[0])
