"""The state of a live run as it is kept again and again: all of it once, then what has changed.

Of a graph that is what its plans tell. What waits at its stage stands in total order and leaves at the front: so of what was told
before, so many are gone and so many wait on, and the rest is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, Protocol

import msgspec

from coincide.detection.snapshots import damaged, decoded, external_event_of, opened, sealed
from coincide.engines.graph import Graph, GraphState
from coincide.engines.instance import stored_stage
from coincide.engines.livestage import LiveStage
from coincide.engines.snapshots import GraphSnapshot, with_changes
from coincide.model.bounds import Count
from coincide.model.event import Event
from coincide.stages import Stage, StageState

VERSION = 1

_in_order = attrgetter("origin")


class WrittenState(NamedTuple):
    """A state, whole, or what has changed in it."""

    data: bytes
    whole: bool


class Kept(Protocol):
    """What is kept: a stage with what waits, and the graph behind it."""

    @property
    def stage(self) -> Stage: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def state(self) -> GraphState: ...


class StageChanges(msgspec.Struct, array_like=True):
    """All that a stage remembers, but of what waits only what is new: in the state's buffer, or as columns. Of what waited
    before, in total order, `dropped` are gone and the next `kept` wait on."""

    state: StageState
    dropped: Count = 0
    kept: Count = 0
    columns: bytes = b""


class InstanceChanges(msgspec.Struct, array_like=True):
    """A stage, and its graph: a snapshot or what has changed since."""

    stage: StageChanges
    graph: bytes


class Written(msgspec.Struct, array_like=True):
    version: int
    instances: dict[str, InstanceChanges]


@dataclass
class _Known:
    """What was told last: for which state, how many waited, and the number of the next to arrive; or in which columns."""

    state: GraphState
    columns: object | None
    waiting: int
    arrived: int


class StateWriter:
    """Writes the states of instances by name. Whoever keeps what it writes can go on from there."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def write(self, instances: Mapping[str, Kept], everything: bool = False) -> WrittenState:
        """What has changed since this was asked last, or all, also where other instances or states have taken their place."""
        before = self._known
        same = before.keys() == instances.keys() and all(before[name].state is own.state for name, own in instances.items())
        whole = everything or not same
        self._known = {}
        found = {name: self._changes(name, own, None if whole else before[name]) for name, own in instances.items()}
        return WrittenState(sealed(msgspec.msgpack.encode(Written(VERSION, found))), whole)

    def _changes(self, name: str, own: Kept, before: _Known | None) -> InstanceChanges:
        columns = own.stage.columns if isinstance(own.stage, LiveStage) else None
        stage = _of_objects(own.stage, before) if columns is None else _of_columns(own.stage, before)
        graph = own.graph.changes(own.state, everything=before is None)
        waiting = stage.kept + len(stage.state.buffer)
        self._known[name] = _Known(own.state, columns, waiting, stage.state.arrived)
        return InstanceChanges(msgspec.structs.replace(stage, state=stored_stage(stage.state)), graph)


def _of_objects(stage: Stage, before: _Known | None) -> StageChanges:
    state = stage.state()
    if before is None or before.columns is not None:
        return StageChanges(state)
    new = [(number, event) for number, event in state.buffer if number >= before.arrived]
    old = len(state.buffer) - len(new)
    return StageChanges(msgspec.structs.replace(state, buffer=new), before.waiting - old, old)


def _of_columns(stage: Stage, before: _Known | None) -> StageChanges:
    from coincide.detection.columns.store import event_bytes

    assert isinstance(stage, LiveStage)
    assert stage.columns is not None
    state = stage.without_columns()
    dropped, old, new = stage.columns.changes(everything=before is None or before.columns is not stage.columns)
    return StageChanges(state, dropped, old, b"" if new is None else event_bytes(new))


# Reading.


def read(data: bytes, changes: Sequence[bytes] = ()) -> dict[str, tuple[StageState, GraphSnapshot]]:
    """The states that were told whole, and then changed. Raises ValueError: `reading_state` makes it an InputError."""
    written = [_written(each).instances for each in (data, *changes)]
    if any(some.keys() != written[0].keys() for some in written):
        damaged("its parts are of different runs")
    return {name: _instance([some[name] for some in written]) for name in written[0]}


def _written(data: bytes) -> Written:
    return decoded(opened(data), Written, VERSION)


def _instance(written: Sequence[InstanceChanges]) -> tuple[StageState, GraphSnapshot]:
    graph = with_changes(written[0].graph, [some.graph for some in written[1:]])
    waiting: list[Event] = []
    for some in written:
        waiting = _waiting(waiting, some.stage)
    state = written[-1].stage.state
    buffer = list(enumerate(waiting))
    return msgspec.structs.replace(state, buffer=buffer, arrived=max(state.arrived, len(buffer))), graph


def _waiting(before: list[Event], changes: StageChanges) -> list[Event]:
    end = changes.dropped + changes.kept
    if end > len(before):
        damaged("more wait on than have waited")
    new = [event for _, event in sorted(changes.state.buffer, key=lambda item: item[0])]
    if changes.columns:
        from coincide.detection.columns.store import events_from

        new += events_from(changes.columns).events()
    return sorted([*before[changes.dropped : end], *map(external_event_of, new)], key=_in_order)
