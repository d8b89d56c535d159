"""A plan's state as tables: relations for each definition (relations.py), and what all definitions have in common.

Where columns cannot hold what the interpreter holds, and where a definition has no kernel tier, its state is written object by
object (state.py). Definitions may come from different plans: then what these had is put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from coincide.detection.algebra.interpreter import INSTANT, WAKE
from coincide.detection.algebra.objects import Uncovered, copies_of, relations_of
from coincide.detection.algebra.program import Program, former_digest
from coincide.detection.algebra.relations import read
from coincide.detection.algebra.shape.coverage import reasons
from coincide.detection.algebra.shape.keys import Unsupported
from coincide.detection.algebra.shape.shapes import Operators, Window
from coincide.detection.algebra.state import Copy, PlanState, decoded_part, merge, part_name
from coincide.detection.base import additions
from coincide.detection.columns.codec import Relations
from coincide.detection.columns.codec import encode as encoded
from coincide.detection.columns.store import event_bytes, events_from
from coincide.detection.eventwise import Timer, Timers
from coincide.detection.keys import Key
from coincide.detection.parts import TABLES, base_of
from coincide.detection.snapshots import damaged, decoded, timer_place_of
from coincide.model.bounds import Began, Count, Instant
from coincide.model.event import Event, Place, instant_place
from coincide.model.table import EventTable, table_of


@dataclass
class Common:
    """What all definitions of a plan have in common: events of an instant that is not over; timers of windows, by when they are
    due; how many detections there were by name; the start of observation; the hi of the last event; whether the input ended."""

    waiting: EventTable | None = None
    timers: dict[int, Place] = field(default_factory=dict)
    serials: dict[str, int] = field(default_factory=dict)
    start: int | None = None
    latest: int = -(2**63)
    ended: bool = False

    def take_over(self, other: Common) -> None:
        self.waiting, self.timers, self.serials = other.waiting, dict(other.timers), dict(other.serials)
        self.start, self.latest, self.ended = other.start, other.latest, other.ended

    def waiting_place(self, order: int) -> Place | None:
        """Where the timer of the instant that is not over fires, in a plan of this order."""
        if self.waiting is None:
            return None
        cause = self.waiting.take(np.zeros(1, np.int64)).place_tuples()[0]
        return instant_place(int(self.waiting.hi[0]), cause, order)


@dataclass
class Tables(Common):
    """`relations`: of each definition."""

    relations: list[Relations] = field(default_factory=list)


def shape_of(program: Program) -> Operators | Window:
    """Of a definition whose state is in tables."""
    try:
        return program.shape
    except Unsupported:
        damaged("it is of another kind of rule")


def _ends(program: Program, own: Operators | Window, relations: Relations) -> set[int]:
    """When windows end that something is in, or that are observed."""
    if isinstance(own, Operators) or not len(relations.notes["next"]):
        return set()
    windows, following = own.node.windows, int(relations.notes["next"][0])
    hi = np.unique(relations.events.hi)
    held = {k for instant in hi.tolist() for k in windows.containing(instant) if k >= following}
    observed = relations.rows["observed"].columns["window"].tolist()
    return {windows.end(k) for k in held.union(observed if program.keys or not observed else [following])}


# From and to objects.


def tables_of(programs: Sequence[Program], state: PlanState) -> Tables | None:
    """None: tables cannot hold what the state holds."""
    events = [event for some in state.waiting.values() for event in some]
    if any(event.place[1] != 0 or event.place[0] != event.hi for event in events) or len(state.waiting) > 1:
        return None
    shapes = [program.shape for program in programs]
    try:
        relations = [relations_of(own, copies) for own, copies in zip(shapes, state.copies, strict=True)]
    except Uncovered:
        return None
    timers = {timer.due: timer.place for timer in state.timers.live() if timer.payload[0] == WAKE}
    if any(not _ends(*own) <= timers.keys() for own in zip(programs, shapes, relations, strict=True)):
        return None
    waiting = table_of(sorted(events, key=lambda event: event.place)) if events else None
    return Tables(waiting, timers, dict(state.serials), state.start, state.latest, state.ended, relations)


def objects_of(programs: Sequence[Program], order: int, tables: Tables) -> PlanState:
    """As the interpreter of a plan of this order would hold it."""
    wakes: dict[int, set[tuple[int, Key]]] = {}
    copies: list[dict[Key, Copy]] = []
    for number, (program, relations) in enumerate(zip(programs, tables.relations, strict=True)):
        own, asked = copies_of(program, shape_of(program), relations, tables.start)
        copies.append(own)
        for due, keys in asked.items():
            wakes.setdefault(due, set()).update((number, key) for key in keys)
    timers = [Timer(tables.timers.get(due) or instant_place(due, (due, 0, 0, 0), order), (WAKE, due)) for due in wakes]
    place = tables.waiting_place(order)
    waiting: dict[int, list[Event]] = {}
    if place is not None and tables.waiting is not None:
        timers.append(Timer(place, (INSTANT, place[0])))
        waiting[place[0]] = tables.waiting.events()
    found = PlanState(copies, Timers(sorted(timers)), waiting, wakes, {}, dict(tables.serials))
    found.start, found.latest, found.ended = tables.start, tables.latest, tables.ended
    return found


# As parts of a snapshot.


class TablesPart(msgspec.Struct, array_like=True):
    """Of a definition: the part that it has in common with others, and its tables; parts of their own add to these."""

    version: int
    common: str
    base: bytes


class CommonPart(msgspec.Struct, array_like=True):
    version: int
    waiting: bytes
    timers: list[Any]
    serials: dict[str, Count]
    start: Instant | None
    latest: Began
    ended: bool


def common_name(programs: Sequence[Program]) -> str:
    names = "\n".join(map(part_name, programs))
    return f"ecco {blake2b(names.encode(), digest_size=16).hexdigest()}"


def common_part(common: Common) -> bytes:
    waiting = b"" if common.waiting is None else event_bytes(common.waiting)
    timers = list(common.timers.values())
    written = CommonPart(TABLES, waiting, timers, common.serials, common.start, common.latest, common.ended)
    return msgspec.msgpack.encode(written)


def encode(programs: Sequence[Program], tables: Tables) -> dict[str, bytes]:
    wholes = {part_name(p): tables_part(programs, encoded(own)) for p, own in zip(programs, tables.relations, strict=True)}
    return {common_name(programs): common_part(tables), **wholes}


def tables_part(programs: Sequence[Program], base: bytes) -> bytes:
    return msgspec.msgpack.encode(TablesPart(TABLES, common_name(programs), base))


def decode(programs: Sequence[Program], order: int, parts: Mapping[str, bytes]) -> Tables | PlanState:
    """Objects where tables alone do not hold it. A definition without a part starts afresh."""
    names = {number: name for number, program in enumerate(programs) if (name := _found(program, parts)) is not None}
    tables = {n: decoded(parts[name], TablesPart, TABLES) for n, name in names.items() if _is_tables(parts[name])}
    commons = {part.common for part in tables.values()}
    own = all(names[number] == part_name(programs[number]) for number in tables)
    if own and len(tables) == len(names) and len(commons) <= 1 and not any(map(reasons, programs)):
        common = _common(parts, commons.pop()) if commons else Common()
        relations = [
            _relations(program, tables[n], names[n], parts) if n in tables else relations_of(shape_of(program), {})
            for n, program in enumerate(programs)
        ]
        return _joined(programs, common, relations)
    found: dict[int, PlanState] = {}
    for number, name in names.items():
        program = programs[number]
        if number not in tables:
            found[number] = decoded_part(program, parts[name])
            continue
        common = _common(parts, tables[number].common)
        one = _joined([program], common, [_relations(program, tables[number], name, parts)])
        found[number] = objects_of([program], order, one)
    return merge(programs, found)


def _found(program: Program, parts: Mapping[str, bytes]) -> str | None:
    names = (part_name(program), program.digest, former_digest(program.linked))
    return next((name for name in names if parts.get(name)), None)


def _is_tables(data: bytes) -> bool:
    return msgspec.msgpack.decode(data, type=list[Any])[:1] == [TABLES]


def _relations(program: Program, part: TablesPart, name: str, parts: Mapping[str, bytes]) -> Relations:
    return read(program, shape_of(program), base_of(parts[name], part), [parts[more] for more in additions(parts, name)])


def _joined(programs: Sequence[Program], common: Common, relations: list[Relations]) -> Tables:
    if any(not _ends(p, shape_of(p), own) <= common.timers.keys() for p, own in zip(programs, relations, strict=True)):
        damaged("a time is waited for at which nobody looks")
    found = Tables(relations=relations)
    found.take_over(common)
    return found


def _common(parts: Mapping[str, bytes], name: str) -> Common:
    if name not in parts:
        damaged("it refers to a part that is not there")
    part = decoded(parts[name], CommonPart, TABLES)
    places = list(map(timer_place_of, part.timers))
    waiting = events_from(part.waiting) if part.waiting else None
    if waiting is not None:
        _check_waiting(waiting)
    timers = {place[0]: place for place in places}
    return Common(waiting, timers, part.serials, part.start, part.latest, part.ended)


def _check_waiting(table: EventTable) -> None:
    """They are of one instant, which is not over."""
    types = table.column("type")
    if types.codes is None or (types.codes < 0).any() or not table.sortable:
        damaged("an event that waits has no type or place")
    if (table.hi != table.hi[0]).any() or (table.place_matrix()[:, 0] != table.hi).any():
        damaged("events of several instants wait for one")
