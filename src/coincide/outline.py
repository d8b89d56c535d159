"""Frozen data as an indented outline: what people read of a definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from coincide.expr.print import expression_text
from coincide.expr.tree import Expr
from coincide.source import SourceText, Span

INDENT = "  "


def outline(value: Any, depth: int = 0, label: str = "") -> Iterator[str]:
    """One line a node: its class and plain fields; nodes inside it below, indented."""
    head = f"{INDENT * depth}{label}"
    if isinstance(value, Expr):
        yield head + expression_text(value)
    elif is_dataclass(value) and not isinstance(value, type):
        shown = [(f.name, getattr(value, f.name)) for f in fields(value) if f.repr]
        yield head + " ".join(
            [type(value).__name__, *(f"{n}={_short(v)}" for n, v in shown if _is_plain(v) and v not in (None, ()))]
        )
        for name, inner in shown:
            if not _is_plain(inner):
                yield from _inside(name, inner, depth + 1)
    elif isinstance(value, tuple):
        yield (head + " ".join(_short(item) for item in value if _is_plain(item))).rstrip()
        for item in value:
            if not _is_plain(item):
                yield from outline(item, depth + 1)
    else:
        yield head + _short(value)


def _inside(name: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, tuple) and all(not _is_plain(item) for item in value):
        for item in value:
            yield from outline(item, depth)
    else:
        yield from outline(value, depth, f"{name}: " if name else "")


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return not is_dataclass(value) or isinstance(value, (SourceText, Span))


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))})"
    return value if isinstance(value, str) else repr(value)
