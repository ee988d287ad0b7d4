"""What a writer may not put into prose: addresses, links, images, tags, citation marks; and how each becomes text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from leadline.core.patterns import lazy_pattern

_URL = r"(?:(?:https?|ftp|file|ws|wss)://|javascript:|data:[\w/+.-]*[;,]|mailto:\S+@|www\.)[^\s<>\"'`)\]】」』，。；]*"
_ID = r"(?:\d{1,3}(?::\d{1,3})?|[a-z]?\d+\.[a-z]?\d+|turn\d+\w*|\d+(?:[:.]\d+)?[†‡][^\]】］〕]*)"
_CITE_WORD = r"(?:\^|cite|citation|cit|ref|refs|reference|source|sources|src|quelle|footnote|fn|note|evidence|来源|出典)"
_MARK = rf"\s*(?:{_CITE_WORD}[\s:#.]*)*{_ID}(?:\s*[,;&\u2013\u2014-]\s*(?:{_CITE_WORD}[\s:#.]*)?{_ID})*\s*"
_PLACEHOLDER = (
    r"\s*(?:citation needed|source needed|source|sources|url|link|ref|reference|insert [^\]]*|todo|tbd|quelle"
    r"|[^\]]*\b(?:source title|title, url|your source|link here)\b[^\]]*)\s*"
)
_OPEN, _SHUT = r"[\[【［〔⟦]", r"[\]】］〕⟧]"


@dataclass(frozen=True)
class _Rule:
    what: str
    pattern: re.Pattern[str]
    text: Callable[[re.Match[str]], str]


def _rule(what: str, pattern: str, text: Callable[[re.Match[str]], str] | str = "") -> _Rule:
    if callable(text):
        return _Rule(what, lazy_pattern(pattern, re.IGNORECASE | re.DOTALL), text)
    fixed = text

    def always(_match: re.Match[str]) -> str:
        return fixed

    return _Rule(what, lazy_pattern(pattern, re.IGNORECASE | re.DOTALL), always)


def _host(match: re.Match[str]) -> str:
    """The host of an address: what a reader may see of it."""
    rest = re.sub(r"^[a-z]+:(?://)?", "", match.group(), flags=re.IGNORECASE)
    host = re.split(r"[/?#:]", rest.rsplit("@", 1)[-1])[0].strip(".")
    while host.casefold().startswith("www."):
        host = host[4:]
    return (
        host
        if re.fullmatch(r"[\w.-]+\.\w+", host) and not match.group().casefold().startswith("data:")
        else ""
    )


_RULES: tuple[_Rule, ...] = (
    _rule("a control character", r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]"),
    _rule(
        "a citation mark",
        r"[\ue000-\uf8ff](?:[^\s\ue000-\uf8ff]*[\ue000-\uf8ff])*|\bturn\d+(?:search|view|news|fetch|image)\d+\b",
    ),
    _rule(
        "an HTML tag",
        r"<!--.*?(?:-->|$)|</?[a-z][^<>]*>?(?<=>)|<(?:img|script|iframe|a|svg|style|link|meta)\b[^<>]*$",
    ),
    _rule(
        "an image or link",
        r"!?\[([^\[\]]*)\]\s?\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'(][^)]*)?\)",
        lambda m: m[1],
    ),
    _rule("a citation mark", _OPEN + _MARK + _SHUT),
    _rule("a citation placeholder", _OPEN + _PLACEHOLDER + _SHUT),
    _rule("a link definition", r"^\s*\[[^\[\]]+\]:\s*\S*"),
    _rule(
        "an image or link",
        r"!\[([^\[\]]*)\](?:\[[^\[\]]*\])?|\[([^\[\]]+)\]\[[^\[\]]*\]",
        lambda m: m[1] or m[2] or "",
    ),
    _rule("a citation mark", r"\\cite\w*\{[^}]*\}|\{\{[^}]*\}\}"),
    _rule(
        "a citation mark", r"(?<=\S)\s+\(\d{1,3}\)(?=\s*(?:[.,;:!?。，；]|$|\())|(?<=[.,;:!?。])[⁰¹²³⁴-⁹]+"
    ),
    _rule("an evidence id", r"\(?(?<![\w.])u\d+\.e\d+(?![\w.]*\w)\)?"),
    _rule(
        "a DOI",
        r"(?:https?://(?:dx\.)?doi\.org/|doi:?\s*)?(?<![\w.])10\.\d{4,9}/[^\s\"'<>，。]*[^\s\"'<>，。.,;:)\]]",
    ),
    _rule("an address", r"<?(?<![\w])" + _URL + r">?", _host),
)


def forbidden(text: str) -> tuple[str, ...]:
    """What stands in a text and may not: each finding as "a link: “...”"."""
    found: list[str] = []
    for rule in _RULES:
        for match in rule.pattern.finditer(text):
            found.append(f"{rule.what} (“{_shown(match.group())}”)")
    return tuple(dict.fromkeys(found))


def plain(text: str) -> str:
    """The text without anything forbidden: links become their words, addresses their host, marks nothing.

    The result has nothing forbidden in it, and a text that has nothing forbidden only loses extra white space. Every round
    shortens the text, so that there is a last one.
    """
    while True:
        cleaned = text
        for rule in _RULES:
            cleaned = rule.pattern.sub(rule.text, cleaned)
        if cleaned != text:
            cleaned = re.sub(r"\(\s*\)|\[\s*\]", "", cleaned)
            cleaned = re.sub(r"\s+([.,;:!?])(?=\s|$)", r"\1", " ".join(cleaned.split()))
        cleaned = " ".join(cleaned.split())
        if cleaned == text:
            return text
        text = cleaned


def _shown(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."
