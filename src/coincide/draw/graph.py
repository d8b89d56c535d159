"""What a drawing shows, whatever it is written as: nodes and arrows, read from left to right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Shape = Literal[
    "state",
    "final",
    "start",
    "tap",
    "junction",
    "tank",
    "timer",
    "result",
    "event",
    "collection",
    "operator",
    "condition",
    "span",
]
Kind = Literal["weak", "strong", "pipe", "valve", "begin"]


@dataclass(frozen=True)
class Node:
    """`label` stands in (or, of small shapes, at) the node, `notes` below it. Events, operators, conditions and spans of time
    have room for several lines."""

    name: str
    shape: Shape
    label: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrow:
    """`labels` are lines, one above the other."""

    source: str
    target: str
    kind: Kind = "weak"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """One definition. `caption` is a line below the title."""

    title: str
    caption: str
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]


def joined(arrows: Iterable[Arrow]) -> tuple[Arrow, ...]:
    """Arrows of a kind between the same nodes become one, with the labels of all."""
    found: dict[tuple[str, str, str], Arrow] = {}
    for arrow in arrows:
        key = arrow.source, arrow.target, arrow.kind
        labels = dict.fromkeys((*found[key].labels, *arrow.labels) if key in found else arrow.labels)
        found[key] = replace(arrow, labels=tuple(labels))
    return tuple(found.values())


def wrapped(text: str, width: int = 34) -> tuple[str, ...]:
    """Text in lines of about a width, broken at spaces."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return tuple(lines)
