"""Detections as a table: when, what, its attributes, and what led to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coincide.causes import Explained
from coincide.display.page import shown, tree
from coincide.expr.quantities import counted
from coincide.report.markup import Markup, Part, element
from coincide.report.page import time_text

MOST = 100
"""Detections that a table shows: the first."""
ENVELOPE = ("type", "time", "from")


def table_html(detections: Sequence[dict[str, Any]]) -> str:
    if not detections:
        return shown(element("div", "No detections.", class_="faint"))
    first = detections[:MOST]
    names = list(dict.fromkeys(name for found in first for name in found if name not in ENVELOPE))
    heads = ["time", "type", *names, "why" if isinstance(first[0], Explained) else "from"]
    rows = [element("tr", *(element("td", cell) for cell in _cells(found, names))) for found in first]
    left = len(detections) - MOST
    return shown(
        element("table", element("tr", *(element("th", head) for head in heads)), *rows),
        element("div", f"… and {left:,} more", class_="faint") if left > 0 else None,
    )


def _cells(found: dict[str, Any], names: Sequence[str]) -> list[Part]:
    what = element("b", str(found["type"]))
    return [_when(found["time"]), what, *(_value(found.get(name)) for name in names), _origin(found)]


def _when(time: Any) -> str:
    """An interval on one day names the day once."""
    if not isinstance(time, (list, tuple)):
        return time_text(time).removesuffix(".000")
    first, last = (time_text(end).removesuffix(".000") for end in time)
    day, _, clock = last.partition(" ")
    return f"{first} – {clock}" if clock and first.startswith(f"{day} ") else f"{first} – {last}"


def _value(value: Any) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


def _origin(found: dict[str, Any]) -> Markup | str:
    """The events that led to it: their number, and where the run was kept, the tree."""
    count = len(found.get("from", ()))
    words = counted(count, "event")
    return element("details", element("summary", words), tree(found.cause())) if isinstance(found, Explained) else words
