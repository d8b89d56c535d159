"""What a kept state holds, for people: the clock, events that wait, what rules have begun and not ended. One reader for
snapshots, checkpoints of live runs, and checkpoints of streams on Spark (spark/holdings.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coincide.detection.base import Unfinished
from coincide.detection.snapshots import reading_state
from coincide.engines import deltas
from coincide.engines.graph import Graph
from coincide.engines.instance import Instance
from coincide.engines.live import TOTAL_ORDER
from coincide.engines.policies import PolicyEngine
from coincide.engines.snapshots import GraphSnapshot, PolicySnapshot, is_snapshot, read_snapshot
from coincide.rulebook import Rulebook
from coincide.stages import NEVER, StageState


@dataclass(frozen=True)
class Holding:
    """One of the states that are kept together: `name` tells which, if there are several."""

    name: str
    clock: int | None
    waiting: int
    unfinished: Sequence[Unfinished]


def snapshot_holdings(data: bytes, book: Rulebook) -> list[Holding]:
    """Of what `--snapshot` writes. Raises InputError."""
    if is_snapshot(data, PolicySnapshot):
        engine = PolicyEngine(book)
        engine.restore(data, changed=True)
        return [_instance_holding(each) for each in engine.instances]
    return [graph_holding("", read_snapshot(data, GraphSnapshot), book)]


def _instance_holding(each: Instance) -> Holding:
    stage = each.stage.state()
    return Holding(str(each.policy), stage.clock, len(stage.buffer), [*each.graph.unfinished(each.state)])


def checkpoint_holdings(state: bytes, changes: Sequence[bytes], book: Rulebook) -> list[Holding]:
    """Of a live run's checkpoint. Raises InputError."""
    with reading_state():
        kept = deltas.read(state, changes)
    names = {name: "" if name == TOTAL_ORDER else name for name in kept}
    return [graph_holding(names[name], snapshot, book, stage) for name, (stage, snapshot) in kept.items()]


def graph_holding(name: str, snapshot: GraphSnapshot, book: Rulebook, stage: StageState | None = None) -> Holding:
    """Of a state and what stands before it. Rules that it does not know have begun nothing."""
    graph = Graph(book.plans("interpreter"))
    clock = snapshot.hi if stage is None else max(stage.clock, *stage.marks.values(), NEVER)
    known = None if clock == NEVER else clock
    return Holding(name, known, 0 if stage is None else len(stage.buffer), [*graph.unfinished(graph.restored(snapshot))])


def is_spark_checkpoint(path: Path) -> bool:
    return (path / "offsets").is_dir() and (path / "commits").is_dir()
