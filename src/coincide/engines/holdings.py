"""What a kept state holds, for people: the clock, events that wait, what rules have begun and not ended. One reader for
snapshots, checkpoints of live runs, and checkpoints of streams on Spark (spark/holdings.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coincide.detection.base import Unfinished
from coincide.detection.snapshots import reading_state
from coincide.engines import deltas
from coincide.engines.graph import Graph
from coincide.engines.instance import StabilityPolicy
from coincide.engines.live import TOTAL_ORDER
from coincide.engines.policies import PolicyEngine, policies_of
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
        return [*_policy_holdings(data, book)]
    return [graph_holding("", read_snapshot(data, GraphSnapshot), book)]


def _policy_holdings(data: bytes, book: Rulebook) -> Iterator[Holding]:
    """Rules that name no policy were under one that the run had been given."""
    own = {str(policy) for policy in policies_of(book).values()}
    kept = read_snapshot(data, PolicySnapshot).instances
    given = [policy_named(name) for name in kept if name not in own]
    engine = PolicyEngine(book, given[0] if given else None)
    engine.restore(data, changed=True)
    for each in engine.instances:
        stage = each.stage.state()
        clock = None if stage.clock == NEVER else stage.clock
        yield Holding(str(each.policy), clock, len(stage.buffer), [*each.graph.unfinished(each.state)])


def policy_named(name: str) -> StabilityPolicy:
    """As a snapshot names it."""
    return StabilityPolicy(name) if name in ("in-order", "delayed") else StabilityPolicy.parse(name)


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
