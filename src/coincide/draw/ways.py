"""Arrows and pipes: the curve along a route, and how each kind is drawn."""

from __future__ import annotations

from itertools import pairwise
from math import hypot

from coincide.draw.graph import Arrow, Node
from coincide.draw.layout import Box, Route
from coincide.draw.shapes import INK, PAPER, PIPE, RADIUS, WATER, reach, valve

Point = tuple[float, float]

STEEP = 1.1  # how steeply, at most, an arrow leaves a round node


def arrow_parts(arrow: Arrow, route: Route, source: Node, target: Node) -> list[str]:
    d = _loop(route.points[0]) if arrow.source == arrow.target else _curve(_points(route, source, target))
    match arrow.kind:
        case "pipe" | "valve":
            pipe = [_line(d, PIPE, 8.0), _line(d, WATER, 5.0)]
            box = route.label
            if box is None:
                return pipe
            leftward = route.points[0].x > route.points[-1].x
            return [*pipe, *(valve(box.x, box.y) if arrow.kind == "valve" else _stream(box, leftward))]
        case "strong":
            head = f'<path d="{d}" fill="none" stroke="none" marker-end="url(#arrow)"/>'
            return [_line(d, INK, 4.6), _line(d, PAPER, 2.0), head]
        case _:
            return [f'<path d="{d}" class="line" marker-end="url(#arrow)"/>']


def _line(d: str, colour: str, width: float) -> str:
    return f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _stream(box: Box, leftward: bool) -> list[str]:
    """Which way it flows."""
    tip = -3 if leftward else 3
    return [f'<path d="M{box.x - tip:.1f} {box.y - 4:.1f}l{2 * tip} 4l{-2 * tip} 4" class="line"/>']


def _points(route: Route, source: Node, target: Node) -> list[Point]:
    """Where the curve passes: from edge to edge of the nodes, straight under a label and past other nodes."""
    inner: list[Point] = []
    for box in route.points[1:-1]:
        ends = [(box.x - box.across, box.y), (box.x + box.across, box.y)]
        inner += ends if route.points[0].x < route.points[-1].x else ends[::-1]
    first, last = route.points[0], route.points[-1]
    return [_edge(source, first, inner[0]), *inner, _edge(target, last, inner[-1])]


def _edge(node: Node, box: Box, towards: Point) -> Point:
    far, is_round = reach(node)
    dx, dy = towards[0] - box.x, towards[1] - box.y
    if not is_round:
        return box.x + (far if dx > 0 else -far), box.y
    dy = max(-STEEP * abs(dx), min(STEEP * abs(dx), dy))
    length = hypot(dx, dy) or 1.0
    return box.x + far * dx / length, box.y + far * dy / length


def _curve(points: list[Point]) -> str:
    x, y = points[0]
    d = [f"M{x:.1f} {y:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        if abs(y0 - y1) < 0.1:
            d.append(f"L{x1:.1f} {y1:.1f}")
        else:
            middle = (x0 + x1) / 2
            d.append(f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}")
    return "".join(d)


def _loop(box: Box) -> str:
    """Above a round node, from it to it."""
    dx, dy = RADIUS * 0.55, RADIUS * 0.84
    return f"M{box.x - dx:.1f} {box.y - dy:.1f}c-18 -38 {36 + 2 * dx:.1f} -38 {2 * dx:.1f} 0"
