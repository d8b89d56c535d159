"""The comparison as a table and a picture of docs/performance.md."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from math import log10
from pathlib import Path

from benchmarks.pages import circumstances, put
from benchmarks.peers.comparison import Comparison
from benchmarks.peers.setup import FLINK, SIDDHI

COLUMNS = ("coincide", "Siddhi", "Flink SQL", "Polars", "a loop in Python")
COLOURS = ("#1b6ca8", "#c8553d", "#e0a458", "#6a8d73", "#9a9a9a")
PICTURE = "pictures/peers.svg"
LEFT, WIDTH, BAR, LEAST, MOST = 330, 420, 13, 3.0, 7.5
"""Where bars begin, how long the longest is, how thick each is; the powers of ten that they go from and to."""


def write_page(page: str, found: Sequence[Comparison]) -> None:
    path = Path(page)
    lines = [f"| question | rows | {' | '.join(COLUMNS)} |", f"| --- | {' | '.join(['---:'] * (len(COLUMNS) + 1))} |"]
    lines += [f"| {one.words} | {one.rows:,} | {' | '.join(_cells(one))} |" for one in found]
    java = f"{FLINK.replace('==', ' ')}, {SIDDHI.replace('==', ' ')}"
    about = circumstances(f"coincide {version('coincide')}", f"Polars {version('polars')}", java)
    load = f"load {os.getloadavg()[2]:.0f} on {os.cpu_count()} processors"
    words = f"Thousand events for each second of processor time, without start-up; {about}; {load}."
    picture = f"![Events for each second of processor time, by question and engine; the scale is logarithmic]({PICTURE})"
    put(path, "benchmarks.peers", [words, "", *lines, "", picture])
    (path.parent / PICTURE).parent.mkdir(exist_ok=True)
    (path.parent / PICTURE).write_text(picture_of(found), encoding="utf-8")


def speed(one: Comparison, column: str) -> float:
    """The best of those whose name begins so; 0 if there is none."""
    return max((result.speed for result in one.results if result.name.startswith(column)), default=0)


def _cells(one: Comparison) -> list[str]:
    speeds = [speed(one, column) for column in COLUMNS]
    return [f"**{value / 1000:,.0f}**" if value == max(speeds) else f"{value / 1000:,.0f}" if value else "" for value in speeds]


def picture_of(found: Sequence[Comparison]) -> str:
    """Bars, one group a question; each power of ten is as far as the next."""
    parts, y = [_legend()], 34
    for one in found:
        parts.append(f'<text x="{LEFT - 10}" y="{y + 2.7 * BAR}" text-anchor="end">{_short(one.words)}</text>')
        for column, colour in zip(COLUMNS, COLOURS, strict=True):
            parts.append(_bar(speed(one, column), y, colour))
            y += BAR
        y += BAR
    size = f'width="{LEFT + WIDTH + 90}" height="{y}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def _bar(value: float, y: int, colour: str) -> str:
    if not value:
        return ""
    length = max(2.0, WIDTH * (log10(value) - LEAST) / (MOST - LEAST))
    told = f"{value / 1e6:.1f} M" if value >= 1e6 else f"{value / 1e3:.0f} k"
    bar = f'<rect x="{LEFT}" y="{y}" width="{length:.0f}" height="{BAR - 2}" fill="{colour}"/>'
    return f'{bar}<text x="{LEFT + length + 5:.0f}" y="{y + BAR - 3}" font-size="10">{told}</text>'


def _legend() -> str:
    places = [(name, colour, 10 + 150 * n) for n, (name, colour) in enumerate(zip(COLUMNS, COLOURS, strict=True))]
    return "".join(
        f'<rect x="{x}" y="8" width="12" height="12" fill="{c}"/><text x="{x + 18}" y="18">{name}</text>' for name, c, x in places
    )


def _short(words: str) -> str:
    return words if len(words) <= 50 else f"{words[:48].rsplit(' ', 1)[0]} …"
