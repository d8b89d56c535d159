"""What the page is told of a session, a run, and a moment in it."""

from __future__ import annotations

from typing import Any

from coincide.compile.graph import feeds, stages
from coincide.detection.base import Unfinished
from coincide.detection.keys import key_value
from coincide.languages.registry import MODULES
from coincide.model.event import plain
from coincide.studio.running import Run
from coincide.studio.session import Session

SHOWN = 200
"""Things that are under way at a moment, of one rule."""


def session_told(session: Session) -> dict[str, Any]:
    store = session.store
    lanes = store.lanes
    return {
        "root": session.files.root.name,
        "files": session.files.listed(),
        "endings": list(MODULES),
        "events": {
            "name": store.name.rpartition("/")[2],
            "count": len(store),
            "rejected": store.rejected,
            "span": lanes.span,
            "lanes": [[name, int(count)] for name, count in zip(lanes.names, lanes.counts, strict=True)],
            "attributes": [name for name, _ in store.seen.attributes.most_common(200) if name != "source"],
        },
    }


def run_told(session: Session) -> dict[str, Any]:
    run = session.run
    if run is None:
        return {"number": 0}
    lanes = run.lanes
    return {
        "number": run.number,
        "ended": run.ended,
        "consumed": run.consumed,
        "total": len(run.store),
        "last": run.last,
        "seconds": round(run.seconds, 3),
        "detections": len(run.detections),
        "lanes": [[name, int(count)] for name, count in zip(lanes.names, lanes.counts, strict=True)],
        "failure": [session.told(each) for each in run.failure],
        "warnings": [session.told(each) for each in run.warnings],
        "snapshots": len(run.snapshots),
    }


def moment_told(run: Run, moment: int, rule: str | None) -> dict[str, Any]:
    """What stands where the replay is: the clock, the event consumed last, what was made of it, and what is under way."""
    moment = min(moment, run.last)
    ends = run.store.times[1]
    unfinished = run.unfinished(moment)
    counts: dict[str, int] = {}
    for each in unfinished:
        counts[each.rule] = counts.get(each.rule, 0) + 1
    own = [each for each in unfinished if rule is None or each.rule == rule]
    return {
        "moment": moment,
        "clock": int(ends[min(moment, len(ends)) - 1]) if moment and len(ends) else None,
        "row": moment - 1 if 0 < moment <= len(ends) else None,
        "made": [n for n, at in enumerate(run.moments) if at == moment][:SHOWN],
        "counts": counts,
        "unfinished": [_unfinished(each) for each in own[:SHOWN]],
        "left_out": max(0, len(own) - SHOWN),
    }


def _unfinished(each: Unfinished) -> dict[str, Any]:
    key = [plain(key_value(part)) for part in each.key]
    return {"rule": each.rule, "key": [None if k is None else str(k) for k in key], "what": each.what, "since": each.since, "due": each.due}


def statistics(session: Session) -> list[dict[str, Any]]:
    """A line a rule."""
    run = session.last_run()
    book, made = run.book, run.by_rule()
    levels = stages(book.detectors, feeds(book.detectors))
    counts = run.store.seen.types
    under_way: dict[str, int] = {}
    for each in run.unfinished(run.last):
        under_way[each.rule] = under_way.get(each.rule, 0) + 1
    latest: dict[int, int] = {}
    keys: dict[int, set[Any]] = {}
    for detection in run.detections:
        order = detection.place[-2]
        latest[order] = detection.hi
    for detector in book.detectors:
        own = [d for d in run.detections if d.place[-2] == detector.order] if detector.partition else []
        keys[detector.order] = {tuple(str(d.attributes.get(name)) for name in detector.partition or ()) for d in own}
    return [
        {
            "rule": detector.name,
            "language": detector.language,
            "stage": level + 1,
            "key": list(detector.partition or ()),
            "reads": sum(counts.values()) if detector.inputs.external is None else sum(counts[t] for t in detector.inputs.external),
            "detections": made[detector.order],
            "keys": len(keys[detector.order]) if detector.partition else None,
            "last": latest.get(detector.order),
            "under_way": under_way.get(detector.name, 0),
        }
        for detector, level in zip(book.detectors, levels, strict=True)
    ]
