"""Why a detection of a run was made, without making objects of all its events: of a million, few have to do with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.causes import Cause, Causes, value_text
from coincide.detection.base import Detector
from coincide.detection.columns.tables import distinct
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.studio.running import Run
from coincide.studio.store import equal_to

LOOKED_AT = 5_000
"""Events before a detection among which those are looked for that its rule has looked at."""
SHOWN = 100
"""Causes of one detection that are told."""
EARLIER = 2_000
"""Detections before it, likewise."""


def cause_of(run: Run, number: int) -> Cause:
    detection = run.detections[number]
    events = run.store.events(_rows(run, detection).tolist())
    earlier = [d for d in run.detections[max(0, number - EARLIER) : number] if d.place < detection.place]
    return Causes(run.book, events, [*earlier, detection], None).of(detection)


def _rows(run: Run, detection: Event) -> npt.NDArray[np.int64]:
    own = run.store.rows_of([(key[1], key[0], key[4]) for key in detection.origin])
    detector = next(d for d in run.book.detectors if d.order == detection.place[-2])
    forgetful = run.book.compiled.languages[detector.language].forgetful
    looked_at = _of_its_key(run, detection, detector) if forgetful or not own else _at_its_end(run, detection)
    return distinct(np.concatenate((np.array(own, np.int64), looked_at)))


def _at_its_end(run: Run, detection: Event) -> npt.NDArray[np.int64]:
    """What may have completed it: the event at whose consumption it was made."""
    place, ends = detection.place, run.store.times[1]
    known = place[1] == 0 and 0 <= place[2] < len(ends) and ends[place[2]] == place[0]
    return np.array([place[2]] if known else [], np.int64)


def _of_its_key(run: Run, detection: Event, detector: Detector) -> npt.NDArray[np.int64]:
    """The last events up to it that have its key and types that its rule reads."""
    ends = run.store.times[1]
    count = len(ends) if run.store.live else int(np.searchsorted(ends, detection.hi, "right"))
    read = detector.inputs.external
    found: list[npt.NDArray[np.int64]] = []
    left = LOOKED_AT
    for start, batch in _backwards(run, count):
        mask = np.ones(len(batch), np.bool_)
        if read is not None:
            column = batch.table.column("type")
            wanted = np.array([text in read for text in column.texts] or [False])
            mask &= wanted[column.codes] if column.codes is not None else False
        for name in detector.partition or ():
            mask &= equal_to(batch.table.column(name), value_text(detection.attributes.get(name)))
        rows = start + np.flatnonzero(mask[: count - start])[-left:]
        found.append(rows)
        left -= len(rows)
        if left <= 0:
            break
    rows = np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)
    return rows[ends[rows] <= detection.hi]


def _backwards(run: Run, count: int) -> Iterator[tuple[int, EventBatch]]:
    batches = tuple(run.store.batches)
    start = sum(map(len, batches))
    for batch in reversed(batches):
        start -= len(batch)
        if start < count:
            yield start, batch


def tree_of(cause: Cause, run: Run, number: int) -> dict[str, Any]:
    """The tree of the detection with this number as JSON: events by their row, detections by their number."""
    first = max(0, number - EARLIER)
    numbers = {id(detection): n for n, detection in enumerate(run.detections[first : number + 1], first)}
    return _tree(cause, numbers)


def _tree(cause: Cause, numbers: Mapping[int, int]) -> dict[str, Any]:
    event = cause.event
    own = {"row": event.place[2]} if event.id is not None and event.place else {"detection": numbers.get(id(event))}
    parts = [_tree(part, numbers) for part in cause.parts[-SHOWN:]]
    more = {"left_out": len(cause.parts) - len(parts)} if len(parts) < len(cause.parts) else {}
    return {
        "type": event.type,
        "lo": event.lo,
        "hi": event.hi,
        "record": record(event),
        "note": cause.note,
        "known": cause.known,
        "parts": parts,
        **own,
        **more,
    }
