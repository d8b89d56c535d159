"""The shapes of nodes: how much room they take, and what they look like."""

from __future__ import annotations

from html import escape

from coincide.draw.graph import Node
from coincide.draw.layout import Box

INK, PAPER, ACCENT = "#1f2933", "#ffffff", "#0b7285"
PIPE, WATER = "#829ab1", "#d9e8f5"
TEXT, LETTER, LINE, CAPTION_LINE = 13, 7.8, 16.0, 17.0  # size of letters, their width, distance of lines
NOTE_LETTER, NOTE_LINE = 6.6, 14.0

RADIUS, SMALL, DOT = 20.0, 5.5, 4.0
PILL = 15.0  # half of a tap's height
TANK, TANK_HALF = 26.0, 32.0


BOXES = {"event": WATER, "collection": WATER, "operator": PAPER, "condition": "#fff8e6", "span": "#e6f4f1"}
"""Shapes that hold several lines, each with its colour."""


def reach(node: Node) -> tuple[float, bool]:
    """How far from its middle arrows end, and whether the shape is round."""
    round_ones = {"state": RADIUS, "final": RADIUS, "start": DOT, "junction": SMALL}
    if node.shape in round_ones:
        return round_ones[node.shape], True
    return {"timer": 16.0, "tank": TANK_HALF}.get(node.shape, _half(node)), False


def _half(node: Node) -> float:
    """Of the width of a shape that holds its words."""
    words = LETTER * max(map(len, node.label.split("\n"))) / 2
    return words * 1.08 + 16 if node.shape == "result" else words + 14


def _rise(node: Node) -> float:
    """Half of the height of a shape that holds several lines."""
    return 7 + LINE * len(node.label.split("\n")) / 2


def node_box(node: Node) -> Box:
    words, notes = LETTER * len(node.label) / 2, NOTE_LINE * len(node.notes)
    wide = max([NOTE_LETTER * len(note) / 2 for note in node.notes], default=0.0)
    match node.shape:
        case "state" | "final":
            return Box(max(RADIUS, wide), RADIUS, RADIUS + notes)
        case "start":
            return Box(DOT, DOT, DOT)
        case "junction":
            return Box(max(SMALL, words, wide), SMALL + (LINE if node.label else 0), SMALL + notes)
        case "timer":
            return Box(max(18.0, words, wide), 34.0, 16.0 + LINE + notes)
        case "tank":
            return Box(max(TANK_HALF, wide), TANK + 8, TANK + 8 + notes)
        case "result":
            return Box(max(_half(node), wide), 18.0, 20.0 + notes)
        case "event" | "collection" | "operator" | "condition" | "span":
            return Box(max(_half(node), wide), _rise(node) + 2, _rise(node) + 2 + notes)
        case _:
            return Box(max(_half(node), wide), PILL + 13, PILL + notes)


def node_parts(node: Node, box: Box) -> list[str]:
    x, y = box.x, box.y
    draw = {"state": _state, "final": _final, "start": _start, "junction": _junction, "timer": _timer, "tank": _tank}
    own = {"tap": _tap, "result": _result}
    shape, below = draw[node.shape](x, y) if node.shape in draw else own.get(node.shape, _box)(node, x, y)
    lines = node.label.split("\n") if node.label else []
    label = {"junction": -SMALL - 6, "timer": 16.0 + 11}.get(node.shape, 4.5) - LINE * (len(lines) - 1) / 2
    css = ' class="result"' if node.shape == "result" else ""
    words = [
        f'<text x="{x:.1f}" y="{y + label + n * LINE:.1f}" text-anchor="middle"{css}>{escape(line)}</text>'
        for n, line in enumerate(lines)
    ]
    notes = [
        f'<text x="{x:.1f}" y="{y + below + 11 + n * NOTE_LINE:.1f}" text-anchor="middle" class="note">{escape(note)}</text>'
        for n, note in enumerate(node.notes)
    ]
    return [*shape, *words, *notes]


Shape = tuple[list[str], float]
"""What it looks like, and how far below its middle notes begin."""


def _state(x: float, y: float) -> Shape:
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{PAPER}" class="line" style="fill:{PAPER}"/>'], RADIUS + 2


def _final(x: float, y: float) -> Shape:
    inner = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS - 4}" class="line"/>'
    outer = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" class="line" style="fill:#e6f4f1"/>'
    return [outer, inner], RADIUS + 2


def _start(x: float, y: float) -> Shape:
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT}" fill="{INK}"/>'], DOT


def _junction(x: float, y: float) -> Shape:
    return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{SMALL + 1.5}" fill="{PIPE}"/>'], SMALL + 2


def _tap(node: Node, x: float, y: float) -> Shape:
    """A length of pipe with a handle on it."""
    half = _half(node)
    handle = f'<path d="M{x:.1f} {y - PILL:.1f}v-8m-9 0h18" class="line" style="stroke:{PIPE};stroke-width:3"/>'
    body = (
        f'<rect x="{x - half:.1f}" y="{y - PILL:.1f}" width="{2 * half:.1f}" height="{2 * PILL:.1f}" rx="{PILL}" '
        f'fill="{WATER}" stroke="{PIPE}" stroke-width="1.6"/>'
    )
    return [handle, body], PILL + 2


def _result(node: Node, x: float, y: float) -> Shape:
    half = _half(node)
    return [f'<rect x="{x - half:.1f}" y="{y - 18:.1f}" width="{2 * half:.1f}" height="36" rx="6" fill="{ACCENT}"/>'], 20.0


def _box(node: Node, x: float, y: float) -> Shape:
    """Events have round ends, a collection is a pile, what is open for a time has a double line."""
    half, rise = _half(node), _rise(node)
    corner = min(rise, 15.0) if node.shape in ("event", "collection") else 5.0
    stroke = PIPE if node.shape in ("event", "collection") else ACCENT if node.shape == "span" else INK
    parts = [
        _outline(x + d, y - d, half, rise, corner, BOXES[node.shape], stroke) for d in (6.0, 3.0) if node.shape == "collection"
    ]
    parts.append(_outline(x, y, half, rise, corner, BOXES[node.shape], stroke))
    if node.shape == "span":
        parts.append(_outline(x, y, half - 3, rise - 3, corner - 2, "none", stroke))
    return parts, rise + 2


def _outline(x: float, y: float, half: float, rise: float, corner: float, fill: str, stroke: str) -> str:
    return (
        f'<rect x="{x - half:.1f}" y="{y - rise:.1f}" width="{2 * half:.1f}" height="{2 * rise:.1f}" rx="{corner:.1f}" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="1.4"/>'
    )


def valve(x: float, y: float, size: float = 11.0) -> list[str]:
    """Two triangles, tip to tip."""
    left, right, top, bottom = (f"{v:.1f}" for v in (x - size, x + size, y - size * 0.8, y + size * 0.8))
    d = f"M{left} {top}L{right} {bottom}V{top}L{left} {bottom}z"
    return [f'<path d="{d}" fill="{PAPER}" stroke="{INK}" stroke-width="1.5" stroke-linejoin="round"/>']


def _timer(x: float, y: float) -> Shape:
    """A valve that a clock opens and shuts."""
    clock = [
        f'<path d="M{x:.1f} {y:.1f}v-14" class="line"/>',
        f'<circle cx="{x:.1f}" cy="{y - 23:.1f}" r="9" class="line" style="fill:#fff3d6"/>',
        f'<path d="M{x:.1f} {y - 28.5:.1f}v5.5l4 2.5" class="line"/>',
    ]
    return [*clock, *valve(x, y, 15.0)], 16.0 + LINE


def _tank(x: float, y: float) -> Shape:
    """Upright, with room for what comes in on either inlet."""
    w, h, e = TANK_HALF, TANK, 7.0
    side = f"M{x - w:.1f} {y - h:.1f}v{2 * h:.1f}a{w:.1f} {e} 0 0 0 {2 * w:.1f} 0v{-2 * h:.1f}"
    return [
        f'<path d="{side}" fill="{WATER}" stroke="{PIPE}" stroke-width="1.6"/>',
        f'<ellipse cx="{x:.1f}" cy="{y - h:.1f}" rx="{w:.1f}" ry="{e}" fill="{PAPER}" stroke="{PIPE}" stroke-width="1.6"/>',
    ], TANK + 10
