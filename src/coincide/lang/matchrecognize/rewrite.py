"""Trees rewritten from the top down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from coincide.expr.tree import Expr


def with_children(node: Expr, rewrite: Callable[[Expr], Expr]) -> Expr:
    """The node with its children rewritten; `rewrite` says whether what stands inside them is looked at."""
    changes: dict[str, Any] = {}
    for f in fields(node):
        value = getattr(node, f.name)
        if isinstance(value, Expr):
            changes[f.name] = rewrite(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Expr):
            changes[f.name] = tuple(rewrite(v) for v in value)
    return replace(node, **changes) if changes else node
