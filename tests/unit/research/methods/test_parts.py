"""What a writer with a small window is asked, part by part."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.core.llm.tokens import text_tokens
from leadline.research.methods.adaptive.parts import MOST_PARTS, clipped, split, task_tokens
from leadline.research.roles.prompts import synthesis_task
from leadline.research.roles.purposes import (
    EvidenceItem,
    EvidenceSource,
    SynthesisData,
    UnitReport,
    VersionPair,
)

TOKEN = "0" * 18
WORDS = "The reservoir held 1,010 litres of water at the gauge in the year 1901. "
CJK = "水库在一九〇一年蓄水一千零一十升，水位计位于第三站。"


def item(unit: str, number: int, size: int, polarity: str = "supporting", words: str = WORDS) -> EvidenceItem:
    quote = (words * (size // len(words) + 1))[:size]
    return EvidenceItem(
        id=f"{unit}.e{number}",
        unit=unit,
        quote=quote,
        claim=quote[:200],
        polarity=polarity,  # pyright: ignore[reportArgumentType] - one of its words
        source=EvidenceSource(id=f"d-{number % 3}", title="Gauges", location="gauges.md"),
    )


def data(
    evidence: tuple[EvidenceItem, ...], findings: str = "Much water.", brief: str = "Figures."
) -> SynthesisData:
    units = tuple(dict.fromkeys(one.unit for one in evidence))
    return SynthesisData(
        question="How much water?",
        brief=brief,
        units=tuple(
            UnitReport(id=unit, title=f"Unit {unit}", question="?", status="completed", findings=findings)
            for unit in units
        ),
        evidence=evidence,
        versions=(VersionPair(newer="d-1", older="d-2", reason="dates"),),
    )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(20, 4000)), min_size=1, max_size=60),
    st.sampled_from([4096, 8192, 32_768, 200_000]),
    st.sampled_from([WORDS, CJK]),
    st.integers(0, 20_000),
)
def test_every_piece_of_evidence_is_in_one_part_or_is_named_and_every_part_fits(
    sizes: list[tuple[int, int]], window: int, words: str, long: int
) -> None:
    made = [item(f"u{unit}", at, size, words=words) for at, (unit, size) in enumerate(sizes)]
    whole = data(
        tuple(sorted(made, key=lambda one: one.unit)), findings="Water. " * (long // 7), brief="x " * 500
    )
    done = split(whole, window)
    parted = [one for part in done.parts for one in part.evidence]
    left_out = {one.id for one in done.left_out}
    assert [one.id for one in whole.evidence if one.id not in left_out] == [one.id for one in parted]
    assert len(parted) + len(left_out) == len(whole.evidence)
    for part in done.parts:
        assert part.evidence
        assert {unit.id for unit in part.units} >= {one.unit for one in part.evidence}
        assert text_tokens(synthesis_task(part, TOKEN, part=True)) <= task_tokens(window) * 1.1
    assert len(done.parts) <= 2 * MOST_PARTS
    assert split(whole, window) == done


def test_what_fits_is_asked_at_once_and_an_unknown_window_holds_everything() -> None:
    few = data(tuple(item("u1", at, 100) for at in range(5)))
    assert split(few, 8192).parts == (few,)
    many = data(tuple(item("u1", at, 4000) for at in range(200)))
    assert split(many, None).parts == (many,)


def test_of_too_much_evidence_each_unit_keeps_its_first_pieces_and_context_goes_first() -> None:
    evidence = tuple(
        item(unit, at, 1000, "context" if at == 0 else "supporting")
        for unit in ("u1", "u2")
        for at in range(80)
    )
    done = split(data(evidence), 8192)
    kept = [one.id for part in done.parts for one in part.evidence]
    assert {"u1.e1", "u2.e1"} <= set(kept)
    assert {"u1.e0", "u2.e0", "u1.e79"} <= {one.id for one in done.left_out}


def test_versions_go_to_the_part_that_has_both() -> None:
    done = split(data(tuple(item("u1", at, 1500) for at in range(12))), 8192)
    assert len(done.parts) > 1
    for part in done.parts:
        assert bool(part.versions) == ({"d-1", "d-2"} <= {one.source.id for one in part.evidence})


@pytest.mark.parametrize("text", ["short", "long " * 1000, CJK * 100])
def test_a_clipped_text_says_so(text: str) -> None:
    cut = clipped(text, 50)
    assert text_tokens(cut) <= 55
    assert cut == text or (cut.endswith(" […]") and text.startswith(cut.removesuffix(" […]")))
