"""Readable text of a parsed page: headings, lists and tables keep their shape, hidden parts are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

LINE = "\0"
"""A line break asked for by the document, while white space is being levelled."""

_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hgroup",
        "hr",
        "html",
        "list",
        "main",
        "nav",
        "ol",
        "p",
        "quote",
        "section",
        "summary",
        "ul",
        "graphic",
    }
)
_LEFT_OUT = frozenset(
    {
        "script",
        "style",
        "noscript",
        "template",
        "head",
        "svg",
        "math",
        "iframe",
        "object",
        "canvas",
        "audio",
        "video",
        "select",
        "textarea",
        "button",
        "input",
        "datalist",
        "del",
    }
)
_SPACE = re.compile(r"[^\S\u00a0]+")
_AROUND_LINE = re.compile(rf" *{LINE} *")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)


class Element(Protocol):
    """What is used of an lxml element; `tag` is not a string for comments and the like."""

    text: str | None
    tail: str | None

    @property
    def tag(self) -> object: ...
    def get(self, key: str, /) -> str | None: ...
    def __iter__(self) -> Iterator[Element]: ...
    def iter(self, *tags: str) -> Iterator[Element]: ...


def is_hidden(element: Element) -> bool:
    """Whether an element asks not to be shown."""
    if not isinstance(element.tag, str):
        return False
    return element.get("hidden") is not None or bool(_HIDDEN_STYLE.search(element.get("style") or ""))


def render(root: Element) -> str:
    """The text of `root`: blocks parted by a blank line, headings as `# …`, list items as `- …`,
    table rows as `| a | b |`, preformatted text as it is."""
    renderer = _Renderer()
    renderer.walk(root)
    renderer.flush()
    return renderer.text()


def inline_text(element: Element) -> str:
    """The text of `element` in one line; empty if it is hidden or never shown."""
    return "" if _unshown(element) else _in_one_line(element)


def _in_one_line(element: Element) -> str:
    renderer = _Renderer()
    renderer.gather_children(element)
    return renderer.take().replace("\n", " ")


class _Renderer:
    def __init__(self) -> None:
        self._blocks: list[tuple[str, bool]] = []
        self._inline: list[str] = []
        self._mark = ""

    def text(self) -> str:
        pieces: list[str] = []
        tight_before = False
        for block, tight in self._blocks:
            if pieces:
                pieces.append("\n" if tight and tight_before else "\n\n")
            pieces.append(block)
            tight_before = tight
        return "".join(pieces)

    def take(self) -> str:
        """The inline text gathered so far, levelled."""
        joined = _SPACE.sub(" ", "".join(self._inline))
        self._inline.clear()
        return _AROUND_LINE.sub("\n", joined).strip(" \n")

    def flush(self) -> None:
        text = self.take()
        if text:
            self._blocks.append((self._mark + text, bool(self._mark)))
            self._mark = " " * len(self._mark)

    def walk(self, element: Element) -> None:
        tag = element.tag
        if tag == "head" and element.get(
            "rend"
        ):  # a heading in what trafilatura gives, and in HTML what it is
            tag = element.get("rend")
        if not isinstance(tag, str) or tag in _LEFT_OUT or is_hidden(element):
            return
        if tag in _HEADINGS:
            self._heading(element, tag)
        elif tag == "table":
            self._table(element)
        elif tag in ("li", "item"):
            self._item(element)
        elif _keeps_lines(element, tag):
            self._code(element)
        elif tag in _BLOCKS:
            self.flush()
            self._children(element)
            self.flush()
        else:
            self._inline_element(element, tag)

    def gather(self, element: Element) -> None:
        """All text of an element as inline text."""
        if _unshown(element):
            return
        if element.tag in ("br", "lb") or element.tag in _BLOCKS or element.tag in ("tr", "td", "th", "li"):
            self._inline.append(" ")
        self.gather_children(element)

    def gather_children(self, element: Element) -> None:
        """All text in an element as inline text."""
        self._add(element.text)
        for child in element:
            self.gather(child)
            self._add(child.tail)

    def _add(self, text: str | None) -> None:
        if text:
            self._inline.append(text.replace("\0", ""))

    def _children(self, element: Element) -> None:
        self._add(element.text)
        for child in element:
            self.walk(child)
            self._add(child.tail)

    def _inline_element(self, element: Element, tag: str) -> None:
        if tag in ("br", "lb"):
            self._inline.append(LINE)
        self._children(element)

    def _heading(self, element: Element, tag: str) -> None:
        self.flush()
        title = _in_one_line(element)
        if title:
            self._blocks.append(("#" * _HEADINGS[tag] + " " + title, False))

    def _item(self, element: Element) -> None:
        self.flush()
        outer = self._mark
        self._mark = " " * len(outer) + "- "
        self._children(element)
        self.flush()
        self._mark = outer

    def _code(self, element: Element) -> None:
        self.flush()
        raw = "".join(_all_text(element)).replace("\0", "").strip("\n")
        if raw.strip():
            self._blocks.append((raw, False))

    def _table(self, element: Element) -> None:
        self.flush()
        caption = next(element.iter("caption"), None)
        rows = [inline_text(caption)] if caption is not None else []
        ruled = False
        for row in element.iter("tr", "row"):
            cells = [inline_text(cell) for cell in row if cell.tag in ("td", "th", "cell")]
            said = [cell for cell in cells if cell]
            # A cell alone over the first row is a caption: trafilatura makes a row of one.
            if len(said) > 1 or (ruled and said):
                rows.append(f"| {' | '.join(cells)} |")
                ruled = True
            else:
                rows.extend(said)
        if any(rows):
            self._blocks.append(("\n".join(row for row in rows if row), False))


def _keeps_lines(element: Element, tag: str) -> bool:
    """Whether white space counts; trafilatura turns `pre` into `quote` and nested `code`."""
    if tag == "code" or (tag == "quote" and not any(True for _ in element)):
        return "\n" in "".join(_all_text(element)).strip()
    return tag == "pre"


def _all_text(element: Element) -> Iterator[str]:
    if element.text:
        yield element.text
    for child in element:
        if isinstance(child.tag, str):
            yield "\n" if child.tag in ("br", "lb") else ""
            yield from _all_text(child)
        yield child.tail or ""


def _unshown(element: Element) -> bool:
    return not isinstance(element.tag, str) or element.tag in _LEFT_OUT or is_hidden(element)
