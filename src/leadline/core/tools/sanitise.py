"""Makes text fit for the log, the wire and a terminal: the one place where results are cleaned.

What passes through here is valid UTF-8 without control characters, so that the text in the log
equals the text on the wire. How much of it is kept is decided in `budget.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import cast

from leadline.core.llm.jsonvalue import JsonValue

_ESCAPES = re.compile(
    r"""
    \x1b\[[0-?]*[ -/]*[@-~]                             # CSI: colours, cursor
    | \x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?        # OSC, DCS, ... to their terminator or the line's end
    | \x1b[ -/]*[0-~]                                   # all other escapes
    """,
    re.VERBOSE,
)
# The 8-bit forms of these introducers are not looked for: in text they are nearly always the remains
# of a wrong decoding, and reading them as escapes would eat the words behind them.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_LINE_ENDS = re.compile(r"\r\n?")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_SUSPECT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

MAX_DEPTH = 200
"""How deeply a result may be nested."""


class NotJson(ValueError):
    """A value that JSON cannot carry; the message names the place."""


def sanitise(text: str) -> str:
    r"""`text` without escape sequences and control characters (\n and \t stay), line ends as \n.

    Lone surrogates, which UTF-8 cannot carry, become U+FFFD. Doing it twice changes nothing.
    """
    if not _SUSPECT.search(text):
        return text
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def sanitise_value(value: object) -> JsonValue:
    """A plain copy of a JSON value with every text and key sanitised.

    Raises:
        NotJson: something in it is not JSON (a set, bytes, NaN, a key that is not text, a cycle).
    """
    return _plain(value, "$", 0)


def _plain(value: object, path: str, depth: int) -> JsonValue:
    if depth > MAX_DEPTH:
        raise NotJson(f"{path[:80]}… is nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return sanitise(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"{path} is {value}, which JSON cannot carry; use null")
        return float(value)
    if isinstance(value, Mapping):
        return _plain_object(cast("Mapping[object, object]", value), path, depth)
    if isinstance(value, list | tuple):
        members = cast("list[object]", value)
        return [_plain(member, f"{path}[{at}]", depth + 1) for at, member in enumerate(members)]
    raise NotJson(
        f"{path} is a {type(value).__name__}, which is not JSON; return text, numbers, lists and objects"
    )


def _plain_object(value: Mapping[object, object], path: str, depth: int) -> JsonValue:
    made: dict[str, JsonValue] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise NotJson(f"{path} has the key {key!r}, which is not text")
        made[sanitise(key)] = _plain(member, f"{path}.{key}", depth + 1)
    return made
