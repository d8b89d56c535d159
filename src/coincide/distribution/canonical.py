"""When two composite event expressions are the same (distribution-opera.md, section 2): their canonical text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from coincide.lang.opera.definition import Alternation, Atom, Element, Expression, Item, OwnTimer, Parallel, Timing, Union
from coincide.lang.opera.print import core_text, set_text
from coincide.syntax import rebuilt, walk


def canonical_text(body: Expression, used_aliases: Collection[str] = ()) -> str:
    return core_text(canonical(body, used_aliases))


def canonical(body: Expression, used_aliases: Collection[str] = ()) -> Expression:
    arranged = _arranged(_without_aliases(body, used_aliases))
    return _numbered(arranged)


def _without_aliases(body: Expression, used: Collection[str]) -> Expression:
    def change(node: Element) -> Element:
        return replace(node, alias=None) if isinstance(node, Item) and node.alias not in used else node

    changed = _mapped(body, change)
    assert isinstance(changed, Expression)
    return changed


def _mapped(node: Element, change: Any) -> Element:
    """The node with `change` made to it and to all below it, the innermost first."""
    changed: Element = change(rebuilt(node, lambda inner: _mapped(inner, change)))
    return changed


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
    return tuple(sorted(parts, key=lambda part: core_text(_numbered(part))))


def _numbered(body: Expression) -> Expression:
    """Timers named T-1, T-2, … in the order in which their timings close."""
    closed = 0

    def renamed(node: Any, timers: Mapping[str, str]) -> Any:
        nonlocal closed
        if isinstance(node, OwnTimer):
            return replace(node, name=timers.get(node.name, node.name))
        if not isinstance(node, Timing):
            return rebuilt(node, lambda inner: renamed(inner, timers))
        first = renamed(node.first, timers)
        name = f"T-{closed + sum(isinstance(n, Timing) for n in walk(node.second)) + 1}"
        second = renamed(node.second, {**timers, node.timer: name})
        closed += 1
        return replace(node, first=first, second=second, timer=name)

    return renamed(body, {})  # type: ignore[no-any-return]
