"""Texts with `{{variable}}` in them: strict, so that a typing error never reaches a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from leadline.core.prompt.errors import BadTemplate, UnknownVariable
from leadline.kernel.errors import did_you_mean

VARIABLE = re.compile(r"[a-z][a-z0-9_]*")
_TOKEN = re.compile(r"(\\\{\{)|\{\{([^{}\n]*)\}\}|\{\{")


@dataclass(frozen=True)
class Template:
    """A text, split into what stays and the names of variables, alternating, text first and last."""

    owner: str
    """What the text belongs to, for messages."""

    parts: tuple[str, ...]

    @property
    def variables(self) -> frozenset[str]:
        """The names that are used."""
        return frozenset(self.parts[1::2])

    def render(self, values: Mapping[str, str | None]) -> str:
        r"""The text with each variable replaced by its value, which is not looked into.

        Raises:
            UnknownVariable: a name is not among `values`, or its value is None.
        """
        for name in self.parts[1::2]:
            if name not in values:
                raise UnknownVariable(
                    f"{self.owner} uses the unknown variable {name!r}{did_you_mean(name, values)}"
                )
            if values[name] is None:
                raise UnknownVariable(
                    f"{self.owner} uses the variable {name!r}, which has no value here; set it"
                )
        return "".join((values[part] or "") if at % 2 else part for at, part in enumerate(self.parts))


def parse_template(owner: str, text: str) -> Template:
    r"""`text` as a template. `\{{` stands for two opening braces; closing ones alone are text.

    Raises:
        BadTemplate: a group that is not closed, or does not hold the name of a variable.
    """
    parts, kept, end = list[str](), "", 0
    for found in _TOKEN.finditer(text):
        kept += text[end : found.start()]
        end = found.end()
        escaped, name = found.groups()
        if escaped:
            kept += "{{"
        elif name is not None and VARIABLE.fullmatch(name.strip()):
            parts += [kept, name.strip()]
            kept = ""
        else:
            line = text.count("\n", 0, found.start()) + 1
            raise BadTemplate(
                f"{owner}, line {line}: {text[found.start() : found.start() + 40]!r} is not a variable; write "
                r"{{name}} with a name of the form [a-z][a-z0-9_]*, or \{{ for two braces"
            )
    return Template(owner, (*parts, kept + text[end:]))
