"""From what the loop recorded to detections, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.automaton.attributes import json_text
from coincide.detection.automaton.layout import NODE
from coincide.detection.automaton.memory import Memory
from coincide.detection.automaton.moments import Moments
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.state import Aliases, Match
from coincide.detection.automaton.support import key
from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.origins import coded
from coincide.detection.columns.places import caused_places, ranks_of
from coincide.detection.columns.store import gathered
from coincide.detection.eventsets import Assignment
from coincide.detection.keys import key_value
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import column_of
from coincide.model.event import Event, Place, Value, caused
from coincide.model.table import EventTable, ForeignPlaces, LazyPlaces, Origins

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Found:
    """Detections in order: the row (-1 - timer) that made each, the node of its events, the slot of its key, whether it
    has parameters."""

    cause: Numbers
    node: Numbers
    slot: Numbers
    bound: Numbers

    def take(self, index: Numbers) -> Found:
        return Found(self.cause[index], self.node[index], self.slot[index], self.bound[index])


@dataclass(frozen=True, eq=False)
class Paths:
    """The events of detection i, in order, are those from offsets[i] to offsets[i + 1] (-1 - timer for a time event); with
    the bits of their aliases."""

    events: Numbers
    aliases: Numbers
    offsets: Numbers


def detections(memory: Memory, table: EventTable, base: int, programs: Sequence[Program], in_order: bool) -> EventBatch:
    """`table` is the batch; its rows are the events from number `base` on. Numbers go up `in_order`, or as events have come."""
    nodes, program = memory.nodes, memory.tables.program
    count = int(memory.n.made)
    if not count:
        return EMPTY
    cause, node, slot, bound = (memory.made[name][:count].copy() for name in ("cause", "node", "slot", "bound"))
    found = Found(np.where(cause >= 0, cause - base, cause), node, slot, bound)
    memory.n.made = memory.n.step = 0
    moments = Moments(memory, [*memory.store.chunks, table])
    fields: dict[str, pa.Array] = {}
    if program.definition.computed:
        found, fields = _computed(memory, moments, found)
        if not len(found.cause):
            return EMPTY
    elif program.definition.parameters:
        fields = _parameters(memory, table, moments, found)
    whose = memory.whose(found.slot)
    kind = pa.DictionaryArray.from_arrays(pa.array(whose.astype(np.int32)), pa.array([program.name for program in programs]))
    origins = _origins(memory, moments, _paths(nodes.rows, found.node), in_order)
    made = EventTable(nodes.column("lo")[found.node], nodes.column("hi")[found.node], {"type": kind, **fields}, origins=origins)
    orders = np.array([program.order for program in programs])[whose]
    return EventBatch(table=_placed(made, table, moments, found, orders))


# Places.


def _placed(made: EventTable, table: EventTable, moments: Moments, found: Found, orders: Numbers) -> EventTable:
    ranks = ranks_of(found.cause)
    if found.cause.min() >= 0:
        return replace(made, given_places=LazyPlaces(lambda: caused_places(table, found.cause, orders, ranks)))
    by_row, timers = found.cause >= 0, -1 - found.cause
    place_of = moments.timer_places(timers[~by_row])
    matrix = np.full((len(ranks), 3), -1, np.int64)
    matrix[by_row] = table.place_rows(found.cause[by_row])[:, :3] + (0, 0, 1)
    matrix[by_row, 1] = -1
    matrix[~by_row, 0], matrix[~by_row, 2] = moments.memory.timers.column("due")[timers[~by_row]], 1

    def place(number: int) -> Place:
        cause = int(found.cause[number])
        return caused(_row_place(table, cause) if cause >= 0 else place_of(-1 - cause), int(orders[number]), int(ranks[number]))

    return replace(made, given_places=matrix, foreign_places=ForeignPlaces(len(ranks), place))


def _row_place(table: EventTable, row: int) -> Place:
    (numbers,) = table.place_rows(np.array([row])).tolist()
    return (numbers[0], 0, numbers[1], *numbers[2 : 3 + 2 * numbers[2]])


# Events.


def _paths(nodes: Any, ends: Numbers) -> Paths:
    offsets = np.concatenate(([0], np.cumsum(nodes[ends, NODE.depth] + 1)))
    events, aliases = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    _walk(nodes, ends, offsets, events, aliases)
    return Paths(events, aliases, offsets)


@compiled
def _walk(nodes: Numbers, ends: Numbers, offsets: Numbers, events: Numbers, aliases: Numbers) -> None:
    for i in range(len(ends)):
        node = ends[i]
        for at in range(offsets[i + 1] - 1, offsets[i] - 1, -1):
            event, timer = nodes[node, NODE.event], nodes[node, NODE.timer]
            events[at], aliases[at] = event if timer < 0 else -1 - timer, nodes[node, NODE.aliases]
            node = nodes[node, NODE.parent]


def _origins(memory: Memory, moments: Moments, paths: Paths, in_order: bool) -> Origins:
    """The primitive events under all events of each detection, in total order, without repeats. Time events have none."""
    real = paths.events >= 0
    offsets = np.concatenate(([0], np.cumsum(real)))[paths.offsets]
    events = paths.events if real.all() else paths.events[real]
    batch, base = moments.chunks[-1], len(memory.store)
    if batch.given_places is None and len(events) and events.min() >= base:  # external ones of the batch at hand
        return replace(batch.origin().take(events - base), offsets=offsets)
    numbers, index = np.unique(events, return_inverse=True)
    table = gathered(moments.chunks, numbers, frozenset({"id"}))
    origins = table.origin()
    if in_order and not (table.generation > 0).any() and (origins.offsets is None or len(origins.lo) == len(table)):
        return replace(Origins(origins.lo, origins.hi, origins.ids).take(index), offsets=offsets)
    return coded([table]).united(index, offsets).origins()


# Attributes.


def _parameters(memory: Memory, table: EventTable, moments: Moments, found: Found) -> dict[str, pa.Array]:
    """The event that completes a match carries them all; a time event carries none, but its slot tells."""
    pairs = key(memory.tables.program)
    if found.cause.min() >= 0:
        arrays = {parameter: table.column(attribute).singles.take(found.cause).to_arrow() for attribute, parameter in pairs}
    else:
        slots, index = np.unique(found.slot, return_inverse=True)
        some = memory.names(slots)
        columns = [column_of([key_value(k[n]) for k in some]) for n in range(len(pairs))]
        arrays = {parameter: column.take(index).to_arrow() for (_, parameter), column in zip(pairs, columns, strict=True)}
    if found.bound.all():
        return arrays
    used = pa.array(found.bound == 1)
    return {name: pc.if_else(used, array, pa.scalar(None, array.type)) for name, array in arrays.items()}


Kept = dict[tuple[int, tuple[Place, ...], str], tuple[int, dict[str, Value]]]
"""By cause, places of the events and text of the attributes: the number of a detection, and the attributes."""


def _computed(memory: Memory, moments: Moments, found: Found) -> tuple[Found, dict[str, pa.Array]]:
    """With a `with` or `where` clause: one by one. Of equal events and attributes one is kept; the attributes' text decides
    ties."""
    paths = _paths(memory.nodes.rows, found.node)
    events, of = moments.events(paths.events), memory.tables.program.attributes.of
    parameters = [parameter for _, parameter in key(memory.tables.program)]
    distinct: Kept = {}
    keys = memory.names(found.slot)
    for number, (cause, own, bound) in enumerate(zip(found.cause.tolist(), keys, found.bound.tolist(), strict=True)):
        some = slice(paths.offsets[number], paths.offsets[number + 1])
        matched = [events[event] for event in paths.events[some].tolist()]
        bindings: Assignment = frozenset(zip(parameters, own, strict=True)) if bound else frozenset()
        match = Match(tuple(matched), bindings, _aliases(memory, matched, paths.aliases[some].tolist()))
        if (attributes := of(match)) is not None:
            distinct.setdefault((cause, match.places, json_text(attributes)), (number, attributes))
    order = _ordered(distinct, found)
    values = [attributes for _, attributes in order]
    names = dict.fromkeys(name for some in values for name in some)
    fields = {name: column_of([some.get(name) for some in values]).to_arrow() for name in names}
    return found.take(np.array([number for number, _ in order], np.int64)), fields


def _aliases(memory: Memory, events: list[Event], bits: list[int]) -> Aliases:
    named = memory.tables.aliases
    return frozenset((named[n], event.place) for event, some in zip(events, bits, strict=True) for n in _set_bits(some))


def _set_bits(bits: int) -> list[int]:
    return [n for n in range(bits.bit_length()) if bits >> n & 1]


def _ordered(distinct: Kept, found: Found) -> list[tuple[int, dict[str, Value]]]:
    """Causes stay as they are; of one cause by events, then text."""
    step = np.cumsum(np.concatenate(([0], found.cause[1:] != found.cause[:-1]))).tolist()
    by_step = sorted((step[number], places, text, number) for (_, places, text), (number, _) in distinct.items())
    attributes = dict(distinct.values())
    return [(number, attributes[number]) for *_, number in by_step]
