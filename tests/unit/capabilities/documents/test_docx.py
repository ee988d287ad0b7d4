"""DOCX files give paragraphs, headings and tables; bombs are refused."""

from __future__ import annotations

import zipfile
from io import BytesIO

from leadline.capabilities.documents.seam import Limits


def paragraph(text: str, style: str = "") -> str:
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{look}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
    "<dc:title>{title}</dc:title><dcterms:created>{created}</dcterms:created>"
    "<dcterms:modified>{modified}</dcterms:modified></cp:coreProperties>"
)


def test_headings_paragraphs_and_tables_stay_readable(read, make_docx):
    body = (
        paragraph("The Brief", "Heading1")
        + paragraph("One sentence.")
        + table(("Spec", "Now"), ("Load", "600 kg"))
    )
    extraction = read(make_docx(body), "a.docx")
    assert extraction.outcome == "ok"
    assert extraction.text == "# The Brief\n\nOne sentence.\n\n| Spec | Now |\n| Load | 600 kg |"
    assert extraction.title == "The Brief"


def test_title_and_date_come_from_the_core_properties(read, make_docx):
    core = CORE.format(title="Product Brief", created="2026-01-02T03:04:05Z", modified="2026-03-04T05:06:07Z")
    extraction = read(make_docx(paragraph("Text."), core), "a.docx")
    assert (extraction.title, extraction.published) == ("Product Brief", "2026-03-04")


def test_the_date_of_the_template_is_no_date(read, make_docx):
    core = CORE.format(title="", created="2013-12-23T23:15:00Z", modified="2013-12-23T23:15:00Z")
    assert read(make_docx(paragraph("Text."), core), "a.docx").published is None


def test_a_sentence_typed_over_several_paragraphs_is_one_block(read, make_docx):
    body = paragraph("The product is planned for launch in the fourth quarter at a") + paragraph(
        "price of 56,000."
    )
    assert read(make_docx(body), "a.docx").text == (
        "The product is planned for launch in the fourth quarter at a\nprice of 56,000."
    )


def test_a_file_is_known_by_its_content_not_its_name(read, make_docx):
    assert read(make_docx(paragraph("Text.")), "download").text == "Text."


def test_a_document_without_text_is_thin(read, make_docx):
    assert read(make_docx(paragraph("")), "a.docx").outcome == "thin"


def test_a_packed_bomb_is_refused_before_it_is_unpacked(read, make_docx):
    data = make_docx(paragraph("Text."), extra={"word/media/x.bin": b"\0" * 3_000_000})
    assert len(data) < 20_000
    extraction = read(data, "a.docx", Limits(max_expanded=1_000_000))
    assert extraction.outcome == "unsupported"
    assert "over the limit of 1,000,000" in extraction.reason


def test_entities_that_multiply_do_not_fill_the_memory(read, make_docx):
    entities = '<!DOCTYPE w [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">'
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    good = make_docx(paragraph("&i;"))
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(good)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for item in source.namelist():
            data = source.read(item)
            target.writestr(item, entities.encode() + b"]>" + data if item == "word/document.xml" else data)
    extraction = read(out.getvalue(), "a.docx")
    assert len(extraction.text) < 1_000_000


def test_a_damaged_package_is_an_error(read, make_docx):
    data = make_docx(paragraph("Text."))
    assert read(data[: len(data) // 2], "a.docx").outcome == "error"
    assert read(make_docx("<w:p><w:broken"), "a.docx").outcome == "error"


def test_a_packed_file_that_is_no_docx_is_unsupported(read):
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "hello")
    assert read(out.getvalue(), "a.zip").media_type == "application/zip"
    extraction = read(out.getvalue(), "a.docx")
    assert (extraction.outcome, extraction.reason) == (
        "unsupported",
        "a packed file without word/document.xml: not a DOCX",
    )


def test_a_document_with_a_password_is_blocked(read):
    data = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + b"\0" * 600
        + "EncryptedPackage".encode("utf-16-le")
        + b"\0" * 600
    )
    extraction = read(data, "secret.docx")
    assert (extraction.outcome, extraction.reason) == ("blocked", "encrypted: needs a password")


def test_the_shared_brief_reads_as_its_author_wrote_it(read, shared_data):
    file = shared_data / "company-share" / "product" / "vlx500_product_brief.docx"
    text = read(file.read_bytes(), file.name).text
    assert "targeted for launch in\n**Q4 2026** at list price **$56,000**" in text
    assert "| Payload | 600 kg | 950 kg |\n| Top speed |" in text
