"""Parses HTML and XML with lxml, the one place that touches the untyped library."""

# lxml ships no types; what leaves this module is typed as Element
# pyright: reportUnknownMemberType=none, reportUnknownVariableType=none, reportAttributeAccessIssue=none
from __future__ import annotations

from typing import cast

from leadline.capabilities.documents.providers.elements import Element


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
