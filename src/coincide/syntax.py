"""Syntax trees: what the trees of all languages have in common. Nodes compare by structure; spans do not count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, cast

from coincide.source import Span

Family = TypeVar("Family", bound="Node[Any]")
Data = TypeVar("Data")


@dataclass(frozen=True)
class Node(Generic[Family]):
    """A class that is directly below it begins a family: the trees of one kind. Other trees may stand in its fields."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    _family: ClassVar[type]
    _children: ClassVar[tuple[Any, ...] | None] = None  # of a node that was asked for them, its own

    def __init_subclass__(cls) -> None:
        if Node in cls.__bases__:
            cls._family = cls

    @property
    def children(self) -> tuple[Family, ...]:
        """The nodes of its family directly inside, left to right."""
        if self._children is not None:
            return self._children
        kind: Any = type(self)
        found: list[Any] = []
        family = self._family
        for name in _parts(kind):
            value = getattr(self, name)
            if isinstance(value, family):
                found.append(value)
            elif isinstance(value, tuple):
                found += [item for item in value if isinstance(item, family)]
        children = tuple(found)
        object.__setattr__(self, "_children", children)
        return children


PLAIN = frozenset({"str", "str | None", "bool", "int", "float", "Span | None"})
"""Annotations of fields in which no node can be."""


@cache
def _parts(kind: Any) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind) if part.name != "span" and part.type not in PLAIN)


def walk(node: Node[Family]) -> Iterator[Family]:
    """The node and all of its family below it, parents first, left to right."""
    waiting: list[Any] = [node]
    while waiting:
        found: Any = waiting.pop()
        yield found
        if below := found.children:
            waiting += below[::-1]


def rebuilt(node: Data, change: Callable[[Any], Any], parts: type | tuple[type, ...] | None = None) -> Data:
    """The node with `change` made to what is directly inside it: to nodes of its family, or to such `parts`."""
    kind: Any = type(node)
    of, changes = parts or kind._family, dict[str, Any]()
    for name in _parts(kind):
        value = getattr(node, name)
        if isinstance(value, of):
            changes[name] = change(value)
        elif isinstance(value, tuple) and any(isinstance(item, of) for item in value):
            changes[name] = tuple(change(item) if isinstance(item, of) else item for item in value)
    return cast(Data, replace(cast(Any, node), **changes)) if changes else node
