"""PDFs give text by page, or the reason why there is none."""

from __future__ import annotations

import zlib

import pytest

from leadline.capabilities.documents.seam import Limits

FORM = b"""%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R 7 0 R] >> >>
endobj
2 0 obj
<< /Type /Pages /Kids [3 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Annots [6 0 R 7 0 R]
/Resources << /Font << /F1 5 0 R >> >> >>
endobj
4 0 obj
<< /Length 53 >>
stream
BT /F1 12 Tf 50 700 Td (Depth of the well:) Tj ET
endstream
endobj
5 0 obj
<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>
endobj
6 0 obj
<< /Type /Annot /Subtype /Widget /FT /Tx /T (f1) /TU (in metres) /V (42) /Rect [200 690 300 710] /P 3 0 R >>
endobj
7 0 obj
<< /Type /Annot /Subtype /Widget /FT /Tx /T (f2) /TU (remarks) /Rect [200 600 300 620] /P 3 0 R >>
endobj
trailer
<< /Size 8 /Root 1 0 R >>
%%EOF
"""


def test_pages_are_spans_of_the_text(read, make_pdf):
    extraction = read(make_pdf(["First page text", "Second page text"]), "a.pdf")
    assert extraction.outcome == "ok"
    assert [extraction.text[page.start : page.end] for page in extraction.pages] == [
        "First page text",
        "Second page text",
    ]
    assert [page.number for page in extraction.pages] == [1, 2]


def test_title_and_date_come_from_the_metadata(read, make_pdf):
    info = {
        "Title": "Operations Report",
        "CreationDate": "D:20260414093000+02'00'",
        "ModDate": "D:20270101000000Z",
    }
    extraction = read(make_pdf(["Some text"], info), "a.pdf")
    assert (extraction.title, extraction.published) == ("Operations Report", "2026-04-14")


def test_a_left_over_file_name_in_the_metadata_is_no_title(read, make_pdf):
    info = {"Title": "Microsoft Word - draft7.doc", "ModDate": "D:20260101000000Z"}
    extraction = read(make_pdf(["Quarterly Report"], info), "a.pdf")
    assert (extraction.title, extraction.published) == ("Quarterly Report", "2026-01-01")


def test_a_scan_is_thin(read, make_pdf):
    extraction = read(make_pdf([None, None]), "scan.pdf")
    assert (extraction.outcome, extraction.reason) == ("thin", "scanned: no text layer")


def test_a_document_with_some_scanned_pages_is_partial_and_names_them(read, make_pdf):
    extraction = read(make_pdf(["Typed text here", None, None]), "a.pdf")
    assert extraction.outcome == "partial"
    assert extraction.reason == "pages 2, 3 of 3 have no text layer (scanned)"
    assert "Typed text here" in extraction.text


def test_pages_without_anything_are_thin(read, make_pdf):
    extraction = read(make_pdf([""]), "a.pdf")
    assert (extraction.outcome, extraction.reason) == ("thin", "no text on any page")


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.6])
def test_a_cut_file_is_an_error_or_what_can_be_saved_of_it(read, make_pdf, keep):
    whole = make_pdf(["First page text", "Second page text"])
    extraction = read(whole[: int(len(whole) * keep)], "a.pdf")
    assert extraction.outcome in ("error", "unsupported", "partial", "thin")
    assert extraction.reason


def test_a_file_without_pages_is_broken_also_after_one_with_a_password(read, make_pdf, shared_data):
    empty = make_pdf([])
    alone = read(empty, "a.pdf")
    locked = read((shared_data / "pdf" / "libreoffice-writer-password.pdf").read_bytes(), "b.pdf")
    assert (alone.outcome, locked.outcome) == ("error", "blocked")
    assert read(empty, "a.pdf") == alone


@pytest.mark.case("W06")
@pytest.mark.parametrize("layers", [1, 2])
def test_a_small_file_that_unpacks_to_gigabytes_is_not_unpacked(read, make_pdf, layers):
    packed = b"BT /F1 12 Tf (word) Tj ET " * 8_000_000
    for _ in range(layers):
        packed = zlib.compress(packed)
    plain = make_pdf(["0"])
    start = plain.index(b"<< /Length", plain.index(b"/Length 1 >>") + 1)
    end = plain.index(b"endstream", start)
    filters = b"/FlateDecode " * layers
    bomb = b"%s<< /Length %d /Filter [%s] >>\nstream\n%s\n%s" % (
        plain[:start], len(packed), filters, packed, plain[end:],
    )  # fmt: skip
    extraction = read(bomb, "a.pdf")
    assert (extraction.outcome, extraction.text) == ("unsupported", "")
    assert "unpacks to more than" in extraction.reason


def test_what_was_filled_into_a_form_is_text_of_its_page(read):
    extraction = read(FORM, "a.pdf")
    assert extraction.outcome == "ok"
    assert extraction.text == "Depth of the well:\nin metres: 42"
    assert [(page.number, page.start, page.end) for page in extraction.pages] == [
        (1, 0, len(extraction.text))
    ]


def test_garbage_behind_the_header_is_an_error(read):
    extraction = read(b"%PDF-1.7\n" + b"nonsense " * 50, "a.pdf")
    assert extraction.outcome == "error"
    assert extraction.reason.startswith("broken PDF: ")


@pytest.mark.case("W10")
def test_an_error_page_named_pdf_is_read_as_the_page_it_is(read):
    page = b"<!DOCTYPE html><html><head><title>404</title></head><body><p>The page was not found.</p></body></html>"
    extraction = read(page, "paper.pdf")
    assert extraction.media_type == "text/html"
    assert extraction.text == "The page was not found."


def test_a_text_that_mentions_the_header_is_no_pdf(read):
    assert read(b"A PDF begins with %PDF-1.7 and a newline.\n", "note.txt").media_type == "text/plain"


def test_pages_behind_the_cut_are_gone(read, make_pdf):
    extraction = read(make_pdf(["0123456789", "abcdefghij", "ABCDEFGHIJ"]), "a.pdf", Limits(max_text=15))
    assert extraction.outcome == "partial"
    assert [(page.number, page.start, page.end) for page in extraction.pages] == [(1, 0, 10), (2, 11, 15)]


def test_every_shared_pdf_ends_in_an_outcome_with_pages_that_fit(read, shared_data):
    files = sorted((shared_data / "pdf").glob("*.pdf")) + sorted(
        (shared_data / "company-share").rglob("*.pdf")
    )
    assert files
    for file in files:
        extraction = read(file.read_bytes(), file.name)
        assert extraction.outcome == ("blocked" if "password" in file.name else "ok"), file.name
        assert (extraction.reason == "") is (extraction.outcome == "ok")
        ends = [0]
        for page in extraction.pages:
            assert ends[-1] <= page.start <= page.end <= len(extraction.text)
            ends.append(page.end)
        assert "\r" not in extraction.text
        assert "\ufffe" not in extraction.text


def test_a_document_with_a_password_is_blocked_and_says_why(read, shared_data):
    extraction = read((shared_data / "pdf" / "libreoffice-writer-password.pdf").read_bytes(), "a.pdf")
    assert (extraction.outcome, extraction.reason) == ("blocked", "encrypted: needs a password")


def test_a_word_broken_at_a_line_end_keeps_its_hyphen_and_its_line_end(read, shared_data):
    text = read((shared_data / "pdf" / "minimal-document.pdf").read_bytes(), "a.pdf").text
    assert "no sea taki-\nmata sanctus" in text
