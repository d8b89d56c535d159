"""A run, drawn: its events and detections on one line of time, with threads to what led to each detection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coincide.causes import SHOWN, Causes
from coincide.draw.timeline import timeline
from coincide.model.event import Event, plain, record

THREADS = 60
"""With more detections than this, threads would hide what they show."""

LONGEST = 24  # letters of a label


def timeline_of(causes: Causes, title: str, definition: int | None = None) -> str:
    """The SVG text; of the detections of one definition (`Detector.order`) only, if it is given."""
    found = [d for d in causes.detections if definition in (None, causes.detector_of(d).order)]
    leads: dict[int, list[Mapping[str, Any]]] = {}
    if len(found) <= THREADS:
        leads = {n: [record(event) for event in causes.of(d).events[-SHOWN:]] for n, d in enumerate(found)}
    records = [record(detection) for detection in found]
    labels = {id(r): _label(d, causes) for r, d in zip(records, found, strict=True)}
    return timeline(map(record, causes.events), records, title=title, label=lambda r: labels[id(r)], leads=leads)


def _label(detection: Event, causes: Causes) -> str:
    """The values of its key; where it has none, its first text."""
    detector = causes.detector_of(detection)
    keys = [detection.attributes.get(name) for name in detector.partition or ()]
    values = [value for value in keys if value is not None] or [v for v in detection.attributes.values() if isinstance(v, str)][
        :1
    ]
    text = " ".join(str(plain(value)) for value in values)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
