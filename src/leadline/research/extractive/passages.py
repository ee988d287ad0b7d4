"""A document as passages that can be quoted: sentences, list items, table rows, each with what stands over it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from leadline.core.patterns import lazy_pattern
from leadline.research.extractive.language import boundaries, language_of
from leadline.research.extractive.plain import cells, fields

PassageKind = Literal["sentence", "item", "row", "answer", "pair", "list", "heading"]
MAX_QUOTE = 600
"""Characters of the longest quote."""


@dataclass(frozen=True)
class Span:
    """A stretch of the document's text, `end` exclusive."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True)
class Passage:
    """Something that can be quoted as it stands."""

    span: Span
    text: str
    kind: PassageKind
    headings: tuple[str, ...]
    """Headings over it, outermost first, without the title of the document."""
    lead: str = ""
    """The line that introduces its list, or the head of its table."""
    head: Span | None = None
    """Of a table row: the row with the names of the columns."""
    near: str = ""
    """The other sentences of its paragraph."""

    said: str = ""
    """What is compared with a question: the text, of a row its cells set apart."""

    @property
    def words(self) -> str:
        return self.said or self.text

    def moved(self, by: int) -> Passage:
        """The same passage in a text that has `by` more characters before it."""
        head = Span(self.head.start + by, self.head.end + by) if self.head else None
        return replace(self, span=Span(self.span.start + by, self.span.end + by), head=head)


@dataclass(frozen=True)
class _Line:
    start: int
    end: int
    text: str

    @property
    def bare(self) -> str:
        return self.text.strip()


@dataclass
class _Block:
    kind: Literal["heading", "item", "row", "prose"]
    start: int
    end: int
    level: int = 0


_ITEM = lazy_pattern(r"\s*(?:[-*•‣◦·–]\s+|\(?\d{1,3}[.)]\s+|\(?[a-z]\)\s+|[①-⑳])(?=\S)")
_HASH = lazy_pattern(r"\s{0,3}(#{1,6})\s+\S")
_NUMBERED = lazy_pattern(
    r"\s*(?:\d{1,2}\.)*\d{1,2}\.?\s+[A-ZÄÖÜ]\S*(?:\s+\S+){0,7}$|\s*(?:第[一二三四五六七八九十\d]+[章条節节]|[一二三四五六七八九十]、)\s*\S{0,30}$"
)
_RULE_ROW = lazy_pattern(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_UNDERLINE = lazy_pattern(r"\s*(?:={3,}|-{3,})\s*$")
_QUESTION = lazy_pattern(r"\s*(?:\*\*)?(?:Q|F|Question|Frage|Pregunta|问|質問)\s*[:：.]", re.IGNORECASE)
_ANSWER = lazy_pattern(
    r"\s*(?:\*\*)?(?:A|R|Answer|Antwort|Réponse|Respuesta|答|回答)\s*[:：.]", re.IGNORECASE
)
_CLOSED = lazy_pattern(r"[.!?。！？:：;；]['\"”’)\]*_]*$")
_CLOSING = lazy_pattern(r"(?:\*\*|__|[*_\"”’»)\]])+(?=\s|$)")
_MIN_BROKEN = 40
"""Characters of a line that may go on after a blank line, as in documents where every line is a paragraph."""
_TABLED = (".csv", ".tsv")
_CODED = frozenset(
    [
        "py",
        "pyi",
        "js",
        "jsx",
        "ts",
        "tsx",
        "java",
        "kt",
        "c",
        "h",
        "cc",
        "cpp",
        "hpp",
        "cs",
        "go",
        "rs",
        "rb",
        "php",
        "swift",
        "scala",
        "sh",
        "bash",
        "ps1",
        "sql",
        "toml",
        "yaml",
        "yml",
        "json",
        "ini",
        "cfg",
        "conf",
        "properties",
        "env",
        "lua",
        "r",
        "jl",
    ]
)
_APART = "  "
"""Between cells: more than what may stand between the groups of a number."""


def passages(text: str, location: str = "") -> tuple[Passage, ...]:
    """Everything of a document that can be quoted, in order, then short lists as wholes."""
    if location.casefold().endswith(_TABLED):
        return tuple(_delimited(text))
    if "." in location and location.casefold().rsplit(".", 1)[-1] in _CODED:
        return tuple(_coded(text))
    blocks = _blocks(text)
    single: list[Passage] = []
    whole: list[Passage] = []
    headings: list[tuple[int, str]] = []
    lead: _Block | None = None
    at = 0
    while at < len(blocks):
        block = blocks[at]
        if block.kind == "heading":
            headings = [one for one in headings if one[0] < block.level]
            if at:
                single.append(_heading(text, block, tuple(name for _, name in headings)))
            headings.append((block.level, _clean_heading(text[block.start : block.end])))
            lead, at = None, at + 1
            continue
        path = tuple(name for _, name in headings)
        group = _group(blocks, at)
        if block.kind == "row":
            single.extend(_rows(text, group, path))
        elif block.kind == "item":
            found = list(_items(text, group, path, lead))
            single.extend(found)
            whole.extend(_list(text, group, path, lead))
        else:
            single.extend(_prose(text, block, path, lead))
        is_lead = block.kind == "prose" and text[block.start : block.end].rstrip().rstrip("*_").endswith(
            (":", "：")
        )
        lead = block if is_lead else None
        at += len(group)
    return tuple(single + whole)


def _lines(text: str) -> Iterator[_Line]:
    at = 0
    for line in text.split("\n"):
        yield _Line(at, at + len(line), line)
        at += len(line) + 1


def _blocks(text: str) -> list[_Block]:
    """Headings, items, table rows and paragraphs, in order."""
    blocks: list[_Block] = []
    lines = list(_lines(text))
    open_block: _Block | None = None
    for number, line in enumerate(lines):
        following = lines[number + 1].text if number + 1 < len(lines) else ""
        if not line.bare or _RULE_ROW.fullmatch(line.text) or _UNDERLINE.fullmatch(line.text):
            open_block = _kept_open(open_block, lines, number)
            continue
        if open_block is None and _goes_on(line, blocks, lines, number):
            open_block = blocks[-1]
        made = _opened(line, following, blocks, open_block)
        if made is None:
            assert open_block is not None
            open_block.end = line.end
            continue
        blocks.append(made)
        open_block = made if made.kind in ("item", "prose") else None
    return blocks


def _kept_open(block: _Block | None, lines: Sequence[_Line], number: int) -> _Block | None:
    """An item goes on after a blank line when the next line is set in under it and is no item itself."""
    if block is None or block.kind != "item" or number + 1 >= len(lines):
        return None
    following = lines[number + 1].text
    indented = following[:2].isspace() and bool(following.strip())
    return block if indented and not _ITEM.match(following) else None


def _goes_on(line: _Line, blocks: Sequence[_Block], lines: Sequence[_Line], number: int) -> bool:
    """Whether a line ends a sentence that a blank line broke off."""
    if not blocks or blocks[-1].kind != "prose" or number < 2 or lines[number - 1].bare:
        return False
    before = lines[number - 2].bare
    broken = len(before) >= _MIN_BROKEN and not _CLOSED.search(before) and not before.endswith("*")
    return broken and blocks[-1].end <= lines[number - 2].end and not _HASH.match(line.text)


def _opened(line: _Line, following: str, blocks: Sequence[_Block], block: _Block | None) -> _Block | None:
    """The block that a line begins; None when it goes on with the open one."""
    start = line.start + len(line.text) - len(line.text.lstrip())
    end = line.start + len(line.text.rstrip())
    hashes = _HASH.match(line.text)
    if hashes:
        return _Block("heading", start, end, len(hashes[1]))
    if line.bare.startswith("|") or (line.bare.count("|") >= 2 and line.bare.endswith("|")):
        return _Block("row", start, end)
    if _UNDERLINE.fullmatch(following) and len(line.bare) < 100 and block is None:
        return _Block("heading", start, end, 1 if "=" in following else 2)
    if block is None and _is_plain_heading(line, following, first=not blocks):
        return _Block("heading", start, end, 1 if not blocks else 2)
    if _ITEM.match(line.text):
        return _Block("item", start, end)
    if block is None or _QUESTION.match(line.text):
        return _Block("prose", start, end)
    return None


def _is_plain_heading(line: _Line, following: str, *, first: bool) -> bool:
    """Whether a line of plain text is a heading by its look: short, not closed, numbered, bold or in capitals."""
    bare = line.bare
    if len(bare) > 90 or _CLOSED.search(bare):
        return False
    if first:
        return len(bare.split()) <= 14
    if bare.startswith("**") and bare.endswith("**") and bare.count("**") == 2 and "|" not in bare:
        return True
    if _NUMBERED.fullmatch(line.text):
        return not (following.strip() and _ITEM.match(following))
    letters = [letter for letter in bare if letter.isalpha()]
    if len(letters) > 3 and all(letter.isupper() for letter in letters if letter.lower() != letter.upper()):
        return any(letter.isupper() for letter in letters)
    return not following.strip() and len(bare.split()) <= 8 and bare[:1].isupper()


def _group(blocks: Sequence[_Block], at: int) -> list[_Block]:
    """The run of items, or of rows, that begins at `at`; one block of prose."""
    kind = blocks[at].kind
    if kind == "prose":
        return [blocks[at]]
    end = at
    while end < len(blocks) and blocks[end].kind == kind:
        end += 1
    return list(blocks[at:end])


def _heading(text: str, block: _Block, path: tuple[str, ...]) -> Passage:
    """A heading as something that says something itself, such as the date of a release."""
    line = text[block.start : block.end]
    mark = re.match(r"\s*#{1,6}\s+", line)
    span = Span(block.start + (mark.end() if mark else 0), block.end)
    return Passage(span, span.of(text), "heading", path)


def _rows(text: str, group: Sequence[_Block], path: tuple[str, ...]) -> Iterator[Passage]:
    head = Span(group[0].start, group[0].end)
    header = head.of(text) if len(group) > 1 else ""
    for block in group[1:] if len(group) > 1 else group:
        yield Passage(
            Span(block.start, block.end),
            text[block.start : block.end],
            "row",
            path,
            lead=header,
            head=head if header else None,
            said=_APART.join(cells(text[block.start : block.end])),
        )


def _items(
    text: str, group: Sequence[_Block], path: tuple[str, ...], lead: _Block | None
) -> Iterator[Passage]:
    introduction = text[lead.start : lead.end] if lead else ""
    for block in group:
        yield from _cut(text, _unmarked(text, block), "item", path, introduction)


def _unmarked(text: str, block: _Block) -> _Block:
    """An item without the mark of its list."""
    mark = _ITEM.match(text, block.start, block.end)
    return _Block("item", mark.end(), block.end) if mark else block


def _prose(text: str, block: _Block, path: tuple[str, ...], lead: _Block | None) -> Iterator[Passage]:
    introduction = text[lead.start : lead.end] if lead else ""
    asked = _QUESTION.match(text[block.start : block.end])
    if asked and any(_ANSWER.match(line) for line in text[block.start : block.end].splitlines()[1:]):
        yield from _cut(text, block, "answer", path, introduction)
        return
    sentences = list(_sentences(text, block))
    for at, span in enumerate(sentences):
        near = " ".join(one.of(text) for place, one in enumerate(sentences) if abs(place - at) in (1, 2))
        if span.end - span.start <= MAX_QUOTE:
            yield Passage(span, span.of(text), "sentence", path, introduction, near=near)
    for first, second in itertools.pairwise(sentences):
        both = Span(first.start, second.end)
        if len(sentences) > 2 and both.end - both.start <= MAX_QUOTE:
            yield Passage(both, both.of(text), "pair", path, introduction)


def _cut(text: str, block: _Block, kind: PassageKind, path: tuple[str, ...], lead: str) -> Iterator[Passage]:
    """A block as one passage, or its sentences where it is too long for a quote."""
    if block.end - block.start <= MAX_QUOTE:
        yield Passage(Span(block.start, block.end), text[block.start : block.end], kind, path, lead)
        return
    for span in _sentences(text, block):
        if span.end - span.start <= MAX_QUOTE:
            yield Passage(span, span.of(text), kind, path, lead)


def _list(
    text: str, group: Sequence[_Block], path: tuple[str, ...], lead: _Block | None
) -> Iterator[Passage]:
    """A list with its introduction as one quote, where it is short enough."""
    first = lead or _unmarked(text, group[0])
    span = Span(first.start, group[-1].end)
    if len(group) > 1 and span.end - span.start <= MAX_QUOTE:
        introduction = text[lead.start : lead.end] if lead else ""
        yield Passage(span, span.of(text), "list", path, introduction)


def _sentences(text: str, block: _Block) -> list[Span]:
    """The sentences of a block; a line break inside is a space."""
    flat = text[block.start : block.end].replace("\n", " ")
    found: list[Span] = []
    for start, end in boundaries(language_of(flat), flat):
        piece = flat[start:end]
        if not piece.strip():
            continue
        closing = _CLOSING.match(piece)
        if closing and found:
            found[-1] = Span(found[-1].start, block.start + start + closing.end())
            start += closing.end()
            piece = flat[start:end]
            if not piece.strip():
                continue
        begin = block.start + start + len(piece) - len(piece.lstrip())
        stop = block.start + start + len(piece.rstrip())
        first = text[begin : begin + 1]
        if found and (first.islower() or first.isdigit() or first in ")]"):
            found[-1] = Span(found[-1].start, stop)
        else:
            found.append(Span(begin, stop))
    return found


def _delimited(text: str) -> Iterator[Passage]:
    """The lines of a table in CSV, each with the first line as its head."""
    lines = [line for line in _lines(text) if line.bare]
    if not lines:
        return
    head = Span(lines[0].start, lines[0].start + len(lines[0].text.rstrip()))
    names = _APART.join(fields(head.of(text))).replace("_", " ")
    for line in lines[1:]:
        if len(line.text) <= MAX_QUOTE:
            span = Span(line.start, line.start + len(line.text.rstrip()))
            said = _APART.join(fields(span.of(text)))
            yield Passage(span, span.of(text), "row", (), names, head, said=said)


def _coded(text: str) -> Iterator[Passage]:
    """The lines of a program or of a file of settings, each with those around it."""
    lines = [line for line in _lines(text) if line.bare]
    for at, line in enumerate(lines):
        if len(line.bare) <= MAX_QUOTE:
            start = line.start + len(line.text) - len(line.text.lstrip())
            near = " ".join(one.bare for one in lines[max(0, at - 2) : at + 3] if one is not line)
            yield Passage(Span(start, start + len(line.bare)), line.bare, "item", (), near=near)


def _clean_heading(text: str) -> str:
    return " ".join(text.strip().strip("#*_ ").replace("**", "").split())
