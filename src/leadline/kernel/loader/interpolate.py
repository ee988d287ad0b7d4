"""From nodes to plain values. The environment is read here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from leadline.kernel.errors import ConfigError
from leadline.kernel.loader.document import Env, Items, Node, Ref, Table, Value

Lookup = Callable[[Ref], object]


def environment() -> Mapping[str, str]:
    """The environment of this process, as it is now."""
    return dict(os.environ)


def plain(node: Node, environ: Mapping[str, str], lookup: Lookup) -> object:
    """The value of `node`, with `!env` from `environ` and `!ref` from `lookup`.

    `lookup` raises KeyError for a service that is not there.

    Raises:
        ConfigError: a variable or a service without default is missing; names it, file and line.
    """
    if isinstance(node, Table):
        return {key: plain(child, environ, lookup) for key, child in node.content.items()}
    if isinstance(node, Items):
        return [plain(child, environ, lookup) for child in node.content]
    if isinstance(node.content, Env):
        env = node.content
        if env.name in environ:
            return environ[env.name]
        if env.default is not None:
            return plain(env.default, environ, lookup)
        raise ConfigError(
            f"the environment variable {env.name} is not set; set it, or write a default: "
            f"!env {{name: {env.name}, default: VALUE}}",
            origin=str(node.origin),
        )
    if isinstance(node.content, Ref):
        ref = node.content
        try:
            return lookup(ref)
        except KeyError as error:
            if ref.default is not None:
                return plain(ref.default, environ, lookup)
            raise ConfigError(
                f"!ref {ref.service}.{ref.attribute}: {error.args[0]}", origin=str(node.origin)
            ) from None
    return node.content


def references(node: Node) -> Iterator[tuple[Value, Ref]]:
    """Every `!ref` in `node`, in order."""
    children = (
        node.content.values() if isinstance(node, Table) else node.content if isinstance(node, Items) else ()
    )
    for child in children:
        yield from references(child)
    if isinstance(node, Value):
        if isinstance(node.content, Ref):
            yield node, node.content
        if isinstance(node.content, Env | Ref) and node.content.default is not None:
            yield from references(node.content.default)


def shown(value: Value, environ: Mapping[str, str]) -> str:
    """`value` as `config show` prints it: of the environment, whether it is set and never the content."""
    content = value.content
    if isinstance(content, Env):
        state = "set" if content.name in environ else "not set"
        return f"!env {content.name} ({state}{_default(content.default, environ)})"
    if isinstance(content, Ref):
        return f"!ref {content.service}.{content.attribute}{_default(content.default, environ)}"
    if content is None or isinstance(content, bool):
        return {None: "null", True: "true", False: "false"}[content]
    return str(content)


def _default(node: Node | None, environ: Mapping[str, str]) -> str:
    if node is None:
        return ""
    return f", default {shown(node, environ) if isinstance(node, Value) else '...'}"
