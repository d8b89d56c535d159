"""Pictures: well-formed, complete, and right at the edges."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import coincide
from coincide.api import observed
from coincide.draw.scale import Scale, time_scale
from coincide.draw.timeline import timeline

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_every_type_has_a_lane_and_every_detection_a_mark() -> None:
    events = [{"type": f"t{n % 3}", "time": n * 1000} for n in range(100)]
    found = [{"type": "x<y>", "time": 5000, "who": "a&b"}, {"type": "long", "time": [1000, 90_000], "who": "c"}]
    svg = timeline(events, found, title="A & B", label=lambda d: str(d["who"]), leads={0: [events[3], events[5]]})
    shown = texts(svg)
    assert {"A & B", "t0", "t1", "t2", "x<y>", "long", "a&b", "c", "34", "33"} <= set(shown)
    root = ElementTree.fromstring(svg)
    assert len([p for p in root.iter(f"{SVG}path") if p.get("fill")]) == 2
    assert len(list(root.iter(f"{SVG}circle"))) == 2


@pytest.mark.parametrize("events", [[], [{"type": "a", "time": 5}], [{"type": "a", "time": 5}, {"type": "a", "time": 5}]])
def test_hardly_anything_to_show(events: list[dict[str, object]]) -> None:
    assert "Events and detections" in texts(timeline(events, []))


@pytest.mark.parametrize(
    ("scale", "first", "last", "most"),
    [
        (Scale(0, 10), "0", "10", 14),
        (Scale(0, 7), "0", "7", 14),
        (Scale(1_772_409_600_000, 1_772_496_000_000), "00:00", "00:00", 14),
        (Scale(1_772_409_600_000, 1_772_409_605_000), "00:00:00", "00:00:05", 14),
        (Scale(1_772_409_600_000, 1_774_409_600_000), "2026-03-02", "2026-03-24", 14),
    ],
)
def test_ticks_are_few_and_round(scale: Scale, first: str, last: str, most: int) -> None:
    words = [text for _, text in scale.ticks]
    assert len(words) <= most
    assert words[0].startswith(first[:5])
    assert all(scale.first <= time <= scale.last for time, _ in scale.ticks)


def test_scale_of_intervals() -> None:
    assert time_scale([(5, 9), (1, 2)]) == Scale(1, 9)
    assert Scale(1, 9).place(5) == 0.5
    assert Scale(3, 3).place(3) == 0.5


def test_what_led_to_a_detection() -> None:
    book = coincide.loads(
        "monitor m by k = repeat { push(x) { sequential { a, b } } }\nmonitor n = repeat { push(y) { sequential { x, x } } }"
    )
    records = [{"type": t, "time": n, "k": k, "id": f"e{n}"} for n, (t, k) in enumerate(["a1", "a2", "c1", "b2", "b1"], 1)]
    causes = observed(book, records).all()
    assert [(cause.event.type, [part.event.id or part.event.type for part in cause.parts]) for cause in causes] == [
        ("x", ["e2", "e4"]),
        ("x", ["e1", "e5"]),
        ("y", ["x", "x"]),
    ]
