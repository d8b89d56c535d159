"""What the page is told of a session, a run, and a moment in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from coincide.compile.graph import feeds, stages
from coincide.detection.base import Unfinished
from coincide.detection.keys import key_value
from coincide.engines.embedded import Engine
from coincide.errors import InputError
from coincide.languages.registry import MODULES
from coincide.model.event import plain
from coincide.rulebook import Rulebook
from coincide.studio.lit import Key, lit
from coincide.studio.live import Live
from coincide.studio.running import Run
from coincide.studio.session import Session

SHOWN = 200
"""Things that are under way at a moment, of one rule."""


def session_summary(session: Session) -> dict[str, Any]:
    store = session.store
    lanes = store.lanes
    return {
        "root": session.files.root.name,
        "files": session.files.listed(),
        "endings": list(MODULES),
        "first": next(iter(session.files.loaded), None),
        "live": None if session.live is None else live_summary(session.live, session.looks_back),
        "events": {
            "name": store.name.rpartition("/")[2],
            "count": len(store),
            "rejected": store.rejected,
            "span": lanes.span,
            "lanes": [[name, int(count)] for name, count in zip(lanes.names, lanes.counts, strict=True)],
            "attributes": [name for name, _ in store.seen.attributes.most_common(200) if name != "source"],
        },
    }


def live_summary(live: Live, past: bool) -> dict[str, Any]:
    return {"url": live.store.name, "running": live.running, "failure": live.failure, "arrived": live.arrived, "past": past}


def run_summary(session: Session) -> dict[str, Any]:
    run = session.run
    if run is None:
        return {"number": 0}
    lanes = run.lanes
    return {
        "number": run.number,
        "ended": run.ended and not run.store.live,
        "consumed": run.consumed,
        "total": len(run.store),
        "last": run.last,
        "seconds": round(run.seconds, 3),
        "detections": len(run.detections),
        "lanes": [[name, int(count)] for name, count in zip(lanes.names, lanes.counts, strict=True)],
        "failure": [session.describe(each) for each in run.failure],
        "warnings": [session.describe(each) for each in run.warnings],
        "snapshots": len(run.snapshots),
    }


def moment_summary(run: Run, moment: int, rule: str | None, key: Key | None = None) -> dict[str, Any]:
    """What stands where the replay is: the clock, the event consumed last, what was made of it, and what is under way; of one
    rule where in its picture, for all keys or for one."""
    moment = min(moment, run.last)
    ends = run.store.times[1]
    return {
        "moment": moment,
        "clock": int(ends[min(moment, len(ends)) - 1]) if moment and len(ends) else None,
        "row": moment - 1 if 0 < moment <= len(ends) else None,
        "made": [n for n, at in enumerate(run.moments) if at == moment][:SHOWN],
        **run.state_at(moment, lambda engine: _standing(run.book, engine, rule, key)),
    }


def live_moment_summary(live: Live, run: Run, rule: str | None, key: Key | None = None) -> dict[str, Any]:
    """The same of a live run, as it stands now."""
    engine = live.state()
    if engine is None:
        raise InputError("the live run has ended, or makes no turns")
    span = live.store.lanes.span
    moment: dict[str, Any] = {"moment": 0, "clock": None if span is None else span[1], "row": None, "made": []}
    return {**moment, **_standing(run.book, engine, rule, key)}


def _standing(book: Rulebook, engine: Engine, rule: str | None, key: Key | None) -> dict[str, Any]:
    detector = next((d for d in book.detectors if d.name == rule), None)
    unfinished = list(engine.graph.unfinished(engine.state))
    own = [each for each in unfinished if rule is None or each.rule == rule]
    return {
        "counts": Counter(each.rule for each in unfinished),
        "lit": {} if detector is None else lit(detector, engine, key),
        "unfinished": [_unfinished(each) for each in own[:SHOWN]],
        "left_out": max(0, len(own) - SHOWN),
    }


def _unfinished(each: Unfinished) -> dict[str, Any]:
    key = [plain(key_value(part)) for part in each.key]
    return {
        "rule": each.rule,
        "key": [None if k is None else str(k) for k in key],
        "what": each.what,
        "since": each.since,
        "due": each.due,
    }


def _under_way(engine: Engine) -> Counter[str]:
    return Counter(each.rule for each in engine.graph.unfinished(engine.state))


def _under_way_now(live: Live) -> Counter[str]:
    engine = live.state()
    return Counter() if engine is None else _under_way(engine)


def statistics(session: Session) -> list[dict[str, Any]]:
    """A line a rule."""
    run = session.last_run()
    book, made = run.book, run.by_rule()
    levels = stages(book.detectors, feeds(book.detectors))
    counts = run.store.seen.types
    under_way = _under_way_now(session.live) if session.live and run.store.live else run.state_at(run.last, _under_way)
    latest = {detection.place[-2]: detection.hi for detection in run.detections}
    keys = _keys(run)
    return [
        {
            "rule": detector.name,
            "language": detector.language,
            "stage": level + 1,
            "key": list(detector.partition or ()),
            "reads": sum(counts.values())
            if detector.inputs.external is None
            else sum(counts[t] for t in detector.inputs.external),
            "detections": made[detector.order],
            "keys": len(keys.get(detector.order, ())) if detector.partition else None,
            "last": latest.get(detector.order),
            "under_way": under_way[detector.name],
        }
        for detector, level in zip(book.detectors, levels, strict=True)
    ]


def _keys(run: Run) -> dict[int, set[tuple[str, ...]]]:
    """By the numbers of definitions, the keys for which they have detected something."""
    names = {detector.order: detector.partition or () for detector in run.book.detectors}
    found: dict[int, set[tuple[str, ...]]] = {}
    for detection in run.detections:
        order = detection.place[-2]
        found.setdefault(order, set()).add(tuple(str(detection.attributes.get(name)) for name in names[order]))
    return found
