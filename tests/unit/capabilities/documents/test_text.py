"""Text of any encoding is read whole, or it is said what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.capabilities.documents.providers.encoding import decode
from leadline.capabilities.documents.seam import Limits

GERMAN = "Der Umsatz stieg gegenüber dem Vorjahr um acht Prozent; größere Märkte führten."
ENGLISH = "The café’s revenue rose – by 8 % – “strongly”, it said."
CHINESE = "本季度公司营业收入为十二亿元，同比增长百分之八。管理层认为增长主要来自海外市场。"
TAIWANESE = "本季度公司營業收入為十二億元，同比增長百分之八。"
JAPANESE = "当社の売上高は前年比で八パーセント増加しました。主な要因は海外市場です。"
KOREAN = "회사의 매출은 작년보다 팔 퍼센트 증가했습니다. 주요 원인은 해외 시장입니다."
RUSSIAN = "Выручка компании выросла на восемь процентов в этом квартале."
POLISH = "Przychody spółki wzrosły o osiem procent; główną przyczyną były rynki zagraniczne."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "cp1252"),
        (ENGLISH, "cp1252"),
        (CHINESE, "gbk"),
        (CHINESE, "gb18030"),
        (TAIWANESE, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (KOREAN, "euc_kr"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (POLISH, "cp1250"),
        (ENGLISH + CHINESE, "utf-8"),
        (ENGLISH + CHINESE, "utf-8-sig"),
        (ENGLISH + CHINESE, "utf-16"),
        (ENGLISH, "utf-16-le"),
        (ENGLISH, "utf-16-be"),
        (ENGLISH + CHINESE, "utf-32"),
    ],
)
def test_text_in_a_legacy_encoding_is_decoded_and_the_encoding_recorded(read, text, encoding):
    extraction = read(text.encode(encoding), "note.txt")
    assert extraction.text == text
    assert extraction.outcome == "ok"
    assert extraction.encoding


@pytest.mark.case("T20")
def test_a_few_characters_of_gbk_are_not_taken_for_another_script(read):
    extraction = read(bytes.fromhex("d6d0cec40a610a"), "note.txt")
    assert (extraction.text, extraction.encoding) == ("中文\na\n", "gb18030")


@pytest.mark.case("T19")
def test_a_byte_order_mark_is_not_part_of_the_text(read):
    assert read(b"\xef\xbb\xbfx=1\n", "a.txt").text == "x=1\n"


def test_a_bad_byte_in_utf8_makes_the_text_partial_and_says_so(read):
    extraction = read("Größe und Länge ".encode() + b"\xff" + " über alles".encode(), "a.txt")
    assert extraction.outcome == "partial"
    assert extraction.reason == "1 place is not valid utf-8 and could not be decoded"
    assert extraction.text == "Größe und Länge \ufffd über alles"


def test_a_replacement_character_that_stands_in_the_document_is_no_loss(read):
    assert read("a \ufffd b".encode()).outcome == "ok"


@given(st.binary(max_size=400))
def test_no_bytes_make_decoding_fail_or_lose_anything_in_silence(data):
    decoded = decode(data)
    decoded.text.encode("utf-8")
    assert "\r" not in decoded.text
    if "\ufffd" in decoded.text and not decoded.replaced:
        assert "\ufffd" in data.decode(decoded.encoding, "strict")


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=200))
def test_utf8_is_kept_as_it_is(text):
    body = text.removeprefix("\ufeff")
    assert decode(body.encode("utf-8")).text == body or body.startswith("\ufeff")


def test_line_ends_become_one_and_nothing_else_changes(read):
    assert read("e\u0301 a\r\nb\rc\n\u00a0d".encode()).text == "e\u0301 a\nb\nc\n\u00a0d"


def test_an_empty_file_and_one_of_white_space_are_thin(read):
    assert (read(b"").outcome, read(b"").reason) == ("thin", "empty file")
    assert read(b" \n\t\n").outcome == "thin"


def test_a_text_over_the_limit_is_cut_and_says_where(read):
    extraction = read(b"abcdefghij" * 10, limits=Limits(max_text=25))
    assert extraction.text == "abcdefghijabcdefghijabcde"
    assert (extraction.outcome, extraction.reason) == ("partial", "text cut at 25 of 100 characters")


def test_a_file_over_the_limit_is_not_read_and_both_sizes_are_told(read):
    extraction = read(b"x" * 2000, limits=Limits(max_bytes=1000))
    assert (extraction.outcome, extraction.text) == ("unsupported", "")
    assert extraction.reason == "2,000 bytes, over the limit of 1,000"


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.md", "text/markdown"),
        ("a.csv", "text/csv"),
        ("a.json", "application/json"),
        ("a.py", "text/x-source"),
        ("README", "text/plain"),
        ("a.PDF", "text/plain"),
    ],
)
def test_kinds_of_text_are_told_apart_by_name_alone_and_kept_raw(read, name, media_type):
    extraction = read(b'{"a": [1,2]}', name)
    assert (extraction.media_type, extraction.text) == (media_type, '{"a": [1,2]}')


def test_the_title_of_markdown_is_its_front_matter_or_first_heading(read):
    matter = read(b"---\ntitle: Annual Plan\ndate: 2026-03-01\n---\n# Other\n", "a.md")
    assert (matter.title, matter.published) == ("Annual Plan", "2026-03-01")
    assert read(b"intro\n\n```\n# not this\n```\n\n## The Plan ##\n", "a.md").title == "The Plan"
    assert read(b"The Plan\n========\n\ntext\n", "a.md").title == "The Plan"


def test_a_date_in_a_sentence_is_no_date_of_publication(read):
    assert read(b"# Plan\n\nPublished on 2024-02-03 by the board.\n", "a.md").published is None


def test_a_comment_in_source_code_is_no_title(read):
    assert read(b"# setup\n\nx = 1\n", "a.py").title is None


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "image/png"),
        (
            b"PK\x03\x04" + b"\0" * 40 + b"xl/workbook.xml",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        (b"\x7fELF\x02\x01\x01\0" + b"\0" * 60, "application/x-executable"),
        (b"{\\rtf1\\ansi hello}", "application/rtf"),
        (bytes(range(256)) * 4, "application/octet-stream"),
    ],
)
def test_what_is_no_text_is_unsupported_and_its_type_named(read, data, media_type):
    extraction = read(data, "a.txt")
    assert (extraction.outcome, extraction.media_type) == ("unsupported", media_type)
    assert media_type in extraction.reason


def test_a_lone_nul_in_a_long_text_is_dropped(read):
    extraction = read(b"word " * 1000 + b"\0end", "a.txt")
    assert extraction.outcome == "ok"
    assert extraction.text.endswith("word end")


def test_russian_in_koi8_is_not_taken_for_japanese(read):
    words = "Водохранилище вмещает 1008 литров воды. Оно было построено округом в 1931 году."
    assert read(words.encode("koi8-r"), "a.txt").text == words


@pytest.mark.parametrize(
    "text",
    [b"Closed on Monday.\r\n\x1a", b"Closed\x00 on Monday.", b"\x1b[31mClosed on Monday.\x1b[0m\x07\x07"],
)
def test_a_text_with_a_few_control_characters_is_a_text(read, text):
    extraction = read(text, "a.txt")
    assert extraction.outcome == "ok"
    assert "on Monday." in extraction.text
