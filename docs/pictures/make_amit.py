"""The pictures of docs/amit.md, made from its examples: what is drawn is what Amit detects.

    python docs/pictures/make_amit.py

draws each block of the page that says `picture`. Lifespans and candidates are asked of Amit too, with small situations about
the same lifespans and operands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import coincide
from coincide.draw.timeline import COLOURS, FAINT, GRID, INK, PAPER
from coincide.source import SourceText

Record = dict[str, Any]

HERE = Path(__file__).parent
PAGE = HERE.parent / "amit.md"
BLOCK = re.compile(r"^```\w+ file=(?P<name>\S+)(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

WIDTH, LEFT, RIGHT, TOP = 760, 132, 20, 14
LANE, ROW, BAR, GAP = 34, 15, 18, 8
SHADE = "#e9eef3"
STYLE = f"""
  text {{ font-family: Inter, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; fill: {INK}; font-size: 12px; }}
  .faint {{ fill: {FAINT}; font-size: 11px; }} .name {{ font-weight: 600; }}
"""


@dataclass(frozen=True)
class Example:
    """What one picture shows."""

    name: str
    events: list[Record]
    operands: list[str]  # event types that can be candidates
    candidates: set[str]
    spans: dict[str, list[tuple[float, float]]]  # of each lifespan definition
    situations: list[str]
    detections: list[Record]


@dataclass
class Sheet:
    """SVG elements from top to bottom; `y` is where the next lane begins."""

    first: float
    last: float
    y: float = TOP
    parts: list[str] = field(default_factory=list)
    dots: dict[str, float] = field(default_factory=dict)  # the x of each event

    def x(self, time: float) -> float:
        return LEFT + (time - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)


def pictures(page: str) -> Iterator[tuple[str, str]]:
    """Name and SVG text of all pictures of the page."""
    texts = {block["name"]: block["text"] for block in BLOCK.finditer(page)}
    events = [json.loads(line) for line in texts["oven.jsonl"].splitlines()]
    for block in BLOCK.finditer(page):
        if "picture" in block["info"]:
            name = block["name"].partition(".")[0]
            yield f"amit-{name}.svg", draw(example(name, events, texts["oven.amit.xml"], block["text"]))


# What Amit says.


def example(name: str, events: list[Record], vocabulary: str, rules: str) -> Example:
    known = [ElementTree.fromstring(text) for text in (vocabulary, rules)]
    situations = known[1].findall("situation")
    used = {s.attrib["lifespan"]: None for s in situations}
    lifespans = {e.attrib["name"]: e for root in known for e in root.findall("lifespan") if e.attrib["name"] in used}
    operands = [(s.attrib["lifespan"], operand) for s in situations for operand in s.iter() if operand.tag.startswith("operand")]
    return Example(
        name,
        events,
        list(dict.fromkeys(operand.attrib["event"] for _, operand in operands)),
        {id for lifespan, operand in operands for id in _candidates(events, (vocabulary, rules), lifespan, operand)},
        {name: list(_spans(events, (vocabulary, rules), lifespan)) for name, lifespan in lifespans.items()},
        [s.attrib["name"] for s in situations],
        _detect((vocabulary, rules), events),
    )


def _candidates(events: list[Record], rules: Iterable[str], lifespan: str, operand: ElementTree.Element) -> Iterator[str]:
    single = ElementTree.Element("operandAll", {n: v for n, v in operand.attrib.items() if n in ("event", "threshold")})
    probe = f"<all>{ElementTree.tostring(single, encoding='unicode')}</all>"
    for found in _detect((*rules, _probe(lifespan, probe)), events):
        if found["type"] == "probe":
            yield from found["from"]


def _spans(events: list[Record], rules: Iterable[str], lifespan: ElementTree.Element) -> Iterator[tuple[float, float]]:
    """Nothing happens in any of them that `not` asks for, so it is detected at the end of each."""
    (opener,) = lifespan.iter("eventInitiator")
    begun = f'<situationAttribute name="begun" type="number" expression="{opener.attrib["event"]}.time"/>'
    probe = '<not><operandNot event="check" threshold="false"/></not>' + begun
    for found in _detect((*rules, _probe(lifespan.attrib["name"], probe)), events, until="inf"):
        if found["type"] == "probe":
            yield found["begun"], found["time"]


def _probe(lifespan: str, operator: str) -> str:
    return f'<amit><situation name="probe" lifespan="{lifespan}">{operator}</situation></amit>'


def _detect(rules: Iterable[str], events: list[Record], until: str | None = None) -> list[Record]:
    sources = [SourceText(f"{number}.amit.xml", text) for number, text in enumerate(rules)]
    return coincide.detect(coincide.load(*sources), events, until)


# How it looks.


def draw(shown: Example) -> str:
    times = [event["time"] for event in shown.events]
    sheet = Sheet(min(times) - 0.5, max(times) + 0.5)
    _lifespans(sheet, shown)
    top = sheet.y
    for kind in shown.operands:
        _events(sheet, kind, shown)
    for number, name in enumerate(shown.situations):
        _detections(sheet, name, shown, COLOURS[number % len(COLOURS)])
    shade = _shade(sheet, shown, top) if len(shown.spans) == 1 else []
    return _page(sheet, shown, shade)


def _lifespans(sheet: Sheet, shown: Example) -> None:
    """A bar for each, below another one that is open at the same time."""
    for name, spans in shown.spans.items():
        sheet.parts.append(_text(LEFT - 12, sheet.y + 13, name, "faint", "end"))
        rows: list[float] = []  # until where each row is taken
        for begin, end in spans:
            x, width = sheet.x(begin), sheet.x(min(end, sheet.last)) - sheet.x(begin)
            y = sheet.y + _free(rows, x, x + width) * (BAR + 3)
            sheet.parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="4" fill="#bcccdc"/>')
            sheet.parts.append(_text(x + 6, y + 13, f"{begin:g} to {end:g}" if width > 60 else "", "faint"))
        sheet.y += max(len(rows), 1) * (BAR + 3) + GAP


def _events(sheet: Sheet, kind: str, shown: Example) -> None:
    middle = sheet.y + LANE / 2 + 4
    sheet.parts.append(_text(LEFT - 12, middle + 4, kind, anchor="end"))
    sheet.parts.append(f'<line x1="{LEFT}" y1="{middle}" x2="{WIDTH - RIGHT}" y2="{middle}" stroke="{GRID}"/>')
    for event in shown.events:
        if event["type"] == kind:
            x = sheet.x(event["time"])
            sheet.dots[event["id"]] = x
            fill = INK if event["id"] in shown.candidates else PAPER
            sheet.parts.append(f'<circle cx="{x:.1f}" cy="{middle}" r="5" fill="{fill}" stroke="{INK}" stroke-width="1.5"/>')
            sheet.parts.append(_text(x, middle - 9, f"{event.get('celsius', '')}", "faint", "middle"))
    sheet.y += LANE


def _detections(sheet: Sheet, name: str, shown: Example, colour: str) -> None:
    """Each from the first event that it is from to the time of its report; in the same row only if they do not overlap."""
    found = [d for d in shown.detections if d["type"] == name]
    rows: list[float] = []
    sheet.parts.append(_text(LEFT - 12, sheet.y + LANE / 2 + 4, name, "name", "end", colour))
    for detection in found:
        xs = [sheet.dots[id] for id in detection["from"]]
        end = sheet.x(detection["time"])
        row = _free(rows, min([*xs, end]) - 9, end + 9)
        sheet.parts += _detection(xs, end, sheet.y + LANE / 2 + row * ROW, colour)
    sheet.y += LANE + max(len(rows) - 1, 0) * ROW


def _detection(xs: list[float], end: float, y: float, colour: str) -> list[str]:
    line = f'<path d="M{min([*xs, end]):.1f} {y}H{end:.1f}" stroke="{colour}" stroke-width="1.5"/>'
    dots = [f'<circle cx="{x:.1f}" cy="{y}" r="3.5" fill="{colour}"/>' for x in xs]
    return [line, *dots, f'<path d="M{end:.1f} {y - 7}l7 7l-7 7l-7 -7z" fill="{colour}" stroke="{PAPER}" stroke-width="1.2"/>']


def _free(rows: list[float], begin: float, end: float) -> int:
    """The first row that has room, which is then taken until `end`."""
    row = next((number for number, taken in enumerate(rows) if taken <= begin), len(rows))
    rows[row : row + 1] = [end]
    return row


def _shade(sheet: Sheet, shown: Example, top: float) -> list[str]:
    return [
        f'<rect x="{sheet.x(a):.1f}" y="{top}" width="{sheet.x(b) - sheet.x(a):.1f}" height="{sheet.y - top}" fill="{SHADE}"/>'
        for spans in shown.spans.values()
        for a, b in spans
    ]


def _page(sheet: Sheet, shown: Example, shade: list[str]) -> str:
    bottom = sheet.y + 6
    ticks = [t for t in range(int(sheet.first), int(sheet.last) + 1) if t % 2 == 0]
    axis = [_text(sheet.x(t), bottom + 14, str(t), "faint", "middle") for t in ticks]
    grid = [f'<line x1="{sheet.x(t):.1f}" y1="{TOP}" x2="{sheet.x(t):.1f}" y2="{bottom}" stroke="{GRID}"/>' for t in ticks]
    height = int(bottom + 24)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">'
    title = f"<title>{escape(shown.name)}: {escape(', '.join(shown.situations))}</title><style>{STYLE}</style>"
    paper = f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>'
    return "\n".join([head, title, paper, *shade, *grid, *sheet.parts, *axis, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, css: str = "", anchor: str = "start", colour: str | None = None) -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    name = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{name}{fill}>{escape(text)}</text>' if text else ""


def main() -> None:
    for name, text in pictures(PAGE.read_text(encoding="utf-8")):
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
