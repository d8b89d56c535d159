"""Documents of YAML as Sigma reads them: values as YAML 1.1 has them, errors with their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NoReturn

import yaml

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.model.numbers import number_of
from coincide.source import SourceText, Span
from coincide.yaml import Entries, Items, Node, Scalar, parse_documents

Value = str | float | bool | None


def documents(source: SourceText) -> list[Node]:
    """Those that are not empty."""
    return [node for node in parse_documents(source, "invalid YAML") if not is_null(node)]


def fail(message: str, span: Span, hint: str | None = None) -> NoReturn:
    raise RuleError(Diagnostic(message, span, hint=hint))


def check_keys(node: Node) -> None:
    """No key is given twice, nowhere in a document; no document is merged into another."""
    if isinstance(node, Items):
        for member in node.nodes:
            check_keys(member)
    if not isinstance(node, Entries):
        return
    seen: set[str] = set()
    for key, value in node.pairs:
        if key.plain and key.text == "<<":
            fail("invalid YAML: '<<' is not supported", key.span)
        if key.text in seen:
            fail(f"'{key.text}' is given twice", key.span)
        seen.add(key.text)
        check_keys(value)


class Map:
    """A mapping's values and keys, by name."""

    def __init__(self, node: Node, what: str) -> None:
        if not isinstance(node, Entries):
            fail(f"{what} must be a mapping", node.span)
        self.span = node.span
        self.keys = {key.text: key for key, _ in node.pairs}
        self.values = {key.text: value for key, value in node.pairs}

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str) -> Node | None:
        return self.values.get(name)

    def items(self) -> Iterator[tuple[Scalar, Node]]:
        return ((self.keys[name], value) for name, value in self.values.items())

    def check_known(self, known: Iterable[str], what: str) -> None:
        names = tuple(known)
        for name, key in self.keys.items():
            if name not in names:
                fail(f"unknown attribute '{name}' of {what}", key.span, nearest(name, names))


def text_of(node: Node) -> str:
    """As it is written; null, however it is written, is not a text."""
    if not isinstance(node, Scalar):
        fail("expected a value, found a mapping or a list", node.span)
    return "" if is_null(node) else node.text


def texts_of(node: Node) -> list[Scalar]:
    """One or a list of them, as written; nulls are none."""
    nodes = node.nodes if isinstance(node, Items) else (node,)
    for member in nodes:
        text_of(member)
    return [member for member in nodes if isinstance(member, Scalar) and not is_null(member)]


def value_of(node: Node) -> Value:
    if not isinstance(node, Scalar):
        fail("expected a value, found a mapping or a list", node.span)
    return _resolved(node.text) if node.plain else node.text


def is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and value_of(node) is None


_loader = yaml.SafeLoader("")
_KINDS = {"int", "float", "bool", "null"}


@lru_cache(maxsize=65536)
def _resolved(text: str) -> Value:
    """As PyYAML's safe loader reads it; but dates stay texts."""
    tag: str = _loader.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    if tag.rpartition(":")[2] not in _KINDS:
        return text
    try:
        value: Any = _loader.construct_object(yaml.ScalarNode(tag, text))
    except ValueError:  # such as `0b`
        return text
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _finite(value, text)
    result: Value = value
    return result


def _finite(number: float, text: str) -> Value:
    try:
        return text if number - number != 0 else number_of(number) if isinstance(number, int) else number
    except OverflowError:
        return text


def data_of(node: Node) -> Any:
    """Plain data that compares: mappings as tuples of pairs, marked as what they are; numbers and the like as written."""
    if isinstance(node, Scalar):
        return ("text", node.text) if isinstance(value_of(node), str) else ("plain", node.text or "null")
    if isinstance(node, Items):
        return ("list", tuple(data_of(member) for member in node.nodes))
    return ("map", tuple((key.text, data_of(value)) for key, value in node.pairs))
