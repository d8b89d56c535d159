"""The state of a query as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from coincide.detection.columns.codec import (
    Relations,
    Rows,
    compact,
    decode,
    encode,
    encode_whole,
    keys_of,
    owned_rows,
    put_rows,
    rows_of,
)
from coincide.detection.columns.store import spread
from coincide.detection.columns.tables import NOW, Numbers, Shape, distinct
from coincide.detection.sequence.loop import FOREVER, KEY, KEYS, NODE, SLOT, WAIT, WAITS, link
from coincide.detection.sequence.memory import Memory, fresh, needed_nodes
from coincide.detection.sequence.program import Program
from coincide.detection.sequence.state import WrittenKept, kept_detection, written_detection
from coincide.detection.snapshots import NEVER, damaged, timer_place_of
from coincide.model.bounds import FURTHEST

KIND = "sequences"
LINKED = Shape("nodes", "parent>nodes? event>events")
PLACES = Shape("places", "wait>waits", owner="wait", valued=True)
TAKEN = Shape("taken", "key>keys item number event>events", owner="key")
KEPT = Shape("kept", "pipe", valued=True)
"""Detections that `tail` holds back."""
SHAPES = (KEYS, LINKED, WAITS, PLACES, TAKEN, KEPT)


def whole(memory: Memory) -> bytes:
    return encode_whole(_relations(memory, False))


def changes(memory: Memory, everything: bool) -> tuple[bytes, bool]:
    """What has changed since this was called last, or all if that is wanted or as much; and whether it is all."""
    everything = everything or memory.renewed
    data = encode(_relations(memory, not everything))
    memory.keys.next_epoch()
    memory.dues.next_epoch()
    memory.written_nodes, memory.written_events = int(memory.n.nodes), len(memory.store)
    memory.written_kept, memory.renewed = sum(map(len, memory.kept)), False
    return data, everything


def _relations(memory: Memory, since_last: bool) -> Relations:
    keys, waits = _used_keys(memory, rows_of(memory.keys, since_last)), rows_of(memory.waits, since_last)
    first = memory.written_nodes if since_last else 0
    numbers = needed_nodes(memory, memory.pending(keys.numbers), waits.columns["node"], first)
    nodes = {name: memory.nodes[name][numbers] for name in ("parent", "event")}
    taken = dict(zip(("key", "item", "number", "event"), memory.taken.T, strict=True))
    rows = {
        "keys": keys,
        "nodes": Rows(LINKED, numbers, nodes, int(memory.n.nodes)),
        "waits": waits,
        "places": _places(memory, waits),
        "taken": owned_rows(TAKEN, taken),
        "kept": _kept_detections(memory, since_last),
    }
    events = distinct(np.concatenate((nodes["event"], taken["event"])), len(memory.store))
    if since_last:
        events = events[events >= memory.written_events]
    epoch = int(memory.keys.head[NOW])
    notes = {"passed": np.array(memory.passed, np.int64), "events": np.array([len(memory.store)])}
    return Relations(KIND, rows, events, memory.store.taken(events), notes, epoch if since_last else 0, epoch + 1)


def _used_keys(memory: Memory, rows: Rows) -> Rows:
    """Keys with nothing in them are not told."""
    used = memory.used(rows.numbers)
    found = rows.select(used)
    found.freed = np.sort(np.concatenate((rows.freed, rows.numbers[~used])))
    return found


def _places(memory: Memory, waits: Rows) -> Rows:
    numbers = waits.numbers[waits.columns["placed"] == 1]
    rows = owned_rows(PLACES, {"wait": numbers})
    rows.values = [memory.places[number] for number in numbers.tolist()]
    return rows


def _kept_detections(memory: Memory, since_last: bool) -> Rows:
    """Always all, as they are few."""
    written = [(pipe, written_detection(one)) for pipe, some in enumerate(memory.kept) for one in some]
    freed = np.arange(len(written), memory.written_kept) if since_last else np.zeros(0, np.int64)
    size, pipes = max(len(written), memory.written_kept), np.array([pipe for pipe, _ in written], np.int64)
    return Rows(KEPT, np.arange(len(written)), {"pipe": pipes}, size, 0, freed, [one for _, one in written])


# From bytes.


def read(program: Program, base: bytes, later: Sequence[bytes] = ()) -> Memory:
    """What changes from then on can be told in addition to these. Raises ValueError."""
    relations, size, same = compact(decode(SHAPES, KIND, base, *later))
    memory = _Reader(program, relations, size).memory
    memory.renewed = not same
    return memory


class _Reader:
    """Puts relations into tables. References have been checked; here, that they mean what they should."""

    def __init__(self, program: Program, relations: Relations, size: int) -> None:
        self.program = program
        self.rows = relations.rows
        self.memory = memory = fresh(program)
        for table in (memory.keys, memory.waits):
            put_rows(table, self.rows[table.shape.name])
            table.head[NOW] = max(relations.epoch, 1)
        if size:
            memory.store.chunks = [spread(relations.events, relations.refs, size)]
        memory.written_events = size
        self._keys()
        self._nodes()
        self._waits()
        self._taken()
        self._piped(relations.notes.get("passed", np.zeros(0, np.int64)))

    def _check(self, good: Any, what: str) -> None:
        if not np.all(good):
            damaged(what)

    def _instants(self, numbers: Numbers, *others: int) -> None:
        self._check((np.abs(numbers) <= FURTHEST) | np.isin(numbers, others), "an instant is out of range")

    def _keys(self) -> None:
        memory, rows = self.memory, self.rows["keys"]
        memory.keys.known.put(keys_of(rows, len(self.program.key_names)), rows.numbers)
        matrix = memory.keys.rows[rows.numbers]
        self._instants(matrix[:, KEY.latest : KEY.touched + 1], NEVER)
        self._check((matrix[:, KEY.seen] >= 0) & (np.abs(2 * matrix[:, KEY.closed] - 1) == 1), "a key has seen what is not")
        for begin in range(KEY.parts, matrix.shape[1], SLOT.width):
            pending = matrix[matrix[:, begin + SLOT.node] >= 0, begin : begin + SLOT.width]
            self._instants(pending[:, SLOT.first : SLOT.lower + 1], NEVER)
            self._instants(pending[:, SLOT.gap], FOREVER)
            self._check(np.abs(2 * pending[:, SLOT.spoilt] - 1) == 1, "a sequence is spoilt or not")
        memory.left_keys = len(memory.keys.known)

    def _nodes(self) -> None:
        rows, memory = self.rows["nodes"], self.memory
        self._check(rows.columns["parent"] < rows.numbers, "a sequence goes on before it begins")
        memory.nodes = np.zeros(rows.size, NODE)
        for name in ("parent", "event"):
            memory.nodes[name][rows.numbers] = rows.columns[name]
        memory.n.nodes = memory.written_nodes = rows.size
        memory.left_nodes = len(rows)

    def _waits(self) -> None:
        rows, memory = self.rows["waits"], self.memory
        own = rows.columns
        self._check(len(rows) == 0 or self.program.trailing, "a sequence waits for nothing")
        for name in ("first", "last", "lower", "due"):
            self._instants(own[name], *([NEVER] if name == "lower" else []))
        self._check(own["rank"] >= 0, "a timer has no place among the keys of a row")
        link(memory.keys.rows, memory.waits.rows, rows.numbers)
        memory.n.due = own["due"].min(initial=FOREVER)
        places = self.rows["places"]
        waits = places.columns["wait"]
        placed = rows.numbers[own["placed"] == 1]
        self._check(np.isin(own["placed"], (0, 1)) & (len(waits) == len(placed)), "timers are not where they should be")
        self._check(np.array_equal(np.sort(waits), placed), "timers are not where they should be")
        memory.places = dict(zip(waits.tolist(), map(timer_place_of, places.values or []), strict=True))
        due = [place[0] for place in memory.places.values()]
        self._check(memory.waits.rows[waits, WAIT.due] == due, "timers are not where they should be")

    def _taken(self) -> None:
        own, memory = self.rows["taken"].columns, self.memory
        sampled = memory.keys.parts == 0 and self.program.is_sample
        self._check(sampled or len(own["item"]) == 0, "a sequence takes events as a sample does")
        self._check((own["item"] >= 0) & (own["item"] < len(self.program.query.items)), "an event is taken for no item")
        memory.taken = np.stack([own[name] for name in ("key", "item", "number", "event")], axis=1)

    def _piped(self, passed: Numbers) -> None:
        memory, rows = self.memory, self.rows["kept"]
        pipes = len(self.program.query.pipes)
        self._check(len(passed) == pipes and (passed >= 0).all(), "it has another number of pipes")
        memory.passed, memory.written_kept = passed.tolist(), rows.size
        written = msgspec.convert(rows.values or [], list[WrittenKept])
        for pipe, one in zip(rows.columns["pipe"].tolist(), written, strict=True):
            self._check(0 <= pipe < pipes, "it has another number of pipes")
            memory.kept[pipe].append(kept_detection(one))
