"""A stream on one page: how many events of each type when, and what was detected, as SVG text.

Nothing but text is needed to make it, and any browser shows it; marks have tool tips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from coincide.draw.scale import Scale, time_scale
from coincide.expr.quantities import counted

Record = Mapping[str, Any]

WIDTH = 1200
RIGHT, TOP = 36, 84
LANE, FOUND_LANE = 22, 42
COUNTS = 58  # room for the counts, between names and lanes
MANY = 300  # marks of one lane that can still be told apart
BIN = 5  # pixels that one cell of a strip is wide

INK, FAINT, GRID, PAPER = "#1f2933", "#7b8794", "#e4e7eb", "#ffffff"
STRIP = "#486581"
COLOURS = ("#d64545", "#0b7285", "#b86e00", "#6741d9", "#2b8a3e", "#c2255c", "#1864ab", "#5c940d")

STYLE = f"""
  text {{ font-family: Inter, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; fill: {INK}; font-size: 12px; }}
  .title {{ font-size: 20px; font-weight: 600; }} .faint {{ fill: {FAINT}; }} .count {{ fill: {FAINT}; font-size: 11px; }}
  .head {{ fill: {FAINT}; font-size: 11px; letter-spacing: 0.08em; }}
  .name {{ font-weight: 600; }} .mark {{ font-size: 11px; }}
"""


@dataclass(frozen=True)
class Mark:
    """One detection in its lane: what stands beside it, and its tool tip."""

    lo: float
    hi: float
    label: str
    tip: str
    led_by: tuple[tuple[str, float], ...] = ()  # type and time of the events that led to it


@dataclass
class Picture:
    """SVG elements gathered from top to bottom; `y` is where the next goes."""

    scale: Scale
    left: float  # where lanes begin
    y: float = TOP
    parts: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # what stands beside and above the lanes, and has no time
    rows: dict[str, float] = field(default_factory=dict)  # middle of each event type's lane

    def add(self, *parts: str) -> None:
        self.parts.extend(parts)

    def name(self, *parts: str) -> None:
        self.names.extend(parts)

    def x(self, time: float) -> float:
        return self.left + self.scale.place(time) * (WIDTH - self.left - RIGHT)


def timeline(
    events: Iterable[Record],
    detections: Iterable[Record],
    *,
    title: str = "Events and detections",
    label: Callable[[Record], str] | None = None,
    leads: Mapping[int, Sequence[Record]] | None = None,
) -> str:
    """The SVG text. Records have `type` and `time` (milliseconds, or [lo, hi]).

    `label` gives the words that stand beside a detection; `leads` gives, by the number of a detection, the events
    that led to it, which are marked in their lanes."""
    shown, found = list(events), list(detections)
    longest = max((len(str(r["type"])) for r in (*shown, *found)), default=0)
    picture = Picture(time_scale([span(r) for r in (*shown, *found)]), COUNTS + 24 + 7.4 * min(longest, 32))
    _strips(picture, shown)
    _lanes(picture, _marks(found, label, leads or {}))
    _axis(picture)
    return _page(picture, title, f"{counted(len(shown), 'event')}, {counted(len(found), 'detection')}")


def span(record: Record) -> tuple[float, float]:
    time = record["time"]
    return (float(time[0]), float(time[1])) if isinstance(time, (list, tuple)) else (float(time), float(time))


def _marks(
    found: Sequence[Record], label: Callable[[Record], str] | None, leads: Mapping[int, Sequence[Record]]
) -> dict[str, list[Mark]]:
    lanes: dict[str, list[Mark]] = {}
    for number, record in enumerate(found):
        lo, hi = span(record)
        tip = ", ".join(f"{name}: {value}" for name, value in record.items() if name not in ("time", "from"))
        led = tuple((str(r["type"]), span(r)[1]) for r in leads.get(number, ()))
        lanes.setdefault(str(record["type"]), []).append(Mark(lo, hi, label(record) if label else "", tip, led))
    return lanes


# Events: a strip a type, darker where there are more.


def _strips(picture: Picture, events: Sequence[Record]) -> None:
    by_type: dict[str, list[float]] = {}
    for record in events:
        by_type.setdefault(str(record["type"]), []).append(span(record)[1])
    _head(picture, "EVENTS")
    for name in sorted(by_type):
        _strip(picture, name, by_type[name])
    picture.y += 18


def _strip(picture: Picture, name: str, times: Sequence[float]) -> None:
    top, height = picture.y, LANE - 6
    picture.rows[name] = top + height / 2
    width = WIDTH - picture.left - RIGHT
    picture.name(
        _text(picture.left - COUNTS, top + 12, name, anchor="end"),
        _text(picture.left - 12, top + 12, f"{len(times):,}", "count", "end"),
    )
    picture.add(f'<rect x="{picture.left:.1f}" y="{top}" width="{width:.1f}" height="{height}" fill="#f5f7fa" rx="2"/>')
    _cells(picture, times, top, height, STRIP)
    picture.y += LANE


def _cells(picture: Picture, times: Sequence[float], top: float, height: float, colour: str) -> None:
    """How many when: darker where there are more."""
    last = int((WIDTH - picture.left - RIGHT) // BIN) - 1
    cells = Counter(min(int((picture.x(time) - picture.left) // BIN), last) for time in times)
    most = max(cells.values())
    for cell, count in sorted(cells.items()):
        shade = 0.18 + 0.72 * (count / most) ** 0.6
        x = picture.left + cell * BIN
        picture.add(f'<rect x="{x:.1f}" y="{top}" width="{BIN - 1}" height="{height}" fill="{colour}" opacity="{shade:.2f}"/>')


# Detections: a lane a type, a diamond (or, of an interval, a bar) each; very many are a strip like events.


def _lanes(picture: Picture, lanes: Mapping[str, Sequence[Mark]]) -> None:
    _head(picture, "DETECTIONS")
    for number, (name, marks) in enumerate(lanes.items()):
        colour = COLOURS[number % len(COLOURS)]
        middle = picture.y + FOUND_LANE / 2
        picture.name(
            _text(picture.left - COUNTS, middle + 4, name, "name", "end", colour),
            _text(picture.left - 12, middle + 4, f"{len(marks):,}", "count", "end"),
        )
        picture.add(
            f'<line x1="{picture.left}" y1="{middle}" x2="{WIDTH - RIGHT}" y2="{middle}" stroke="{colour}" opacity="0.25"/>'
        )
        if len(marks) > MANY:
            _cells(picture, [mark.hi for mark in marks], middle - 8, 16, colour)
        else:
            _place_marks(picture, marks, middle, colour)
        picture.y += FOUND_LANE


def _place_marks(picture: Picture, marks: Sequence[Mark], middle: float, colour: str) -> None:
    """Labels stand above their marks, below where there is no room, and are left out where there is none at all."""
    free = {-11.0: 0.0, 20.0: 0.0}  # from which x on a label at this height has room
    for mark in sorted(marks, key=lambda m: m.hi):
        x0, x1 = picture.x(mark.lo), picture.x(mark.hi)
        picture.add(
            f"<g><title>{escape(mark.tip)}</title>", *_leads(picture, mark, x1, middle, colour), *_shape(x0, x1, middle, colour)
        )
        width = 6.2 * len(mark.label) + 8
        centre = min(max(x1, picture.left + width / 2), WIDTH - RIGHT - width / 2 + 20)
        offset = next((o for o, begin in free.items() if centre - width / 2 >= begin), None)
        if mark.label and offset is not None:
            free[offset] = centre + width / 2
            picture.add(*_tag(centre, middle + offset, width, mark.label))
        picture.add("</g>")


def _tag(x: float, y: float, width: float, words: str) -> list[str]:
    """Words on a piece of paper, so that no thread runs through them."""
    paper = f'<rect x="{-width / 2:.1f}" y="-10" width="{width:.1f}" height="13" fill="{PAPER}"/>'
    return [f'<g transform="translate({x:.1f} {y:.1f})">', paper, _text(0, 0, words, "mark", "middle"), "</g>"]


def _shape(x0: float, x1: float, y: float, colour: str) -> list[str]:
    bar = f'<rect x="{x0:.1f}" y="{y - 3}" width="{x1 - x0:.1f}" height="6" rx="3" fill="{colour}" opacity="0.45"/>'
    diamond = f'<path d="M{x1:.1f} {y - 6}l6 6l-6 6l-6 -6z" fill="{colour}" stroke="{PAPER}" stroke-width="1.2"/>'
    return [bar, diamond] if x1 - x0 > 1 else [diamond]


def _leads(picture: Picture, mark: Mark, x: float, y: float, colour: str) -> list[str]:
    """A thread from the detection up to the events that led to it, and a dot on each of these."""
    dots = [(picture.x(time), picture.rows[name]) for name, time in mark.led_by if name in picture.rows]
    if not dots:
        return []
    highest = min(row for _, row in dots)
    thread = f'<path d="M{x:.1f} {highest:.1f}V{y:.1f}" stroke="{colour}" stroke-dasharray="2 3" opacity="0.55"/>'
    return [thread, *(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" fill="{colour}" stroke="{PAPER}"/>' for a, b in dots)]


# Frame.


def _head(picture: Picture, text: str) -> None:
    picture.name(_text(picture.left, picture.y, text, "head"))
    picture.y += 10


def _axis(picture: Picture) -> None:
    bottom = picture.y + 6
    lines = []
    for time, words in picture.scale.ticks:
        x = picture.x(time)
        lines.append(f'<line x1="{x:.1f}" y1="{TOP + 8}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>')
        picture.add(_text(x, bottom + 18, words, "faint", "middle"))
    picture.parts[:0] = lines  # behind everything
    picture.y = bottom + 34


def _page(picture: Picture, title: str, subtitle: str) -> str:
    height = int(picture.y + 8)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>',
        _text(picture.left, 34, title, "title"),
        _text(picture.left, 54, f"{subtitle}  ·  {picture.scale.caption}", "faint"),
    ]
    scale = picture.scale  # told, so that a script can move the lanes and say what time it is
    edges = {"left": picture.left, "right": WIDTH - RIGHT, "first": scale.first, "last": scale.last}
    ends = " ".join(f'data-{name}="{value:.3f}"' for name, value in edges.items())
    return "\n".join([*head, *picture.names, f'<g class="time" {ends}>', *picture.parts, "</g>", "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, css: str = "", anchor: str = "start", colour: str | None = None) -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    name = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name}{fill}>{escape(text)}</text>'
