"""Conversations extend each other byte for byte, and pair calls with results."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.messages import (
    AssistantMessage,
    Conversation,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    commas,
)
from leadline.core.llm.request import CHAT, CallConfig, LlmRequest, ModelRef
from leadline.core.llm.wire import canonical_wire


@dataclass(frozen=True)
class CountingEncoder:
    """Plain bytes, and a count of what it was asked to encode."""

    seen: tuple[list[str], ...] = field(default_factory=lambda: ([],))
    head: bytes = b'{"messages":['
    close: bytes = b"]}"

    def encode(self, message: Message) -> bytes:
        self.seen[0].append(message.id)
        return b"" if message.id.startswith("empty") else f'"{message.id}"'.encode()

    def join(self, before: Message | None, after: Message | None) -> bytes:
        return commas(self.head, before, after)

    def __hash__(self) -> int:
        return id(self.seen)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountingEncoder) and other.seen is self.seen


def user(id_: str, text: str = "hi") -> UserMessage:
    return UserMessage(id_, (Text(text),))


def assistant(id_: str, *calls: str) -> AssistantMessage:
    return AssistantMessage(id_, (Text("t"), *(ToolCall(call, "f", "{}") for call in calls)), "p/m")


def result(call: str) -> ToolMessage:
    return ToolMessage(f"r-{call}", call, "f", "out")


def test_a_message_is_encoded_once_and_the_body_extends_the_earlier_one() -> None:
    encoder = CountingEncoder()
    first = Conversation([user("a"), user("b")])
    body = first.wire(encoder).body
    second = first.extended(user("c"))
    longer = second.wire(encoder).body
    assert (body, longer) == (b'{"messages":["a","b"]}', b'{"messages":["a","b","c"]}')
    assert longer.startswith(body.removesuffix(b"]}"))
    assert encoder.seen[0] == ["a", "b", "c"]


def test_the_tail_is_volatile_and_leaves_the_prefix_alone() -> None:
    encoder = CountingEncoder()
    base = Conversation([user("a")])
    assert base.with_tail(user("x"), user("y")).wire(encoder).body == b'{"messages":["a","x","y"]}'
    assert base.with_tail(user("z")).wire(encoder).body == b'{"messages":["a","z"]}'
    assert base.wire(encoder).body == b'{"messages":["a"]}'
    assert encoder.seen[0].count("a") == 1


def test_an_older_value_is_not_changed_by_extending_it_twice() -> None:
    encoder = CountingEncoder()
    base = Conversation([user("a")])
    left, right = base.extended(user("l")), base.extended(user("r"))
    assert left.wire(encoder).body == b'{"messages":["a","l"]}'
    assert right.wire(encoder).body == b'{"messages":["a","r"]}'
    assert base.wire(encoder).body == b'{"messages":["a"]}'
    assert [list(map(str, (m.id for m in c))) for c in (base, left, right)] == [["a"], ["a", "l"], ["a", "r"]]


def test_messages_that_the_wire_leaves_out_leave_no_comma() -> None:
    encoder = CountingEncoder()
    c = Conversation([user("empty1"), user("a"), user("empty2"), user("b")]).with_tail(
        user("empty3"), user("c")
    )
    assert c.wire(encoder).body == b'{"messages":["a","b","c"]}'
    assert Conversation().with_tail(user("empty"), user("c")).wire(encoder).body == b'{"messages":["c"]}'


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12))
def test_the_digest_is_that_of_the_whole_body_whatever_came_before(steps: list[tuple[bool, int]]) -> None:
    encoder, conversation = CountingEncoder(), Conversation()
    for number, (settle, tail) in enumerate(steps):
        if settle:
            conversation = conversation.extended(user(f"m{number}"))
        wire = conversation.with_tail(*(user(f"t{number}.{at}") for at in range(tail))).wire(encoder)
        assert wire.digest == hashlib.sha256(wire.body).hexdigest()
    fresh = Conversation(tuple(conversation)).wire(CountingEncoder())
    assert fresh == conversation.wire(encoder)


def test_a_conversation_reads_like_a_sequence() -> None:
    c = Conversation([user("a"), user("b")], tail=[user("c")])
    assert (len(c), c.settled, c[0].id, c[-1].id, [m.id for m in c[1:]]) == (3, 2, "a", "c", ["b", "c"])
    assert c == Conversation([user("a"), user("b"), user("c")])


def test_calls_answered_at_once_in_any_order_pair_up() -> None:
    c = Conversation([user("u"), assistant("m", "c1", "c2"), result("c2"), result("c1"), user("v")])
    assert c.pairing_problem is None


def test_every_breach_of_pairing_is_named() -> None:
    asked = Conversation([user("u"), assistant("m", "c1", "c2"), result("c1")])
    assert asked.pairing_problem == "call 'c2' has no result"
    assert "'v' stands between call 'c2'" in str(asked.extended(user("v")).pairing_problem)
    assert "'v' stands between" in str(asked.with_tail(user("v"), result("c2")).pairing_problem)
    assert asked.with_tail(result("c2")).pairing_problem is None
    assert "not open" in str(Conversation([result("c9")]).pairing_problem)
    assert "twice" in str(Conversation([assistant("m", "c", "c"), result("c")]).pairing_problem)


def test_the_canonical_digest_is_a_function_of_the_request() -> None:
    def digest(conversation: Conversation, system: str = "s") -> str:
        return canonical_wire(
            LlmRequest(CallConfig(ModelRef("p", "m")), CHAT, system, (), conversation)
        ).digest

    base = Conversation([user("a")])
    assert digest(base) == digest(Conversation([user("a")]))
    assert digest(base) != digest(base.extended(user("b")))
    assert digest(base) != digest(base, "other")


def test_text_that_utf_8_cannot_carry_is_still_encoded() -> None:
    wire = canonical_wire(
        LlmRequest(CallConfig(ModelRef("p", "m")), CHAT, "", (), Conversation([user("a", "x\ud800y")]))
    )
    assert b"x?y" in wire.body


@dataclass(frozen=True)
class GroupingEncoder:
    """Writes neighbouring results as one list."""

    head: bytes = b"["
    close: bytes = b"]"

    def encode(self, message: Message) -> bytes:
        return b"" if message.id.startswith("empty") else f'"{message.id}"'.encode()

    def join(self, before: Message | None, after: Message | None) -> bytes:
        was, comes = isinstance(before, ToolMessage), isinstance(after, ToolMessage)
        if was and comes:
            return b","
        return (b"]" if was else b"") + commas(self.head, before, after) + (b"[" if comes else b"")


def test_neighbouring_messages_may_make_one_on_the_wire() -> None:
    encoder = GroupingEncoder()
    base = Conversation([user("u"), assistant("a", "1", "2"), result("1")])
    assert base.wire(encoder).body == b'["u","a",["r-1"]]'
    both = base.extended(result("2"))
    assert both.wire(encoder).body == b'["u","a",["r-1","r-2"]]'
    assert both.with_tail(user("empty"), user("t")).wire(encoder).body == b'["u","a",["r-1","r-2"],"t"]'
    grown = both.extended(user("empty"), user("v"))
    assert grown.wire(encoder).body == b'["u","a",["r-1","r-2"],"v"]'
    assert base.with_tail(result("2")).wire(encoder).body == b'["u","a",["r-1","r-2"]]'
    assert base.wire(encoder).body == b'["u","a",["r-1"]]'
