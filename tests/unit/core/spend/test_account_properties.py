"""Accounts under random trees, random order and many workers at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import anyio
import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.spend.account import (
    Account,
    Ceilings,
    Exhausted,
    Hold,
    Reservation,
    Spent,
)
from leadline.core.spend.account import _Kept as Kept  # pyright: ignore[reportPrivateUsage] - what `keep` works out
from leadline.core.spend.money import Money

WORKERS = 16


@dataclass
class Node:
    """One account of the reference: a list of what is in flight and what was used, and nothing clever."""

    parent: int | None
    tokens: int | None
    calls: int | None
    kept: int = 0
    held: list[Hold] = field(default_factory=list[Hold])
    used: list[Spent] = field(default_factory=list[Spent])


class Reference:
    """What accounts are to do, in the plainest words."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.line: list[tuple[int, int, Hold]] = []
        """`(number of the asker, account, hold)`, in the order in which they came."""

    def chain(self, account: int) -> list[int]:
        node: int | None = account
        chain: list[int] = []
        while node is not None:
            chain.append(node)
            node = self.nodes[node].parent
        return chain

    def verdict(self, account: int, hold: Hold) -> tuple[str, int | None]:
        """`never`, `now`, or `wait` and where."""
        kept, waits = 0, None
        for index in self.chain(account):
            node = self.nodes[index]
            used = sum(one.tokens for one in node.used)
            if node.tokens is not None and hold.tokens:
                held = sum(one.tokens for one in node.held)
                if used + max(1, hold.least_tokens) > node.tokens - kept:
                    return "never", None
                if held and used + held + hold.tokens > node.tokens - kept and waits is None:
                    waits = index
            if node.calls is not None:
                calls = sum(one.calls for one in node.used)
                if calls + 1 > node.calls:
                    return "never", None
                if calls + len(node.held) + 1 > node.calls and waits is None:
                    waits = index
            kept += node.kept
        return ("now", None) if waits is None else ("wait", waits)

    def ask(self, number: int, account: int, hold: Hold) -> dict[int, str]:
        self.line.append((number, account, hold))
        return self.serve()

    def end(self, account: int, hold: Hold, spent: Spent | None) -> dict[int, str]:
        for index in self.chain(account):
            self.nodes[index].held.remove(hold)
            if spent is not None:
                self.nodes[index].used.append(spent)
        return self.serve()

    def leave(self, number: int) -> dict[int, str]:
        self.line = [one for one in self.line if one[0] != number]
        return self.serve()

    def serve(self) -> dict[int, str]:
        told: dict[int, str] = {}
        barred: set[int] = set()
        line, self.line = self.line, []
        for number, account, hold in line:
            verdict, where = self.verdict(account, hold)
            chain = self.chain(account)
            if verdict == "never":
                told[number] = "never"
                continue
            first = next((index for index in chain if index in barred or index == where), None)
            if first is not None:
                barred.add(first)
                self.line.append((number, account, hold))
                continue
            told[number] = "now"
            for index in chain:
                self.nodes[index].held.append(hold)
        return told


ceilings = st.none() | st.integers(0, 300)


@st.composite
def trees(draw: st.DrawFn) -> list[Node]:
    nodes = [Node(None, draw(ceilings), draw(st.none() | st.integers(0, 12)))]
    for _ in range(draw(st.integers(0, 5))):
        parent = draw(st.integers(0, len(nodes) - 1))
        kept = draw(st.just(0) | st.integers(0, 100))
        nodes.append(Node(parent, draw(ceilings), draw(st.none() | st.integers(0, 8)), kept))
    return nodes


def built(nodes: list[Node]) -> list[Account]:
    accounts: list[Account] = []
    for number, node in enumerate(nodes):
        parent = None if node.parent is None else accounts[node.parent]
        ceilings, kept = Ceilings(tokens=node.tokens, calls=node.calls), Kept(tokens=node.kept)
        accounts.append(Account(f"a{number}", ceilings, parent, _kept=kept))
    return accounts


async def settled() -> None:
    """Every task has gone as far as it can: none of them takes more than a few turns of the loop."""
    for _ in range(6):
        await anyio.lowlevel.checkpoint()


class Play:
    """One account tree and its reference, driven by the same moves."""

    def __init__(self, nodes: list[Node]) -> None:
        self.reference = Reference(nodes)
        self.accounts = built(nodes)
        self.asked: dict[int, tuple[int, Hold, anyio.CancelScope]] = {}
        self.answers: dict[int, Reservation | Exhausted] = {}
        self.expected: dict[int, str] = {}
        self.largest = 0

    async def ask(self, number: int) -> None:
        account, hold, scope = self.asked[number]
        with scope:
            self.answers[number] = await self.accounts[account].reserve(hold)

    def open(self) -> list[int]:
        return [
            number
            for number, answer in self.answers.items()
            if isinstance(answer, Reservation) and not answer.ended
        ]

    def waiting(self) -> list[int]:
        return [
            number
            for number, (_, _, scope) in self.asked.items()
            if number not in self.answers and not scope.cancel_called
        ]

    def check(self) -> None:
        for number, word in self.expected.items():
            answer = self.answers[number]
            assert isinstance(answer, Exhausted if word == "never" else Reservation)
        assert {one[0] for one in self.reference.line} == set(self.waiting())
        for account, node in zip(self.accounts, self.reference.nodes, strict=True):
            assert account.in_flight == len(node.held)
            assert account.spent == sum(node.used, Spent())
            if node.tokens is not None:
                assert account.spent.tokens <= node.tokens + self.largest
            if node.calls is not None:
                assert account.spent.calls + account.in_flight <= node.calls
        if not any(account.in_flight for account in self.accounts):
            assert not self.waiting(), "somebody waits, and nobody is there to wait for"


@given(trees(), st.data())
@settings(max_examples=120, deadline=None)
def test_accounts_do_what_the_plain_reference_does(nodes: list[Node], data: st.DataObject) -> None:
    async def play() -> None:
        one = Play(nodes)
        async with anyio.create_task_group() as tasks:
            for number in range(data.draw(st.integers(1, 30))):
                moves = [
                    "ask",
                    *(["settle", "release"] if one.open() else []),
                    *(["cancel"] if one.waiting() else []),
                ]
                match data.draw(st.sampled_from(moves)):
                    case "ask":
                        tokens = data.draw(st.integers(0, 120))
                        hold = Hold(tokens=tokens, least_tokens=data.draw(st.integers(0, tokens)))
                        account = data.draw(st.integers(0, len(nodes) - 1))
                        one.asked[number] = (account, hold, anyio.CancelScope())
                        one.expected |= one.reference.ask(number, account, hold)
                        tasks.start_soon(one.ask, number)
                    case "cancel":
                        chosen = data.draw(st.sampled_from(one.waiting()))
                        one.asked[chosen][2].cancel()
                        one.expected |= one.reference.leave(chosen)
                    case word:
                        chosen = data.draw(st.sampled_from(one.open()))
                        account, hold, _ = one.asked[chosen]
                        used = data.draw(st.integers(0, hold.tokens))
                        spent = Spent(tokens=used, calls=1) if word == "settle" else None
                        one.largest = max(one.largest, used)
                        answer = one.answers[chosen]
                        assert isinstance(answer, Reservation)
                        one.expected |= one.reference.end(account, hold, spent)
                        answer.release() if spent is None else answer.settle(spent)
                await settled()
                one.check()
            for number in one.waiting():
                one.asked[number][2].cancel()
                one.reference.leave(number)
            await settled()
        for number in one.open():
            answer = one.answers[number]
            assert isinstance(answer, Reservation)
            answer.release()
        assert all(account.in_flight == 0 for account in one.accounts)
        for account in one.accounts:
            parts = sum((child.spent for child in one.accounts if child.parent is account), Spent())
            direct = account.spent.tokens - parts.tokens
            assert direct >= 0

    anyio.run(play)


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(200, 5000), st.sampled_from([0.0, 0.15]))
@settings(max_examples=60, deadline=None)
def test_sixteen_workers_pass_a_ceiling_by_one_call_at_most_and_stop_only_when_it_is_used(
    seed: int, units: int, ceiling: int, share: float
) -> None:
    random = Random(seed)
    root = Account("run", Ceilings(tokens=ceiling, cost=Money(ceiling * 7)))
    working = root.keep(share) if share else root
    accounts = [working.child(f"unit {number}") for number in range(units)]
    largest = 0
    refusals: list[Exhausted] = []

    async def work(number: int) -> None:
        nonlocal largest
        account = accounts[number % units]
        while True:
            prompt, output = random.randint(1, 60), random.randint(1, 90)
            hold = Hold(prompt + output, Money((prompt + output) * 7), 1, prompt, Money(prompt * 7))
            with anyio.CancelScope() as scope:
                if random.random() < 0.1:
                    scope.cancel()
                answer = await account.reserve(hold)
                if isinstance(answer, Exhausted):
                    refusals.append(answer)
                    return
                used = prompt + random.randint(0, output)
                largest = max(largest, used)
                try:
                    for _ in range(random.randint(0, 4)):
                        await anyio.lowlevel.checkpoint()
                finally:
                    if random.random() < 0.1:
                        answer.release()
                    else:
                        answer.settle(Spent(used, Money(used * 7), 1))

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(WORKERS):
                tasks.start_soon(work, number)

    anyio.run(run)
    kept = -(-ceiling * share // 1)
    assert len(refusals) == WORKERS
    assert root.in_flight == 0
    assert root.spent.tokens <= ceiling - kept + largest
    assert root.spent.tokens > ceiling - kept - 60, "work stopped although a prompt would have fitted"
    assert root.spent == sum((account.spent for account in accounts), Spent())
