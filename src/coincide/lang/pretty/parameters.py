"""`for the same door`: the parameter on every event and guard of a pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from coincide.lang.opera.definition import Bind, Expression, Named, Timing
from coincide.syntax import rebuilt, walk


def with_parameters(pattern: Expression, parameters: Sequence[Bind]) -> Expression:
    """The pattern with `(door = ?door)` on all its sets, but not on its timers."""
    timers = {node.timer for node in walk(pattern) if isinstance(node, Timing)}

    def bound(node: Any) -> Any:
        if not isinstance(node, Named):
            return rebuilt(node, bound)
        return node if node.name in timers else replace(node, terms=(*node.terms, *parameters))

    return bound(pattern)  # type: ignore[no-any-return]
