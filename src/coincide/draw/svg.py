"""Drawings as SVG text: one page, one drawing below the other. Any browser shows it; nothing has to be installed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from coincide.draw.graph import Arrow, Drawing, Node, wrapped
from coincide.draw.layout import CLOSE, Box, Route, laid_out
from coincide.draw.shapes import CAPTION_LINE, INK, LETTER, LINE, PAPER, TEXT, node_box, node_parts
from coincide.draw.ways import arrow_parts

MARGIN = 28.0
CAPTION_WIDTH = 110  # letters

STYLE = f"""
  text {{ font-family: 'DejaVu Sans', Verdana, 'Segoe UI', Helvetica, Arial, sans-serif; font-size: {TEXT}px; fill: {INK}; }}
  .title {{ font-size: 17px; font-weight: 600; }} .note {{ font-size: 11px; fill: #52606d; }}
  .core {{ font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px; fill: #52606d; }}
  .result {{ font-weight: 600; fill: {PAPER}; }}
  .line {{ fill: none; stroke: {INK}; stroke-width: 1.4; }}
"""
MARKER = (
    '<defs><marker id="arrow" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" refX="9" refY="5" orient="auto">'
    f'<path d="M0 0.8L10 5L0 9.2z" fill="{INK}"/></marker></defs>'
)


def svg(drawings: Sequence[Drawing], marked: bool = False) -> str:
    """`marked`: for a page that changes it and has styles for its classes; each node is an element that bears its name."""
    parts: list[str] = []
    width, y = 0.0, MARGIN
    for drawing in drawings:
        head, body, wide, high = _drawing(drawing, y, marked)
        parts += [*head, *body]
        width, y = max(width, wide), y + high + MARGIN
    size = f"{width + 2 * MARGIN:.0f}", f"{y:.0f}"
    room = f'viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}"'
    top = f'<svg xmlns="http://www.w3.org/2000/svg" {room} role="img">'
    title = escape(", ".join(drawing.title for drawing in drawings))
    paper = f'<rect width="{size[0]}" height="{size[1]}" fill="{PAPER}"/>'
    return (
        "\n".join([top, f"<title>{title}</title>{'' if marked else f'<style>{STYLE}</style>'}", MARKER, paper, *parts, "</svg>"])
        + "\n"
    )


def _drawing(drawing: Drawing, y: float, marked: bool) -> tuple[list[str], list[str], float, float]:
    """Its title and its graph, set below y; how wide and how high they are."""
    lines = wrapped(drawing.caption, CAPTION_WIDTH)
    head = [f'<text x="{MARGIN:.1f}" y="{y + 14:.1f}" class="title">{escape(drawing.title)}</text>']
    for n, line in enumerate(lines):
        head.append(f'<text x="{MARGIN:.1f}" y="{y + 36 + n * CAPTION_LINE:.1f}" class="core">{escape(line)}</text>')
    below = 44.0 + len(lines) * CAPTION_LINE
    body, width, height = _graph(drawing, marked)
    moved = [f'<g transform="translate({MARGIN:.1f} {y + below:.1f})">', *body, "</g>"]
    words = max(7.3 * max(map(len, lines), default=0), 10.0 * len(drawing.title))
    return head, moved, max(width, words), below + height


def _graph(drawing: Drawing, marked: bool) -> tuple[list[str], float, float]:
    loops = {arrow.source: arrow for arrow in drawing.arrows if arrow.source == arrow.target}
    boxes = {node.name: _with_loop(node, loops.get(node.name)) for node in drawing.nodes}
    labels = {n: box for n, arrow in enumerate(drawing.arrows) if (box := _label_box(arrow)) is not None}
    routes, width, height = laid_out(boxes, [(arrow.source, arrow.target) for arrow in drawing.arrows], labels)
    parts: list[str] = []
    nodes = {node.name: node for node in drawing.nodes}
    for arrow, route in zip(drawing.arrows, routes, strict=True):
        parts += arrow_parts(arrow, route, nodes[arrow.source], nodes[arrow.target])
    for node in drawing.nodes:
        own = node_parts(node, boxes[node.name])
        parts += [f'<g data-node="{escape(node.name)}">', *own, "</g>"] if marked else own
    for arrow, route in zip(drawing.arrows, routes, strict=True):
        parts += _words(arrow, route)
    return parts, width, height


def _with_loop(node: Node, loop: Arrow | None) -> Box:
    box = node_box(node)
    if loop is not None:
        box.above += 34 + LINE * len(loop.labels)
        box.half = max(box.half, LETTER * max(map(len, loop.labels), default=0) / 2)
    return box


def _label_box(arrow: Arrow) -> Box | None:
    """Words stand above their arrow."""
    if arrow.source == arrow.target:
        return None
    if arrow.kind == "valve":
        return Box(14.0, 12.0, 12.0)
    if not arrow.labels:
        return Box(3.0, *((CLOSE, CLOSE) if arrow.kind == "weak" else (8.0, 8.0)))
    return Box(LETTER * max(map(len, arrow.labels)) / 2 + 6, LINE * len(arrow.labels) + 6, 5.0)


def _words(arrow: Arrow, route: Route) -> list[str]:
    if not arrow.labels or arrow.kind == "valve":
        return []
    box = route.label
    x, y = (box.x, box.y) if box is not None else (route.points[0].x, route.points[0].y - 50)
    first = y - 6 - LINE * (len(arrow.labels) - 1)
    return [
        f'<text x="{x:.1f}" y="{first + n * LINE:.1f}" text-anchor="middle">{escape(line)}</text>'
        for n, line in enumerate(arrow.labels)
    ]
