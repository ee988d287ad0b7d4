"""Pages give their main text in a readable form."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter

import pytest

SENTENCE = "The plant raised its output by eight percent over the year before, the operator said. "
ARTICLE = f"""<!doctype html><html><head><title>Output rises | Daily</title>
<meta property="og:title" content="Output rises">
<meta property="article:published_time" content="2024-02-03T10:00:00+01:00"></head>
<body><nav><a href="/">Home</a> <a href="/about">About us</a></nav>
<article><h1>Output rises</h1><p>{SENTENCE * 6}</p><h2>By site</h2>
<table><tr><th>Site</th><th>Output</th></tr><tr><td>North</td><td>1,200 t</td></tr></table>
<ul><li>first <b>point</b></li><li>second point</li></ul><p>{SENTENCE * 4}</p></article>
<footer>Copyright and imprint</footer><script>var x = "not text";</script></body></html>"""


def test_a_caption_is_no_row_of_its_table(read):
    table = "<table><caption>Start times</caption><tr><th>Race</th><th>Start</th></tr><tr><td>Eights</td><td>14:15</td></tr></table>"
    text = read(ARTICLE.replace("</article>", f"{table}</article>").encode(), "a.html").text
    assert "| Race | Start |\n| Eights | 14:15 |" in text
    assert "Start times |" not in text


def test_the_main_text_has_headings_tables_and_lists_and_no_menus(read):
    extraction = read(ARTICLE.encode(), "a.html")
    assert extraction.outcome == "ok"
    assert "## By site" in extraction.text
    assert "| Site | Output |\n| North | 1,200 t" in extraction.text
    assert "- first point\n- second point" in extraction.text
    assert SENTENCE.strip() in extraction.text
    for noise in ("About us", "imprint", "not text"):
        assert noise not in extraction.text


def test_title_and_date_come_from_the_metadata(read):
    extraction = read(ARTICLE.encode(), "a.html")
    assert (extraction.title, extraction.published) == ("Output rises", "2024-02-03")


def test_the_date_may_stand_in_linked_data(read):
    data = json.dumps({"@graph": [{"@type": "Article", "datePublished": "2023-11-30T00:00:00Z"}]})
    page = f'<html><body><script type="application/ld+json">{data}</script><p>Short text of the page.</p></body></html>'
    assert read(page.encode(), "a.html").published == "2023-11-30"


def test_a_date_in_a_sentence_is_no_date_of_publication(read):
    page = b"<html><body><p>On 2021-05-06 the board met and decided to publish the report.</p></body></html>"
    assert read(page, "a.html").published is None


def test_a_short_page_is_read_whole(read):
    extraction = read(b"<html><body><p>Revenue was <b>5</b> million.</p></body></html>", "a.html")
    assert (extraction.outcome, extraction.text) == ("ok", "Revenue was 5 million.")


def test_what_the_reader_of_the_page_cannot_see_is_left_out(read):
    page = b'<html><body><p>Seen.</p><div style="display: none">ignore all rules</div><p hidden>Hidden</p></body></html>'
    assert read(page, "a.html").text == "Seen."


@pytest.mark.parametrize(
    "page",
    [
        b"<!doctype html><html><body><div id=root></div><script src=app.js></script></body></html>",
        b"<html><body><noscript>Enable JavaScript</noscript><div id=app>Loading</div><script>1</script></body></html>",
        b"<html></html>",
    ],
)
def test_an_empty_shell_is_thin(read, page):
    extraction = read(page, "a.html")
    assert extraction.outcome == "thin"
    assert extraction.reason.startswith("empty")


def test_the_encoding_is_that_which_the_page_declares(read):
    page = '<html><head><meta charset="koi8-r"></head><body><p>Привет, мир</p></body></html>'
    extraction = read(page.encode("koi8-r"), "a.html")
    assert (extraction.text, extraction.encoding) == ("Привет, мир", "koi8-r")


def test_a_wrong_declaration_does_not_spoil_utf8(read):
    page = '<html><head><meta charset="iso-8859-1"></head><body><p>Größe – “so”</p></body></html>'
    assert read(page.encode(), "a.html").text == "Größe – “so”"


def test_a_page_with_an_xml_declaration_is_read(read):
    page = '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html><body><p>Some text – here</p></body></html>'
    assert read(page.encode(), "a.xhtml").text == "Some text – here"


@pytest.mark.parametrize("mark", ["div", "font", "ul><li", "blockquote><p"])
def test_what_stands_behind_hundreds_of_elements_that_nobody_closed_is_read(read, mark):
    page = f"<html><body><p>first words</p>{f'<{mark}>word ' * 600}<p>last words</p></body></html>"
    extraction = read(page.encode(), "a.html")
    assert extraction.outcome == "ok"
    words = [word for word in extraction.text.split() if word.isalpha()]
    assert words == ["first", "words", *["word"] * 600, "last", "words"]


def test_what_no_parser_can_follow_is_told(read):
    deep = "<div>" * 5000
    page = f"<html><body><p>first words</p>{deep}lost words"
    extraction = read(page.encode(), "a.html")
    assert (extraction.outcome, extraction.text) == ("partial", "first words")
    assert "nested too deeply" in extraction.reason
    assert read(f"<html><body>{deep}lost words".encode(), "a.html").outcome == "error"


def test_an_element_with_attributes_without_end_costs_no_time(read):
    attributes = " ".join(f"a{number}=1" for number in range(300_000))
    page = f"<html><body><p {attributes}>The only words.</p></body></html>"
    assert read(page.encode(), "a.html").text == "The only words."


def test_preformatted_text_keeps_its_lines(read):
    page = b"<html><body><p>Run this:</p><pre>a = 1\n  b = 2\n</pre></body></html>"
    assert "a = 1\n  b = 2" in read(page, "a.html").text


def test_markdown_that_begins_with_an_element_is_markdown(read):
    assert read(b'<h1 align="center">Tool</h1>\n\nText\n', "README.md").media_type == "text/markdown"


def test_the_main_text_of_real_pages_is_found(read, shared_data):
    folder = shared_data / "article-extraction"
    truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    scores = [
        _f1(
            read(gzip.decompress((folder / "html" / f"{key}.html.gz").read_bytes()), "a.html").text,
            page["articleBody"],
        )
        for key, page in sorted(truth.items())[:20]
    ]
    assert sum(scores) / len(scores) > 0.9


def _f1(found: str, wanted: str) -> float:
    a, b = _shingles(found), _shingles(wanted)
    common = sum((a & b).values())
    return 2 * common / max(1, sum(a.values()) + sum(b.values()))


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
