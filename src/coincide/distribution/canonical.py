"""When two composite event expressions are the same (distribution-opera.md, section 2): their canonical text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Element,
    EventSet,
    Expression,
    Item,
    OwnTimer,
    Parallel,
    Timing,
    Union,
)
from coincide.lang.opera.print import core_text, set_text
from coincide.syntax import walk


def canonical_text(body: Expression, used_aliases: Collection[str] = ()) -> str:
    return core_text(canonical(body, used_aliases))


def canonical(body: Expression, used_aliases: Collection[str] = ()) -> Expression:
    arranged = _arranged(_without_aliases(body, used_aliases))
    named: Expression = _renamed(arranged, {})[0]
    return named


def _without_aliases(body: Expression, used: Collection[str]) -> Expression:
    def change(node: Element) -> Element:
        return replace(node, alias=None) if isinstance(node, Item) and node.alias not in used else node

    changed = _mapped(body, change)
    assert isinstance(changed, Expression)
    return changed


def _mapped(node: Element, change: Any) -> Element:
    """The node with `change` made to it and to all below it, the innermost first."""
    inside = {f.name: _mapped_value(getattr(node, f.name), change) for f in fields(node) if f.name != "span"}
    changed: Element = change(replace(node, **inside))
    return changed


def _mapped_value(value: Any, change: Any) -> Any:
    if isinstance(value, Element):
        return _mapped(value, change)
    return tuple(_mapped_value(part, change) for part in value) if isinstance(value, tuple) else value


def _arranged(body: Expression) -> Expression:
    """What may stand in any order, sorted as text."""
    changed = _mapped(body, _sorted)
    assert isinstance(changed, Expression)
    return changed


def _sorted(node: Element) -> Element:
    if isinstance(node, Alternation):
        flat = [part for one in node.parts for part in (one.parts if isinstance(one, Alternation) else (one,))]
        return Alternation(_in_order(flat))
    if isinstance(node, Parallel):
        return Parallel(*_in_order([node.left, node.right]))
    if isinstance(node, Atom):
        return replace(node, items=tuple(sorted(node.items, key=lambda item: (set_text(item.events), item.alias or ""))))
    if isinstance(node, Union):
        return Union(tuple(sorted(node.members, key=set_text)))
    return node


def _in_order(parts: list[Expression]) -> tuple[Expression, ...]:
    """Timers that are due together fire in the order of the text: so operands with timings keep theirs."""
    if sum(any(isinstance(node, Timing) for node in walk(part)) for part in parts) > 1:
        return tuple(parts)
    return tuple(sorted(parts, key=lambda part: core_text(_renamed(part, {})[0])))


def _renamed(node: Any, timers: Mapping[str, str], count: int = 0) -> tuple[Any, int]:
    """Timers numbered T-1, T-2, … in the order in which their timings close."""
    if isinstance(node, Timing):
        first, count = _renamed(node.first, timers, count)
        inner = sum(isinstance(n, Timing) for n in walk(node.second))
        name = f"T-{count + inner + 1}"
        second, count = _renamed(node.second, {**timers, node.timer: name}, count)
        return replace(node, first=first, second=second, timer=name), count + 1
    if isinstance(node, OwnTimer):
        return replace(node, name=timers.get(node.name, node.name)), count
    if isinstance(node, Expression | Item | EventSet):
        inside: dict[str, Any] = {}
        for f in fields(node):
            if f.name != "span":
                inside[f.name], count = _renamed(getattr(node, f.name), timers, count)
        return replace(node, **inside), count
    if isinstance(node, tuple):
        parts = []
        for part in node:
            changed, count = _renamed(part, timers, count)
            parts.append(changed)
        return tuple(parts), count
    return node, count
