"""What the windows of a run's models mean for it."""

from __future__ import annotations

import pytest

from leadline.core.llm.adapter import ModelInfo, Models
from leadline.core.llm.request import ModelRef
from leadline.kernel.context import Kernel
from leadline.research.engine.windows import LEAST_RESULT, check_question, result_tokens, windows_of
from leadline.research.request import RequestRefused, ResearchRequest
from leadline.testing.scripted import ScriptedModel


@pytest.mark.anyio
async def test_each_role_has_the_window_of_its_own_model_where_that_is_known() -> None:
    async with Kernel() as kernel:
        models = Models(ModelRef("small", "m"))
        models.register(
            kernel.root, ScriptedModel(provider="small", info=ModelInfo("m", context_window=8192))
        )
        models.register(
            kernel.root, ScriptedModel(provider="large", info=ModelInfo("l", context_window=200_000))
        )
        models.register(kernel.root, ScriptedModel(provider="dark", info=ModelInfo("d")))
        routed = {"writer": "large/l", "planner": "dark/d"}
        assert windows_of(models, models.default, routed) == {"researcher": 8192, "writer": 200_000}


def test_all_source_calls_of_a_unit_fit_beside_its_instructions() -> None:
    for window in (4096, 8192, 32_768, 1_000_000):
        for calls in (1, 5, 20):
            tokens = result_tokens(window, calls)
            assert tokens is not None
            assert tokens == LEAST_RESULT or (tokens * calls <= window * 0.4 and tokens <= window * 0.14)
    assert result_tokens(None, 5) is None


def test_a_question_has_to_leave_room_in_the_smallest_window() -> None:
    long = ResearchRequest(question="What may a hotel night cost?", context="The policy says much. " * 600)
    check_question(long, {})
    check_question(long, {"writer": 100_000})
    with pytest.raises(RequestRefused, match=r"window of 8,192.*document of the corpus"):
        check_question(long, {"writer": 100_000, "researcher": 8192})
