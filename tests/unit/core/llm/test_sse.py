"""Server-sent events from bytes, however the bytes are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leadline.core.llm.sse import SseDecoder, SseEvent


def decoded(*parts: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for part in parts for event in decoder.feed(part)]


STREAM = (
    "\ufeff: a comment\r\ndata: größe 漢字 🙂\r\n\r\n"
    "event: note\rdata: one\rdata:two\r\r"
    "id: 7\ndata\ndata: \n\nunknown: x\n\n: keep-alive\n\ndata: last\r\n\n"
).encode()
EVENTS = [
    SseEvent("größe 漢字 🙂"),
    SseEvent("one\ntwo", "note"),
    SseEvent("\n", id="7"),
    SseEvent("last", id="7"),
]


def test_a_stream_with_every_line_end_comment_bom_and_several_data_lines_is_read() -> None:
    assert decoded(STREAM) == EVENTS


def test_every_cut_position_gives_the_same_events() -> None:
    for at in range(len(STREAM) + 1):
        assert decoded(STREAM[:at], STREAM[at:]) == EVENTS, at


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    assert decoded(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == EVENTS


def test_an_event_that_no_blank_line_ends_is_not_dispatched() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: [DONE]\n") == []
    assert decoder.residue


def test_a_carriage_return_ends_a_line_without_waiting_for_what_follows() -> None:
    assert decoded(b"data: x\r\r") == [SseEvent("x")]
    assert decoded(b"data: x\r", b"\ndata: y\r", b"\n\r", b"\n") == [SseEvent("x\ny")]


def test_bytes_that_are_not_utf_8_are_replaced() -> None:
    assert decoded(b"data: \xff!\n\n") == [SseEvent("\ufffd!")]


lines = st.lists(
    st.text(st.characters(exclude_characters="\r\n\ufeff", exclude_categories=("Cs",)), max_size=8),
    min_size=1,
)


@given(st.lists(lines, max_size=5), st.sampled_from(["\n", "\r", "\r\n"]), st.data())
def test_any_fragmentation_gives_the_events_that_were_written(
    events: list[list[str]], end: str, data: st.DataObject
) -> None:
    raw = "".join("".join(f"data: {line}{end}" for line in event) + end for event in events).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    parts = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert [event.data for event in decoded(*parts)] == ["\n".join(event) for event in events]
