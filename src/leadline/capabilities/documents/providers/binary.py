"""Names what no other reader can read, so that the record tells why there is no text."""

from __future__ import annotations

from leadline.capabilities.documents.seam import Certainty, Extraction, Limits, Recognition

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS", "application/postscript"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\x7fELF", "application/x-executable"),
    (b"MZ", "application/x-msdownload"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)
_IN_ZIP = (
    (b"mimetypeapplication/epub+zip", "application/epub+zip"),
    (b"mimetypeapplication/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
    (
        b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.spreadsheet",
    ),
    (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
)
_TEXT_LIKE = frozenset({"application/rtf", "application/postscript"})
_ADVICE = {
    "application/x-ole-storage": "an old Office file; save it as .docx",
    "application/rtf": "rich text; save it as .docx or .txt",
    "application/postscript": "PostScript; convert it to PDF",
}


class BinaryReader:
    """The last resort: claims everything, gives no text."""

    name = "binary"
    version = "1"

    def recognise(self, data: bytes, name: str) -> Recognition | None:
        media_type = _media_type(data)
        certainty = Certainty.SIGNATURE if media_type in _TEXT_LIKE else Certainty.FALLBACK
        return Recognition(media_type, certainty)

    def read(self, data: bytes, media_type: str, name: str, limits: Limits) -> Extraction:
        reason = f"no reader for {media_type}"
        if advice := _ADVICE.get(media_type):
            reason += f" ({advice})"
        elif name.lower().endswith(".pdf"):
            reason += "; the name says PDF, but the content does not begin like one"
        return Extraction("unsupported", reason, media_type, "", None, None, (), self.name, self.version)


def _media_type(data: bytes) -> str:
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data.startswith(b"PK\x03\x04"):
        return next((kind for mark, kind in _IN_ZIP if mark in data[:4096]), "application/zip")
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "application/x-riff")
    if data[4:8] == b"ftyp":
        return "video/mp4"
    return "application/octet-stream"
