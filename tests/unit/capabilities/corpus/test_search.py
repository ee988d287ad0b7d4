"""Search finds words in any script, ranks alike everywhere, and takes free text for nothing else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.capabilities.corpus.providers.query import fold, parse

pytestmark = pytest.mark.anyio

FILLER = "Nothing in this paragraph has to do with what anybody asks about. " * 12


def found(corpus, query: str, limit: int = 8) -> list[str]:
    return [hit.document.location for hit in corpus.search(query, limit)]


async def test_documents_with_all_words_come_first(desk, folder, write):
    write(
        folder,
        {
            "a.md": "The fleet was large. Availability of parts was poor.",
            "b.md": "The fleet moved.",
            "c.md": "Availability matters.",
            "d.md": "Unrelated text.",
        },
    )
    corpus = await desk.open(folder)
    assert found(corpus, "fleet availability")[0] == "a.md"
    assert set(found(corpus, "fleet availability")) == {"a.md", "b.md", "c.md"}


async def test_words_are_found_with_their_endings_and_without_accents(desk, folder, write):
    write(folder, {"a.md": "The café reported rising revenues in São Paulo."})
    corpus = await desk.open(folder)
    for query in ("cafe", "CAFÉ", "revenue", "reports", "sao paulo", "What were the revenues?"):
        assert found(corpus, query) == ["a.md"], query
    assert found(corpus, "the in of") == ["a.md"]
    assert found(corpus, "absent") == []


async def test_a_number_is_found_as_it_is_written(desk, folder, write):
    write(folder, {"a.md": "They deployed 1,180 units.", "b.md": "They deployed 180 units and 1 more."})
    corpus = await desk.open(folder)
    assert found(corpus, "1,180") == ["a.md"]


async def test_a_title_counts_more_than_the_text(desk, folder, write):
    write(
        folder, {"a.md": f"# Notes\n\nThe audit is mentioned once. {FILLER}", "b.md": f"# Audit\n\n{FILLER}"}
    )
    corpus = await desk.open(folder)
    assert found(corpus, "audit") == ["b.md", "a.md"]


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '"weird',
        "a AND",
        "NEAR(a b)",
        "title: x",
        "-fleet",
        "fleet*",
        "^fleet",
        "{a b} : c",
        "fleet OR OR",
        "(((",
        "'; DROP TABLE words; --",
        "😀",
        "\x00",
        "a\u0000b",
        "fleet\n\nNOT fleet",
        "x" * 5000,
        "word " * 500,
        "\ud800",
        "",
        "   ",
        "…—“”",
    ],
)
async def test_no_query_is_syntax(desk, folder, write, query):
    write(folder, {"a.md": "The fleet."})
    corpus = await desk.open(folder)
    corpus.search(query)
    assert found(corpus, "fleet") == ["a.md"]


async def test_operators_are_words_like_others(desk, folder, write):
    write(folder, {"a.md": "Near the quay.", "b.md": "Fleet."})
    corpus = await desk.open(folder)
    assert found(corpus, "NEAR(fleet)") != []
    assert "b.md" in found(corpus, "-fleet")


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("营业收入", "zh.md"),
        ("公司的营业收入是多少？", "zh.md"),
        ("亿", "zh.md"),
        ("売上高", "ja.md"),
        ("パーセント増加", "ja.md"),
        ("매출", "ko.md"),
        ("8月", "zh.md"),
    ],
)
async def test_scripts_without_spaces_are_searched(desk, folder, write, query, wanted):
    write(
        folder,
        {
            "zh.md": "本季度公司营业收入为十二亿元，8月同比增长百分之八。",
            "ja.md": "当社の売上高は前年比で八パーセント増加しました。",
            "ko.md": "회사의 매출은 작년보다 증가했습니다.",
            "en.md": "Nothing of the kind.",
        },
    )
    corpus = await desk.open(folder)
    assert found(corpus, query)[0] == wanted


async def test_a_snippet_is_the_text_at_its_place_and_shows_the_words(desk, folder, write):
    write(folder, {"a.md": f"# T\n\n{FILLER}\n\n{FILLER} The zeppelin landed in Ghent. {FILLER}"})
    corpus = await desk.open(folder)
    hit = corpus.search("zeppelin ghent")[0]
    assert "The zeppelin landed in Ghent." in hit.snippet
    assert corpus.text(hit.document.id)[hit.start : hit.end] == hit.snippet
    assert len(hit.snippet) <= 600


async def test_a_document_comes_once_with_its_best_passages(desk, folder, write):
    write(folder, {"a.md": f"About whales.\n\n{FILLER}\n\n" * 6, "b.md": "One whale."})
    corpus = await desk.open(folder)
    hits = corpus.search("whale")
    assert sorted(hit.document.location for hit in hits) == ["a.md", "b.md"]
    long = next(hit for hit in hits if hit.document.location == "a.md")
    assert len(long.more) == 2
    spans = [(long.start, long.end), *((each.start, each.end) for each in long.more)]
    assert len(set(spans)) == 3
    text = corpus.text(long.document.id)
    assert all(text[each.start : each.end] == each.text for each in long.more)


@pytest.mark.case("W08")
async def test_one_huge_file_does_not_crowd_out_the_others(desk, folder, write):
    write(folder, {"words.txt": "tide harbour\n" * 60_000})
    write(folder, {f"good{n}.md": f"The tide at harbour {n} was measured. {FILLER}" for n in range(3)})
    corpus = await desk.open(folder)
    hits = corpus.search("tide harbour measured")
    assert {hit.document.location for hit in hits} == {"words.txt", "good0.md", "good1.md", "good2.md"}
    assert hits[-1].document.location == "words.txt"


async def test_equal_documents_are_ordered_by_location_however_they_came_in(desk, folder, tmp_path, write):
    names = [f"{n:03}.md" for n in range(120)]
    write(folder, dict.fromkeys(names[60:], "The same sentence about tides."))
    (await desk.open(folder)).close()
    write(folder, dict.fromkeys(names[:60], "The same sentence about tides."))
    assert found(await desk.open(folder), "tides", 10) == names[:10]


async def test_another_machine_gives_the_same_hits(desk, folder, tmp_path, write):
    files = {f"{n}.md": f"# Doc {n}\n\nTides {'and storms ' * (n % 4)}were seen. {FILLER}" for n in range(40)}
    write(folder, files)
    first = await desk.open(folder)
    other = tmp_path / "elsewhere" / "corpus"
    write(other, dict(list(files.items())[20:]))
    (await desk.open(other)).close()
    write(other, dict(list(files.items())[:20]))
    second = await desk.open(other)
    for query in ("tides", "storms seen", "doc 7"):
        assert [
            (hit.document.id, hit.score, hit.start, hit.end, hit.snippet) for hit in first.search(query, 12)
        ] == [
            (hit.document.id, hit.score, hit.start, hit.end, hit.snippet) for hit in second.search(query, 12)
        ]


async def test_the_limit_holds(desk, folder, write):
    write(folder, {f"{n}.md": "tides" for n in range(30)})
    corpus = await desk.open(folder)
    assert [len(corpus.search("tides", limit)) for limit in (0, 1, 5, 100)] == [0, 1, 5, 30]
    assert [hit.rank for hit in corpus.search("tides", 3)] == [1, 2, 3]


async def test_only_readable_documents_are_found(desk, folder, write):
    write(folder, {"a.md": "tides", "b.bin": b"\x89PNG\r\n\x1a\n" + b"tides" + b"\0" * 50})
    corpus = await desk.open(folder)
    assert found(corpus, "tides png") == ["a.md"]


async def test_pages_are_told_with_hits(desk, folder, shared_data):
    corpus = await desk.open(shared_data / "pdf")
    hit = corpus.search("Mannigfaltigkeit mit Rand")[0]
    assert hit.page == hit.document.snapshot.page_at(hit.start)
    assert hit.page is not None


async def test_the_questions_of_a_company_find_their_documents(desk, shared_data):
    corpus = await desk.open(shared_data / "company-share")
    assert found(corpus, "What was fleet availability in Q1 2026?")[0] == "ops/q1_2026_ops_report.pdf"
    assert "product/vlx500_product_brief.docx" in found(corpus, "list price of the VLX-500")[:2]
    assert (
        found(corpus, "How many days may employees work from another country?")[0]
        == "hr/remote_work_policy.md"
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=80))
def test_any_text_parses_into_quoted_terms_or_nothing(text):
    query = parse(text)
    if query is None:
        return
    for part in query.expression.split(" OR "):
        word = part.removesuffix(" *")
        assert word.startswith('"')
        assert word.endswith('"')
        assert '"' not in word[1:-1]


@given(st.text(max_size=200))
def test_folding_keeps_offsets(text):
    assert len(fold(text)) == len(text)


GLUED = {
    "zh.md": "学习Python课程的费用是每人500元。型号VLX-500的重量为1,250克。",
    "ja.md": "一泊15,000円（税込）です。Kubernetesクラスタは2024年に導入した。",
    "ko.md": "요금은 12,000원이며 Redis서버를 씁니다.",
    "other.md": "Cythonic 5000 115,000 112,000 Kubernetesque",
}


@pytest.mark.parametrize(
    ("query", "location", "shown"),
    [
        ("python", "zh.md", "Python"),
        ("How much are Pythons?", "zh.md", "Python"),
        ("500", "zh.md", "500"),
        ("1,250", "zh.md", "1,250"),
        ("VLX-500", "zh.md", "VLX"),
        ("15,000", "ja.md", "15,000"),
        ("kubernetes", "ja.md", "Kubernetes"),
        ("2024", "ja.md", "2024"),
        ("12,000", "ko.md", "12,000"),
        ("redis", "ko.md", "Redis"),
    ],
)
async def test_what_is_glued_to_letters_without_spaces_is_a_word(desk, folder, write, query, location, shown):
    write(folder, GLUED)
    corpus = await desk.open(folder)
    assert found(corpus, query) == [location]
    query_of = parse(query)
    assert query_of
    text = GLUED[location]
    places = {text[start:end] for start, end, _ in query_of.found_in(fold(text))}
    assert shown in places


@pytest.mark.parametrize("form", ["NFC", "NFD"])
async def test_what_is_shown_of_letters_without_spaces_is_the_text_at_its_place(desk, folder, write, form):
    filler = unicodedata.normalize(form, "関係のない文がここに続いています、ガイド1件。 이 문장은 관계없다. ")
    said = unicodedata.normalize(form, "파이썬Python수업は一人500円です。\x03")
    text = f"# 料金A表{filler}\n\n{filler * 60}{said}{filler * 60}{said}"
    write(folder, {"a.md": text})
    corpus = await desk.open(folder)
    for query in ("Python", "500", "Python 500円"):
        (hit,) = corpus.search(query, 8)
        stored = corpus.text(hit.document.id)
        assert "Python" in hit.snippet
        assert stored[hit.start : hit.end].replace("\x03", " ") == hit.snippet
        assert hit.more
        assert all(stored[each.start : each.end].replace("\x03", " ") == each.text for each in hit.more)


async def test_a_word_in_the_last_sentence_of_a_passage_is_shown(desk, folder, write):
    write(folder, {"a.md": "Short ones stand here. " * 30 + "The last of them names Zanzibar."})
    corpus = await desk.open(folder)
    (hit,) = corpus.search("Zanzibar")
    assert "Zanzibar" in hit.snippet
