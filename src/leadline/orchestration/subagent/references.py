"""Finds references of a JSON Schema that no value could ever be checked against.

Those that lead nowhere, and those that lead back to themselves without going into the value: a model
would be told again and again that its output does not do, whatever it sends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast
from urllib.parse import unquote

Node: TypeAlias = Mapping[str, object]

_ONE = ("not", "if", "then", "else")
_MANY = ("allOf", "anyOf", "oneOf")


def reference_problems(schema: object) -> list[str]:
    """What is wrong with the references of a plain schema; nothing for one that renames its base with `$id`."""
    nodes = [*_nodes(schema, "$")]
    if not any("$ref" in node for _, node in nodes) or any("$id" in node for _, node in nodes[1:]):
        return []
    anchors = {f"#{node['$anchor']}": node for _, node in nodes if isinstance(node.get("$anchor"), str)}
    targets = {id(node): found for _, node in nodes if (found := _target(node, schema, anchors)) is not None}
    problems = [
        f"{path}.$ref: {node['$ref']} is not in the schema; write the definition into $defs"
        for path, node in nodes
        if isinstance(node.get("$ref"), str) and id(node) not in targets
    ]
    circles = (path for path, node in nodes if _returns(node, targets))
    return problems or [f"{path}: it is defined as itself; say what it is" for path in circles][:1]


def _nodes(value: object, path: str) -> Iterator[tuple[str, Node]]:
    if isinstance(value, dict):
        node = cast("Node", value)
        yield path, node
        for key, member in node.items():
            yield from _nodes(member, f"{path}.{key}")
    elif isinstance(value, list):
        for at, item in enumerate(cast("Sequence[object]", value)):
            yield from _nodes(item, f"{path}[{at}]")


def _target(node: Node, schema: object, anchors: Mapping[str, Node]) -> object | None:
    """What the reference of `node` points to; None where it has none or points nowhere."""
    ref = node.get("$ref")
    if not isinstance(ref, str) or ref in anchors:
        return anchors.get(str(ref))
    steps = [unquote(step).replace("~1", "/").replace("~0", "~") for step in ref.split("/")[1:]]
    if ref not in ("#", "") and not ref.startswith("#/"):
        return None
    found = schema
    for step in steps:
        if isinstance(found, dict):
            found = cast("Node", found).get(step)
        elif (
            isinstance(found, list) and step.isdecimal() and int(step) < len(cast("Sequence[object]", found))
        ):
            found = cast("Sequence[object]", found)[int(step)]
        else:
            return None
    return found


def _returns(start: Node, targets: Mapping[int, object]) -> bool:
    """Whether checking `start` comes to check `start` again on the same value."""
    seen: set[int] = set()
    left = [*_in_place(start, targets)]
    while left:
        node = left.pop()
        if node is start:
            return True
        if id(node) not in seen and isinstance(node, dict):
            seen.add(id(cast("object", node)))
            left += _in_place(cast("Node", node), targets)
    return False


def _in_place(node: Node, targets: Mapping[int, object]) -> Iterator[object]:
    """The schemas that are applied to the same value as `node`."""
    if id(node) in targets:
        yield targets[id(node)]
    for key in _ONE:
        yield node.get(key)
    for key in _MANY:
        several = node.get(key)
        yield from cast("Sequence[object]", several) if isinstance(several, list) else ()
