"""Reading without a kernel, and small documents made by hand."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO

import pytest

from leadline.capabilities.documents.plugin import built_in_readers
from leadline.capabilities.documents.seam import Documents, Extraction, Limits

Read = Callable[..., Extraction]


@pytest.fixture
def read() -> Read:
    """Reads bytes in the calling thread: `read(data, name="file", limits=None)`."""

    def run(data: bytes, name: str = "file", limits: Limits | None = None) -> Extraction:
        return Documents(limits, built_in_readers()).extract_now(data, name)

    return run


@pytest.fixture
def make_pdf() -> Callable[..., bytes]:
    return pdf


@pytest.fixture
def make_docx() -> Callable[..., bytes]:
    return docx


def pdf(pages: Sequence[str | None], info: Mapping[str, str] | None = None) -> bytes:
    """A PDF with one line of text a page; None stands for a page that is only an image."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    kids: list[str] = []
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    objects.append(
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 "
        b"/Length 1 >>\nstream\n\x80\nendstream"
    )
    for text in pages:
        draw = (
            "q 400 0 0 400 50 50 cm /Im0 Do Q" if text is None else f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        )
        stream = draw.encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        content = len(objects)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {content} 0 R "
            "/Resources << /Font << /F1 3 0 R >> /XObject << /Im0 4 0 R >> >> >>".encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    trailer = ""
    if info:
        objects.append(
            ("<< " + " ".join(f"/{key} ({value})" for key, value in info.items()) + " >>").encode()
        )
        trailer = f"/Info {len(objects)} 0 R "
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += (
        f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer}>>\nstartxref\n{xref}\n%%EOF\n".encode()
    )
    return bytes(out)


_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(body: str, core: str = "", extra: Mapping[str, bytes] | None = None) -> bytes:
    """A DOCX with `body` as the content of its w:body element."""
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'wordprocessingml.document.main+xml"/></Types>'
    )
    rels = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/'
        'officeDocument" Target="word/document.xml"/></Relationships>'
    )
    styles = (
        f'<w:styles {_W}><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
        "</w:styles>"
    )
    parts = {
        "[Content_Types].xml": types.encode(),
        "_rels/.rels": rels.encode(),
        "word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>".encode(),
        "word/styles.xml": styles.encode(),
        "word/_rels/document.xml.rels": rels.replace('officeDocument"', 'styles"')
        .replace("word/document.xml", "styles.xml")
        .encode(),
        **(extra or {}),
    }
    if core:
        parts["docProps/core.xml"] = core.encode()
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()
