"""What led to a detection: for people who ask why. Some languages keep no events, so it is found from the stream again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from coincide.detection.base import Detector
from coincide.expr.scalar import EventScope, condition, event_field
from coincide.model.event import Event, Value
from coincide.rulebook import Rulebook

Key = tuple[Value, ...]


def leading_events(book: Rulebook, events: Sequence[Event], detections: Sequence[Event]) -> list[list[Event]]:
    """For each detection the events of its key that its rule looks at, since the rule's last detection for that key and up
    to this one. Events and detections are in the order of processing."""
    stream = sorted(chain(events, detections), key=lambda event: event.hi)  # a stable sort: events before detections
    found: dict[int, list[Event]] = {}
    for detector in book.detectors:
        found.update(_leads_of(book, detector, stream))
    return [found.get(id(detection), []) for detection in detections]


def _leads_of(book: Rulebook, detector: Detector, stream: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    (plan,) = book.compiled.languages[detector.language].plans([detector])
    looks_at = condition(plan.relevant, EventScope()) if plan.relevant is not None else bool
    fields = [event_field(name) for name in detector.partition or ()]
    seen: dict[Key, list[Event]] = {}
    for event in stream:
        key = tuple(field(event) for field in fields)
        if event.id is None and event.type in detector.outputs:
            yield id(event), seen.pop(key, [])
        elif (event.id is not None or event.type in detector.inputs.detections) and looks_at(event):
            seen.setdefault(key, []).append(event)
