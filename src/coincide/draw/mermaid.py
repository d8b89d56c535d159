"""Drawings as Mermaid text, which many web pages (GitHub's among them) show as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.draw.graph import Arrow, Drawing, Node

SHAPES = {
    "state": "(({}))",
    "final": "((({})))",
    "start": "(({}))",
    "tap": "([{}])",
    "junction": "(({}))",
    "tank": "[({})]",
    "timer": "{{{{{}}}}}",
    "result": "[[{}]]",
    "event": "([{}])",
    "collection": "[({})]",
    "operator": "[{}]",
    "condition": "[/{}/]",
    "span": "[[{}]]",
}
MARKS = '#"<>|\\`&'
LINES = {"weak": "-->", "strong": "==>", "pipe": "-->", "valve": "==>", "begin": "-->"}


def mermaid(drawings: Sequence[Drawing]) -> str:
    """A `flowchart` with a subgraph for each."""
    lines = ["flowchart LR"]
    for number, drawing in enumerate(drawings):
        lines += _subgraph(drawing, number)
    return "\n".join(lines) + "\n"


def _subgraph(drawing: Drawing, number: int) -> Iterator[str]:
    names = {node.name: f"g{number}n{n}" for n, node in enumerate(drawing.nodes)}
    yield f"  subgraph g{number} [{_quoted(f'{drawing.title}: {drawing.caption}')}]"
    for node in drawing.nodes:
        yield f"    {names[node.name]}{SHAPES[node.shape].format(_quoted(_label(node)))}"
    for arrow in drawing.arrows:
        yield f"    {names[arrow.source]} {LINES[arrow.kind]}{_words(arrow)} {names[arrow.target]}"
    yield "  end"


def _label(node: Node) -> str:
    return "\n".join([node.label, *node.notes]).strip("\n") or " "


def _words(arrow: Arrow) -> str:
    return f"|{_quoted(chr(10).join(arrow.labels))}|" if arrow.labels else ""


def _quoted(text: str) -> str:
    """Marks that Mermaid reads as its own are written by number."""
    safe = "".join(f"#{ord(mark)};" if mark in MARKS else mark for mark in text)
    return '"' + safe.replace("\n", "<br>") + '"'
