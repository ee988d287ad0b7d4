"""Turns bytes of unknown encoding into text and says which encoding it was; nothing is replaced in silence."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from leadline.capabilities.documents.seam import clean_text

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 65_536
"""Bytes looked at to guess an encoding; the whole is then decoded with it."""

_WIDER = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
}
"""Names as they are declared, and the superset that such documents are really written in (WHATWG Encoding)."""

_TYPOGRAPHIC = frozenset("“”‘’‚„–—…•€£§©®™°·«»×±²³½¼¾µ%\u00a0")
_NEVER_IN_WORDS = frozenset("±²³½¼¾µ°«»€£§©®™%„‚…")
_STRAY = 3
"""Control characters that any text may hold, such as the mark at the end of a DOS file; packed data has one in ten
bytes."""

_LATIN = ("cp1252", "cp1250", "iso-8859-2", "cp1254")
_FREQUENT = frozenset("оеаинтсрвл")
_LONE_ESCAPE = re.compile(rb"\x1b[$(]")
_SURROGATED = re.compile("[\udc80-\udcff]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class Decoded:
    """Clean text, the encoding it was in, and how many places had to be replaced by U+FFFD."""

    text: str
    encoding: str
    replaced: int = 0

    @property
    def reason(self) -> str:
        """Why the text is partial; empty if it is whole."""
        if not self.replaced:
            return ""
        places = "place is" if self.replaced == 1 else "places are"
        return f"{self.replaced} {places} not valid {self.encoding} and could not be decoded"


def decode(data: bytes, declared: str | None = None) -> Decoded:
    """The text of `data`: by byte order mark, strict UTF-8, what the document `declared`, then by its look."""
    marked = _by_mark(data)
    if marked is not None:
        return marked
    if _LONE_ESCAPE.search(data[:_SAMPLE]) and (text := _strictly(data, "iso2022_jp_ext")) is not None:
        return Decoded(clean_text(text), "iso-2022-jp")
    wide = _wide_without_mark(data)
    for encoding in (wide, "utf-8", _WIDER.get((declared or "").lower(), declared)):
        if encoding and (text := _strictly(data, encoding)) is not None:
            return Decoded(clean_text(text), encoding.lower())
    return _mostly_utf8(data) or _by_look(data) or _replacing(data, "utf-8")


def is_binary(data: bytes) -> bool:
    """Whether `data` holds control characters as no text does."""
    sample = data[:_SAMPLE]
    if sample.startswith(tuple(mark for mark, _ in _BOMS)) or _wide_without_mark(data):
        return False
    return len(_CONTROL.findall(sample)) > max(_STRAY, len(sample) // 100)


def _by_mark(data: bytes) -> Decoded | None:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            body = data[len(mark) :]
            text = _strictly(body, encoding)
            return _replacing(body, encoding) if text is None else Decoded(clean_text(text), encoding)
    return None


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _replacing(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    return Decoded(clean_text(text), encoding, max(1, text.count("\ufffd")))


def _wide_without_mark(data: bytes) -> str | None:
    """UTF-16 of mostly Latin text has a NUL in every other byte."""
    sample = data[:4096]
    if len(sample) < 4 or len(data) % 2:
        return None
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > half * 0.4 and even < half * 0.02:
        return "utf-16-le"
    if even > half * 0.4 and odd < half * 0.02:
        return "utf-16-be"
    return None


def _mostly_utf8(data: bytes) -> Decoded | None:
    """UTF-8 with a few bad bytes, as a cut or a patched file has."""
    text = data.decode("utf-8", "surrogateescape")
    bad = _SURROGATED.findall(text)
    good = sum(1 for char in text if char > "\x7f") - sum(map(len, bad))
    if good < 3 * len(bad):
        return None
    return _replacing(data, "utf-8")


def _by_look(data: bytes) -> Decoded | None:
    sample = data[:_SAMPLE]
    for look in (_western, _koi8, _east_asian, _guessed):
        encoding = look(sample)
        if encoding is None:
            continue
        text = _strictly(data, encoding)
        return _replacing(data, encoding) if text is None else Decoded(clean_text(text), encoding)
    return None


def _western(sample: bytes) -> str | None:
    """The first Latin encoding in which all that is not ASCII is a letter in a word, or typography."""
    high = sum(1 for byte in sample if byte >= 0x80)
    letters = sum(1 for byte in sample if 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A)
    if high * 3 > letters:
        return None
    for encoding in _LATIN:
        text = _strictly(sample, encoding)
        if text is not None and _is_latin_prose(text):
            return encoding
    return None


def _is_latin_prose(text: str) -> bool:
    for index, char in enumerate(text):
        if char < "\x80":
            continue
        before, after = text[index - 1 : index], text[index + 1 : index + 2]
        if char in _TYPOGRAPHIC:
            if char in _NEVER_IN_WORDS and before.isalpha() and after.isalpha():
                return False
        elif not char.isalpha() or (char.isupper() and before.islower()):
            return False
    return True


def _koi8(sample: bytes) -> str | None:
    """KOI8-R, which others take for Japanese, if the sample reads as Russian in it."""
    return "koi8_r" if _russian(sample.decode("koi8_r")) >= 0.55 else None


def _russian(text: str) -> float:
    """The share of the ten most frequent letters of Russian; 0 if this is no Cyrillic text in small letters."""
    high = [char for char in text if char > "\x7f"]
    letters = [char for char in high if "\u0400" <= char <= "\u045f"]
    small = sum(1 for char in letters if char.islower())
    if len(letters) < 10 or len(letters) < 0.95 * len(high) or small < 0.7 * len(letters):
        return 0.0
    return sum(1 for char in letters if char in _FREQUENT) / len(letters)


def _east_asian(sample: bytes) -> str | None:
    """The encoding in which nearly all double bytes are everyday characters."""
    scores = [
        (_everyday(sample, encoding), -rank, encoding)
        for rank, encoding in enumerate(("gb18030", "big5", "cp949", "euc_jp", "cp932"))
    ]
    score, _, encoding = max(scores)
    return encoding if score >= 0.8 else None


def _everyday(sample: bytes, encoding: str) -> float:
    """The share of characters beyond ASCII that the standard's first level holds; kana speak for Japanese."""
    text = _prefix(sample, encoding)
    if text is None:
        return 0.0
    high = [char for char in text if char > "\x7f"]
    if len(high) < 2:
        return 0.0
    kana = sum(1 for char in high if "\u3041" <= char <= "\u30fe")
    usual = sum(1 for char in high if _is_everyday(char, encoding))
    score = usual / len(high)
    if encoding in ("euc_jp", "cp932"):
        return score + 0.2 if kana * 5 > len(high) else score - 0.2
    if encoding == "cp949" and score > 0.95 and len(high) > 3:
        return (
            score + 0.1
        )  # the same bytes read as Chinese are everyday characters, too, but hardly ever only these
    return score - 0.3 if kana * 5 > len(high) else score


def _is_everyday(char: str, encoding: str) -> bool:
    if "\u3001" <= char <= "\u30fe" or "\uff01" <= char <= "\uff5e":
        return True
    lead = char.encode(encoding)[0]
    match encoding:
        case "gb18030":
            return 0xB0 <= lead <= 0xD7 and len(char.encode(encoding)) == 2 and "\u4e00" <= char <= "\u9fff"
        case "big5":
            return 0xA4 <= lead <= 0xC6
        case "cp949":
            return 0xB0 <= lead <= 0xC8 and "\uac00" <= char <= "\ud7a3"
        case "euc_jp":
            return 0xB0 <= lead <= 0xCF
        case _:
            return 0x88 <= lead <= 0x97 and "\u4e00" <= char <= "\u9fff"


def _prefix(sample: bytes, encoding: str) -> str | None:
    """The sample decoded; a character cut at its end is left out."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeError:
        return None


def _guessed(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes  # noqa: PLC0415 - loads large tables, and few files need it

    best = from_bytes(sample).best()
    return None if best is None else best.encoding
