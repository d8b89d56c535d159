"""`for the same door`: the parameter on every event and guard of a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from coincide.lang.opera.definition import Bind, Element, Expression, Named, Timing
from coincide.syntax import walk


def with_parameters(pattern: Expression, parameters: Sequence[Bind]) -> Expression:
    """The pattern with `(door = ?door)` on all its sets, but not on its timers."""
    timers = {node.timer for node in walk(pattern) if isinstance(node, Timing)}
    bound: Expression = _bound(pattern, tuple(parameters), timers)
    return bound


def _bound(node: Any, parameters: tuple[Bind, ...], timers: set[str]) -> Any:
    if isinstance(node, Named):
        return node if node.name in timers else replace(node, terms=(*node.terms, *parameters))
    if isinstance(node, tuple):
        return tuple(_bound(part, parameters, timers) for part in node)
    if isinstance(node, Element):
        return replace(
            node, **{f.name: _bound(getattr(node, f.name), parameters, timers) for f in fields(node) if f.name != "span"}
        )
    return node
