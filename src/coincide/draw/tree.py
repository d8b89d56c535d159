"""What drawings of trees share: nodes with names of their own, and how rule texts are told."""

from __future__ import annotations

import re
from collections.abc import Iterable

from coincide.draw.graph import Arrow, Drawing, Node, Shape, wrapped
from coincide.source import Span

WIDTH = 30
"""Letters of a line in a node."""


class Tree:
    """Nodes and arrows as they are added."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.arrows: list[Arrow] = []

    def add(self, shape: Shape, label: str, notes: Iterable[str] = ()) -> str:
        """The name of a new node."""
        name = f"n{len(self.nodes)}"
        lines = [line for note in notes if note for line in wrapped(note, WIDTH)]
        self.nodes.append(Node(name, shape, "\n".join(wrapped(label, WIDTH)), tuple(lines)))
        return name

    def connect(self, source: str, target: str, label: str = "") -> None:
        self.arrows.append(Arrow(source, target, "weak", wrapped(label, WIDTH)))

    def drawing(self, title: str, caption: str) -> Drawing:
        return Drawing(title, caption, tuple(self.nodes), tuple(self.arrows))


def written(span: Span | None, ends: re.Pattern[str]) -> str | None:
    """A definition as it stands in its file, from its first word to where the next begins, on one line and without comments."""
    if span is None:
        return None
    rest = span.source.text[span.start :]
    following = ends.search(rest, 1)
    text = rest[: following.start()] if following else rest
    lines = (re.sub(r"#(?=(?:[^'\"]*['\"][^'\"]*['\"])*[^'\"]*$).*", "", line) for line in text.splitlines())
    return " ".join(" ".join(lines).split())
