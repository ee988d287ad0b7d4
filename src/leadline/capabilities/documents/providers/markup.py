"""Parses HTML and XML with lxml, the one place that touches the untyped library."""

# lxml ships no types; what leaves this module is typed as Element
# pyright: reportUnknownMemberType=none, reportUnknownVariableType=none, reportAttributeAccessIssue=none
from __future__ import annotations

from typing import Protocol, cast

from leadline.capabilities.documents.providers.elements import Element, is_hidden


def parse_html(text: str) -> Element | None:
    """The root of a page, however broken; None if there is no element in it."""
    from lxml import etree, html  # noqa: PLC0415 - loads libxml2

    parser = html.HTMLParser(encoding="utf-8")
    try:
        return cast("Element", html.document_fromstring(text.encode("utf-8"), parser=parser))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None


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
