"""Searches: words of any script, in every place, under the session that a person started."""

from __future__ import annotations

import pytest
from tests.unit.capabilities.session_index.conftest import Library, draft, quote, run, turn

from leadline.capabilities.session_index.seam import Hit, ListQuery, QueryRefused
from leadline.core.llm.messages import ToolMessage
from leadline.core.session.events import ToolAnswered, ToolCalled

pytestmark = pytest.mark.anyio


async def search(library: Library, text: str, **options: object) -> list[Hit]:
    async with library.index() as index:
        return [*(await index.search(text, **options)).items]  # pyright: ignore[reportArgumentType]


async def found(library: Library, text: str, **options: object) -> list[str]:
    return [hit.summary.id for hit in await search(library, text, **options)]


async def test_words_are_found_in_questions_reports_quotes_and_transcripts(library: Library) -> None:
    events = run("Which lantern?", quote("The wharf is long."), draft("The estuary silts up."))
    await library.add("r-1", events, kind="research")
    await library.add("s-1", turn(1, "Tell me of customs", "The ferry sails."))
    places = {
        word: [(hit.summary.id, hit.place) for hit in await search(library, word)]
        for word in ("lantern", "wharf", "estuary", "customs", "ferry")
    }
    assert places["lantern"][0][0] == "r-1"
    assert places["wharf"] == [("r-1", "quote")] and places["estuary"] == [("r-1", "report")]
    assert places["customs"][0][0] == "s-1" and places["ferry"] == [("s-1", "transcript")]


async def test_words_of_tool_calls_and_the_beginning_of_their_results_are_found(library: Library) -> None:
    result = ToolMessage("t1", "c1", "read", "mooring " + "x " * 2_000 + "capstan")
    called = ToolCalled(call_id="c1", name="read", arguments='{"path": "bollard.md"}')
    await library.add("s-1", [called, ToolAnswered(message=result)])
    assert [await found(library, word) for word in ("bollard", "mooring", "capstan")] == [
        ["s-1"],
        ["s-1"],
        [],
    ]


@pytest.mark.parametrize(
    "word", ["港口", "博物馆", "館", "东京港", "灯台", "とうだい", "カメラ", "부산항", "深度研究"]
)
async def test_words_of_scripts_without_spaces_are_found_inside_their_sentences(
    library: Library, word: str
) -> None:
    await library.add("r-1", run("?", draft(f"根据记录，{word}的参观人数在冬季减少。")), kind="research")
    await library.add("s-1", turn(1, "完全不同的内容"))
    hits = await search(library, word)
    assert [hit.summary.id for hit in hits] == ["r-1"]
    assert [hits[0].snippet[a:b] for a, b in hits[0].marks] == [word]


@pytest.mark.parametrize("word", ["15,000", "Python", "python 学习", "PostgreSQL16"])
async def test_a_number_or_a_name_in_the_midst_of_such_letters_is_a_word(library: Library, word: str) -> None:
    await library.add(
        "r-1", run("?", draft("一泊15,000円まで。用Python学习PostgreSQL16数据库。")), kind="research"
    )
    await library.add("s-1", turn(1, "完全不同的内容"))
    (hit,) = await search(library, word)
    assert (hit.summary.id, hit.place) == ("r-1", "report")
    assert hit.snippet.endswith("Found 一泊15,000円まで。用Python学习PostgreSQL16数据库。")
    shown = [hit.snippet[a:b] for a, b in hit.marks]
    assert shown and all(part.casefold() in word.casefold() for part in shown)


async def test_a_question_without_spaces_comes_before_what_was_said_on_it(library: Library) -> None:
    asked = "东京的酒店每晚多少钱"
    await library.add("s-1", turn(1, "Prices", f"{asked}？" * 3))
    await library.add("r-1", run(asked), kind="research")
    hits = await search(library, asked)
    assert [(hit.summary.id, hit.place) for hit in hits] == [("r-1", "question"), ("s-1", "transcript")]


async def test_pairs_of_letters_from_different_places_do_not_make_a_word(library: Library) -> None:
    await library.add("s-1", turn(1, "港口在北方，口径不同，径流很大"))
    assert await found(library, "港口径流") == [] and await found(library, "口径不同") == ["s-1"]


async def test_case_accents_and_endings_do_not_matter(library: Library) -> None:
    await library.add("s-1", turn(1, "The Café measured depths"))
    assert [await found(library, word) for word in ("CAFE", "measuring", "depth")] == [["s-1"]] * 3


async def test_all_words_are_asked_for_and_any_where_none_has_all(library: Library) -> None:
    await library.add("s-1", turn(1, "red harbour"))
    await library.add("s-2", turn(1, "red lantern"))
    assert await found(library, "red lantern") == ["s-2"]
    assert sorted(await found(library, "harbour lantern")) == ["s-1", "s-2"]
    assert await found(library, "nothing") == []


@pytest.mark.parametrize(
    "text", ['"', "a AND", "NEAR(", "title:", "-x", "*", "'; DROP TABLE session;--", "a^2", "\x00"]
)
async def test_nothing_that_is_typed_is_syntax(library: Library, text: str) -> None:
    await library.add("s-1", turn(1, "a title x drop table near 2 session"))
    async with library.index() as index:
        try:
            await index.search(text)
        except QueryRefused as refused:
            assert "no word" in str(refused)
        assert len((await index.list()).items) == 1


async def test_what_a_child_said_is_found_under_the_run_it_worked_for(library: Library) -> None:
    await library.add("r-1", run("Why?"), kind="research")
    await library.add("c-1", turn(1, "Search the unit", kind="agent"), parent="r-1", depth=1)
    await library.add("c-2", turn(1, "A capstan turns", kind="agent"), parent="c-1", depth=2)
    await library.add("x-1", turn(1, "An orphan capstan", kind="agent"), parent="gone", depth=1)
    hits = await search(library, "capstan")
    assert {(hit.summary.id, hit.session) for hit in hits} == {("r-1", "c-2"), ("x-1", "x-1")}
    async with library.index() as index:
        assert [one.id for one in (await index.list(ListQuery(text="capstan"))).items] == ["r-1"]
        both = await index.list(ListQuery(text="capstan", roots_only=False))
        assert [one.id for one in both.items] == ["x-1", "c-2"]


async def test_a_fork_stands_for_itself(library: Library) -> None:
    await library.add("s-1", turn(1, "anchor"))
    async with library.index():
        source = await library.store.read("s-1")
    await library.add("s-2", turn(1, "anchor"), parent=source.id)
    assert sorted(await found(library, "anchor")) == ["s-1", "s-2"]


async def test_parents_that_go_in_a_circle_do_no_harm(library: Library) -> None:
    await library.add("s-1", turn(1, "capstan", kind="agent"), parent="s-2", depth=2)
    await library.add("s-2", turn(1, "capstan", kind="agent"), parent="s-1", depth=2)
    assert sorted(await found(library, "capstan")) == ["s-1", "s-2"]


async def test_a_search_may_be_of_one_kind_and_goes_page_by_page(library: Library) -> None:
    for number in range(5):
        await library.add(f"s-{number}", turn(1, "anchor"))
    await library.add("r-1", run("anchor?"), kind="research")
    assert await found(library, "anchor", kind="research") == ["r-1"]
    async with library.index() as index:
        first = await index.search("anchor", limit=4)
        second = await index.search("anchor", limit=4, cursor=first.cursor)
    assert len(first.items) == 4 and len(second.items) == 2 and second.cursor is None
    assert len({hit.summary.id for hit in (*first.items, *second.items)}) == 6


async def test_where_more_match_than_are_weighed_all_are_still_found(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.capabilities.session_index.providers.searching._WEIGHED", 2)
    monkeypatch.setattr("leadline.capabilities.session_index.providers.searching._FIRST", 1)
    for number in range(7):
        await library.add(f"s-{number}", turn(1, "anchor"))
    async with library.index() as index:
        seen: list[str] = []
        cursor = None
        while True:
            page = await index.search("anchor", limit=3, cursor=cursor)
            seen += [hit.summary.id for hit in page.items]
            cursor = page.cursor
            if cursor is None:
                break
    assert sorted(seen) == [f"s-{number}" for number in range(7)]
    assert {*seen[:2]} <= {"s-6", "s-5", "s-4", "s-3"}


async def test_a_later_draft_takes_the_place_of_the_earlier(library: Library) -> None:
    await library.add("r-1", run("?", draft("The capstan turned."), status=None), kind="research")
    assert await found(library, "capstan") == ["r-1"]
    await library.append("r-1", draft("The anchor fell."))
    assert await found(library, "capstan") == [] and await found(library, "anchor") == ["r-1"]


async def test_a_snippet_is_one_line_around_the_words(library: Library) -> None:
    await library.add("s-1", turn(1, "x", "word " * 200 + "\nthe capstan\tturned\n" + "more " * 200))
    (hit,) = await search(library, "capstan turn")
    assert [hit.snippet[a:b] for a, b in hit.marks] == ["capstan", "turned"]
    assert "\n" not in hit.snippet and len(hit.snippet) < 300 and hit.snippet.startswith("…")
