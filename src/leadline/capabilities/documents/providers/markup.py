"""Parses HTML and XML with lxml, the one place that touches the untyped library."""

# lxml ships no types; what leaves this module is typed as Element
# pyright: reportUnknownMemberType=none, reportUnknownVariableType=none, reportAttributeAccessIssue=none
# pyright: reportUnknownArgumentType=none
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, cast

from leadline.capabilities.documents.providers.elements import Element, is_hidden

_DEEPEST = 200
"""Levels of a page that stay as they are. Pages that leave elements open are nested by the thousand, and whoever
walks a tree by calls has room for about three times as many."""

_FAT_TAG = re.compile(r"<([a-zA-Z][\w:-]*)[^<>]{20000,}")
_MOST_ATTRIBUTES = 1000
"""Of one element; the time to parse them grows with their square."""


@dataclass(frozen=True)
class Page:
    """A parsed page."""

    root: Element
    text: str
    """The page as others may parse it with the same outcome."""
    cut: bool = False
    """Whether its end is missing, as it is nested more deeply than any parser follows."""


def parse_html(text: str) -> Page | None:
    """A page, however broken and however deeply nested; None if there is no element in it."""
    from lxml import etree, html  # noqa: PLC0415 - loads libxml2

    text = _FAT_TAG.sub(_without_attributes, text)
    parser = html.HTMLParser(encoding="utf-8")
    try:
        root = html.document_fromstring(text.encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    limit = etree.ErrorTypes.ERR_RESOURCE_LIMIT
    if not any(error.type == limit for error in parser.error_log):
        return Page(cast("Element", root), text)
    # over its limit a parser drops the rest of the page
    parser = html.HTMLParser(encoding="utf-8", huge_tree=True)
    root = html.document_fromstring(text.encode("utf-8"), parser=parser)
    _level(cast("_Movable", root))
    cut = any(error.type == limit for error in parser.error_log)
    return Page(cast("Element", root), cast("str", html.tostring(root, encoding="unicode")), cut)


def _without_attributes(tag: re.Match[str]) -> str:
    return f"<{tag[1]} " if tag[0].count("=") > _MOST_ATTRIBUTES else tag[0]


def _level(root: _Movable) -> None:
    """Put what is nested too deeply beside what it was in. No text is lost and none changes its place."""
    pending = [(root, 0)]
    while pending:
        element, depth = pending.pop()
        children = list(element)
        if depth < _DEEPEST:
            depth += 1
        else:
            for child in reversed(children):
                element.addnext(child)
        pending.extend((child, depth) for child in children)


def parse_xml(data: bytes) -> Element | None:
    """The root of a well-formed document, entities left alone; None for any other."""
    from lxml import etree  # noqa: PLC0415 - loads libxml2

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        return cast("Element", etree.fromstring(data, parser))
    except (etree.XMLSyntaxError, ValueError):
        return None


def without_hidden(root: Element) -> str | None:
    """The page without what its readers do not see; None if all of it is shown. Changes `root`."""
    from lxml import html  # noqa: PLC0415 - loads libxml2

    hidden = [element for element in root.iter() if element is not root and is_hidden(element)]
    if not hidden:
        return None
    for element in hidden:
        cast("_Droppable", element).drop_tree()
    return cast("str", html.tostring(root, encoding="unicode"))


class _Droppable(Protocol):
    def drop_tree(self) -> None: ...


class _Movable(Protocol):
    def __iter__(self) -> Iterator[_Movable]: ...
    def addnext(self, element: _Movable, /) -> None: ...
