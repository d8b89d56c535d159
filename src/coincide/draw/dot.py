"""Drawings as DOT text, for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.draw.graph import Arrow, Drawing, Node

SHAPES = {
    "state": "shape=circle",
    "final": "shape=doublecircle",
    "start": "shape=point",
    "tap": "shape=box, style=rounded",
    "junction": "shape=point, width=0.12",
    "tank": "shape=cylinder",
    "timer": "shape=diamond",
    "result": "shape=box, style=filled, fillcolor=lightgrey",
    "event": 'shape=box, style="rounded,filled", fillcolor="#d9e8f5"',
    "collection": 'shape=box, style="rounded,filled", fillcolor="#d9e8f5", peripheries=2',
    "operator": "shape=box",
    "condition": 'shape=box, style=filled, fillcolor="#fff8e6"',
    "span": 'shape=box, style=filled, fillcolor="#e6f4f1", peripheries=2',
}
KINDS = {
    "weak": "",
    "strong": 'color="black:invis:black"',
    "pipe": "penwidth=3",
    "valve": 'penwidth=3, color="black:invis:black"',
    "begin": "",
}


def dot(drawings: Sequence[Drawing]) -> str:
    """A `digraph` for each."""
    return "\n".join("\n".join(_graph(drawing)) + "\n" for drawing in drawings)


def _graph(drawing: Drawing) -> Iterator[str]:
    yield f"digraph {_quoted(drawing.title)} {{"
    yield f"  label={_quoted(drawing.caption)}; labelloc=t; rankdir=LR; node [fontname=sans]; edge [fontname=sans];"
    for node in drawing.nodes:
        yield f"  {_quoted(node.name)} [{_attributes(SHAPES[node.shape], _label(node), node.shape in ('start', 'junction'))}];"
    for arrow in drawing.arrows:
        yield f"  {_quoted(arrow.source)} -> {_quoted(arrow.target)}{_style(arrow)};"
    yield "}"


def _label(node: Node) -> str:
    return "\n".join([node.label, *node.notes]).strip("\n")


def _style(arrow: Arrow) -> str:
    inside = _attributes(KINDS[arrow.kind], "\n".join(arrow.labels), bool(not arrow.labels))
    return f" [{inside}]" if inside else ""


def _attributes(style: str, label: str, bare: bool) -> str:
    """A bare thing has no label; a point may have one beside it."""
    text = f"xlabel={_quoted(label)}" if bare and label else "" if bare else f"label={_quoted(label)}"
    return ", ".join(part for part in (style, text) if part)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
