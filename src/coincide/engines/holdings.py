"""What a kept state holds, for people: the clock, events that wait, what rules have begun and not ended. One reader for
snapshots, checkpoints of live runs, and checkpoints of streams on Spark (spark/holdings.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coincide.detection.base import Unfinished
from coincide.detection.keys import key_value
from coincide.detection.snapshots import reading_state
from coincide.engines import deltas
from coincide.engines.graph import Graph
from coincide.engines.instance import StabilityPolicy
from coincide.engines.live import TOTAL_ORDER
from coincide.engines.policies import PolicyEngine, policies_of
from coincide.engines.snapshots import GraphSnapshot, PolicySnapshot, is_snapshot, read_snapshot
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import plain
from coincide.model.stamp import iso_instant
from coincide.ordering import POLICIES
from coincide.rulebook import Rulebook
from coincide.stages import NEVER, StageState


@dataclass(frozen=True)
class Holding:
    """One of the states that are kept together: `name` tells which, if there are several."""

    name: str
    clock: int | None
    waiting: int
    unfinished: Sequence[Unfinished]

    def of(self, rule: str | None = None, key: Sequence[object] | None = None) -> Holding:
        """What it holds of one rule, or for one key; what is due first comes first."""
        wanted = None if key is None else [str(part) for part in key]
        own = [u for u in self.unfinished if rule in (None, u.rule) and wanted in (None, [str(part) for part in key_of(u)])]
        return replace(self, unfinished=sorted(own, key=lambda u: (u.due is None, u.due or 0, u.since or 0)))

    @property
    def record(self) -> dict[str, Any]:
        """As plain data."""
        held = [unfinished_record(each) for each in self.unfinished]
        named = {"part": self.name} if self.name else {}
        return {**named, "clock": _instant(self.clock), "waiting": self.waiting, "held": held}


def key_of(each: Unfinished) -> list[Any]:
    """The values of its key."""
    return [plain(key_value(part)) for part in each.key]


def unfinished_record(each: Unfinished) -> dict[str, Any]:
    """As plain data: `from` are the ids of the events in it."""
    times = {"since": _instant(each.since), "due": _instant(each.due)}
    origin = {"from": [key[4] for key in each.origin]} if each.origin else {}
    fields = {"rule": each.rule, "key": key_of(each), "what": each.what, **times, **origin}
    return {name: value for name, value in fields.items() if value is not None}


def _instant(time: int | None) -> str | None:
    return None if time is None else iso_instant(time)


def holding_at(book: Rulebook, events: Iterable[EventBatch], instant: int | None = None) -> Holding:
    """What rules hold when all events up to an instant have been consumed, and all that was due by then has been done; `events`
    in total order. Without an instant: at the last event."""
    graph = Graph(book.plans("interpreter"))
    state = graph.initial()
    for batch in events:
        timely = [event for event in batch.events if instant is None or event.hi <= instant]
        graph.advance(state, EventBatch(timely))
        if len(timely) < len(batch):
            break
    if state.start is not None:
        end = state.hi if instant is None else max(instant, state.hi)
        graph.advance(state, EMPTY, end + 1)
        return Holding("", end, 0, [*graph.unfinished(state)])
    return Holding("", None, 0, [])


def snapshot_holdings(data: bytes, book: Rulebook) -> list[Holding]:
    """Of what `--snapshot` writes. Raises InputError."""
    if is_snapshot(data, PolicySnapshot):
        return [*_policy_holdings(data, book)]
    return [graph_holding("", read_snapshot(data, GraphSnapshot), book)]


def _policy_holdings(data: bytes, book: Rulebook) -> Iterator[Holding]:
    """Rules that name no policy were under one that the run had been given."""
    own = {str(policy) for policy in policies_of(book).values()}
    instances = read_snapshot(data, PolicySnapshot).instances
    given = [policy_named(name) for name in instances if name not in own]
    engine = PolicyEngine(book, given[0] if given else None)
    engine.restore(data, changed=True)
    for each in engine.instances:
        stage = each.stage.state()
        clock = None if stage.clock == NEVER else stage.clock
        yield Holding(str(each.policy), clock, len(stage.buffer), [*each.graph.unfinished(each.state)])


def policy_named(name: str) -> StabilityPolicy:
    """As a snapshot names it."""
    return StabilityPolicy(name) if name in POLICIES and not POLICIES[name].written else StabilityPolicy.parse(name)


def checkpoint_holdings(state: bytes, changes: Sequence[bytes], book: Rulebook) -> list[Holding]:
    """Of a live run's checkpoint. Raises InputError."""
    with reading_state():
        instances = deltas.read(state, changes)
    names = {name: "" if name == TOTAL_ORDER else name for name in instances}
    return [graph_holding(names[name], snapshot, book, stage) for name, (stage, snapshot) in instances.items()]


def graph_holding(name: str, snapshot: GraphSnapshot, book: Rulebook, stage: StageState | None = None) -> Holding:
    """Of a state and what stands before it. Rules that it does not know have begun nothing."""
    graph = Graph(book.plans("interpreter"))
    clock = snapshot.hi if stage is None else max(stage.clock, *stage.marks.values(), NEVER)
    known = None if clock == NEVER else clock
    return Holding(name, known, 0 if stage is None else len(stage.buffer), [*graph.unfinished(graph.restored(snapshot))])


def is_spark_checkpoint(path: Path) -> bool:
    return (path / "offsets").is_dir() and (path / "commits").is_dir()
