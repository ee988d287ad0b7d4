"""What becomes of calls that a model writes as text and that cannot be read."""

from __future__ import annotations

from leadline.core.loop.judgement import MAX_MISWRITTEN, Accept, Answer, Correct, Fail, Faults, judge


def answer(correction: str, *, leaked: bool = True) -> Answer:
    return Answer("done", True, (), leaked, None, correction)


def test_a_model_that_calls_tools_in_text_is_told_in_the_words_of_its_adapter_and_may_try_more_than_once() -> (
    None
):
    faults = Faults()
    for _ in range(MAX_MISWRITTEN):
        faults, judgement = judge(faults, answer("write it so"))
        assert judgement == Correct("leaked", "write it so")
    assert isinstance(judge(faults, answer("write it so"))[1], Fail)
    faults, judgement = judge(faults, answer("", leaked=False))
    assert judgement == Accept()
    assert isinstance(judge(faults, answer("write it so"))[1], Correct)


def test_a_model_with_a_tool_interface_is_told_once() -> None:
    faults, judgement = judge(Faults(), answer(""))
    assert isinstance(judgement, Correct)
    assert "use the tool interface" in judgement.text
    assert isinstance(judge(faults, answer(""))[1], Fail)
