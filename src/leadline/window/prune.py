"""Chooses old tool results whose content may be left out, and says what stands for each."""

from __future__ import annotations

from leadline.core.llm.messages import ToolMessage
from leadline.core.session.events import Stub
from leadline.window.gauge import Gauge


def stub_text(message: ToolMessage, *, recall: bool) -> str:
    """What stands for a result. `recall`: whether the model can look it up again."""
    left = f"[result of {message.name}, {len(message.content):,} characters, is left out here"
    return f'{left}; recall it with id "{message.id}"]' if recall else f"{left}]"


def prunable(gauge: Gauge, keep: int, least: int, *, recall: bool) -> tuple[Stub, ...]:
    """A stub for every result that is large, older than the newest `keep` tokens of results, and was answered.

    What is a stub already is smaller than `least` tokens, so that the same results are never chosen twice.
    """
    unread = gauge.unread()
    chosen: list[Stub] = []
    kept = 0
    for at in range(len(gauge.messages) - 1, -1, -1):
        message, size = gauge.messages[at], gauge.sizes[at]
        if not isinstance(message, ToolMessage):
            continue
        if at >= unread or kept + size <= keep:
            kept += size
            continue
        kept = max(kept, keep)
        if size >= least:
            text = stub_text(message, recall=recall)
            if gauge.text(text) * 2 < size:
                chosen.append(Stub(message.id, text))
    return tuple(reversed(chosen))


def pruned_size(gauge: Gauge, stubs: tuple[Stub, ...]) -> int:
    """The size of the whole request with these stubs."""
    texts = {stub.message_id: stub.text for stub in stubs}
    saved = sum(
        size - gauge.text(texts[message.id])
        for message, size in zip(gauge.messages, gauge.sizes, strict=True)
        if message.id in texts
    )
    return gauge.total - saved
