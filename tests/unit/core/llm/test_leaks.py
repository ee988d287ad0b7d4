"""Tool calls written as text are recognised; scraps of tags beside real calls vanish."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.assembler import Assembler, Completion
from leadline.core.llm.leaks import LeakFilter, LeakRules
from leadline.core.llm.messages import Text, ToolCall
from leadline.core.llm.stream import Finish, FinishState, StreamEvent, TextDelta, ToolCallDelta

TAGS = (("<tool_call>", "</tool_call>"), ("[TOOL_CALLS]", ""))
RULES = LeakRules(TAGS, parse=False, tools=frozenset({"f", "search"}))
PARSING = LeakRules(TAGS, parse=True, tools=RULES.tools)
LEAK = '<tool_call>{"name":"f","arguments":{}}</tool_call>'
REAL = ToolCallDelta(0, None, "c1", "f", "{}")


def passed(rules: LeakRules, *events: StreamEvent, state: FinishState = "done") -> tuple[Completion, str]:
    """The completion behind the filter, and the text a viewer saw."""
    leaks, assembler, shown = LeakFilter(rules), Assembler(), ""
    for event in (*events, Finish(state)):
        for out in leaks.feed(event):
            assembler.add(out)
            shown += out.text if isinstance(out, TextDelta) else ""
    return assembler.completion(), shown


def in_pieces(text: str) -> list[StreamEvent]:
    return [TextDelta(char) for char in text]


@pytest.mark.case("M39")
def test_a_leaked_call_is_flagged_for_one_corrective_turn() -> None:
    done, shown = passed(RULES, TextDelta(LEAK))
    assert done.finish.leaked_call
    assert (done.tool_calls, shown) == ((), LEAK)


@pytest.mark.case("M39")
@pytest.mark.parametrize("split", [False, True])
def test_a_leaked_call_becomes_a_call_where_the_profile_says_so(split: bool) -> None:
    text = "Let me look.\n" + LEAK + "\n" + LEAK
    done, shown = passed(PARSING, *(in_pieces(text) if split else [TextDelta(text)]))
    assert done.content == (
        Text("Let me look."),
        ToolCall("call-0", "f", "{}"),
        ToolCall("call-1", "f", "{}"),
    )
    assert shown == "Let me look."
    assert not done.finish.leaked_call


def test_a_leaked_list_without_a_closing_tag_is_read() -> None:
    done, _ = passed(PARSING, TextDelta('[TOOL_CALLS][{"name":"search","arguments":{"q":"x"}}]'))
    assert [(call.name, call.arguments) for call in done.tool_calls] == [("search", '{"q": "x"}')]


def test_a_leaked_call_with_broken_json_is_flagged_and_never_repaired() -> None:
    done, _ = passed(PARSING, TextDelta('<tool_call>{"name":"f","arguments":{"x":1</tool_call>'))
    assert done.tool_calls == ()
    assert done.finish.leaked_call


def test_a_whole_answer_that_is_a_call_as_bare_json_is_flagged() -> None:
    text = '{"name": "f", "arguments": {"x": 1}}'
    done, shown = passed(PARSING, *in_pieces(text))
    assert done.finish.leaked_call
    assert shown == text
    assert not passed(RULES, TextDelta('{"name": "somebody", "arguments": {}}'))[0].finish.leaked_call


@pytest.mark.parametrize(
    "text",
    [
        "A <tool_call> tag opens a call.",
        'Write <tool_call>{"name": "f"} and then other words follow here.',
        '<tool_call>{"name":"unknown","arguments":{}}</tool_call>',
        "a < b and c > d",
        "ends with <tool",
        "List:\n\n- x\n",
    ],
)
def test_text_about_tags_is_not_a_leak(text: str) -> None:
    done, shown = passed(RULES, *in_pieces(text))
    assert not done.finish.leaked_call
    assert shown == text


def test_a_truncated_leak_is_left_to_the_truncation() -> None:
    done, _ = passed(PARSING, TextDelta(LEAK), state="length")
    assert (done.text, done.tool_calls, done.finish.leaked_call) == (LEAK, (), False)


@pytest.mark.case("M40")
@pytest.mark.parametrize(
    "residue", [">\n</tool_call>", "</tool_call>", "\n<tool_call>\n", " </tool_call></tool_call>\n", LEAK]
)
def test_residue_beside_real_calls_is_neither_shown_nor_kept(residue: str) -> None:
    for events in ([REAL, TextDelta(residue)], [TextDelta(residue), REAL], [REAL, *in_pieces(residue)]):
        done, shown = passed(RULES, *events)
        assert done.content == (ToolCall("c1", "f", "{}"),)
        assert shown == ""


def test_words_beside_residue_stay() -> None:
    done, _ = passed(RULES, TextDelta("Let me look.\n</tool_call>"), REAL)
    assert done.content == (Text("Let me look."), ToolCall("c1", "f", "{}"))


def test_without_tools_text_passes_untouched_and_at_once() -> None:
    leaks = LeakFilter(LeakRules(TAGS, parse=True, tools=frozenset()))
    assert leaks.feed(TextDelta(LEAK)) == [TextDelta(LEAK)]


def test_plain_text_is_passed_on_as_it_comes() -> None:
    leaks = LeakFilter(RULES)
    assert leaks.feed(TextDelta("Plain words")) == [TextDelta("Plain words")]
    assert leaks.feed(TextDelta(" and <")) == [TextDelta(" and")]
    assert leaks.feed(TextDelta("b> more")) == [TextDelta(" <b> more")]


ALPHABET = st.lists(
    st.sampled_from(["<tool_call>", "</tool_call>", "[TOOL_CALLS]", LEAK, "<", ">", "\n", "word ", "{", "}", '"f"', "<too"]),
    max_size=8,
).map("".join)  # fmt: skip


@given(ALPHABET, st.booleans(), st.booleans(), st.data())
def test_any_fragmentation_gives_the_same_message(
    text: str, parse: bool, real: bool, data: st.DataObject
) -> None:
    rules = PARSING if parse else RULES
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [TextDelta(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if a < b]
    tail: list[StreamEvent] = [REAL] if real else []
    whole, shown_whole = passed(rules, *([TextDelta(text)] if text else []), *tail)
    split, shown_split = passed(rules, *pieces, *tail)
    assert whole == split
    assert shown_whole == shown_split == whole.text


@given(st.text(max_size=40))
def test_text_without_a_leak_arrives_whole(text: str) -> None:
    done, shown = passed(RULES, *in_pieces(text))
    assert shown == text
    assert not done.finish.leaked_call
