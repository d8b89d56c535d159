"""The state of a query as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.columns.codec import Relations, Rows, compact, decode, encode, encode_whole, owned_rows, put_rows, rows_of
from coincide.detection.columns.store import spread
from coincide.detection.columns.tables import NOW, Numbers, Shape, distinct
from coincide.detection.rowpattern.memory import PARTITIONS, ROW, Memory, empty, partition_keys, plain_keys
from coincide.detection.rowpattern.partition import Key, Program
from coincide.detection.rowpattern.state import FOREVER, NEVER
from coincide.detection.snapshots import damaged
from coincide.model.bounds import Finite, Whole
from coincide.model.table import EventTable

KIND = "row patterns"
ROWS = Shape("rows", "partition>partitions event>events", owner="partition")
WAITING = Shape("waiting", "event>events")
HELD = Shape("held", "until", valued=True)
"""What the rules that make the table still hold back, by the name of the rule."""
SHAPES = (PARTITIONS, ROWS, WAITING, HELD)
StoredKey = tuple[tuple[bool, Finite | Whole | str | bool | None], ...]


def whole(memory: Memory) -> bytes:
    return encode_whole(_relations(memory, False))


def changes(memory: Memory, everything: bool) -> tuple[bytes, bool]:
    """What has changed since this was called last, or all if that is wanted or as much; and whether it is all."""
    everything = everything or memory.renewed
    data = encode(_relations(memory, not everything))
    memory.dues.next_epoch()
    memory.written, memory.renewed = len(memory.store), False
    return data, everything


def _relations(memory: Memory, since_last: bool) -> Relations:
    partitions = rows_of(memory.partitions, since_last)
    partitions.values = partition_keys(partitions.values or [])
    events = memory.rows_of(partitions.numbers)
    sizes = memory.partitions.rows[partitions.numbers, ROW.size]
    waiting, held = np.arange(len(memory.waiting)), np.arange(len(memory.held))
    until = np.array(list(memory.held.values()), np.int64)
    rows = {
        "partitions": partitions,
        "rows": owned_rows(ROWS, {"partition": np.repeat(partitions.numbers, sizes), "event": events}),
        "waiting": Rows(WAITING, waiting, {"event": memory.waiting}, len(waiting)),
        "held": Rows(HELD, held, {"until": until}, len(held), values=list(memory.held)),
    }
    wanted = distinct(np.concatenate((events, memory.waiting)), len(memory.store))
    if since_last:
        wanted = wanted[wanted >= memory.written]
    notes = {name: np.array([getattr(memory, name)]) for name in ("passed", "told", "turns")}
    notes["events"] = np.array([len(memory.store)])
    epoch = int(memory.partitions.head[NOW])
    return Relations(KIND, rows, wanted, memory.store.taken(wanted), notes, epoch if since_last else 0, epoch + 1)


# From bytes.


def read(program: Program, columns: frozenset[str] | None, base: bytes, later: Sequence[bytes] = ()) -> Memory:
    """What changes from then on can be told in addition to these. Raises ValueError."""
    relations, size, same = compact(decode(SHAPES, KIND, base, *later))
    memory = empty(columns, program.clause.within)
    memory.passed, memory.told, memory.turns = (_note(relations, name) for name in ("passed", "told", "turns"))
    memory.renewed, memory.written = not same, size
    _check_rows(relations.events, len(relations.refs))
    if size:
        memory.store.chunks = [spread(relations.events, relations.refs, size)]
    memory.waiting = relations.rows["waiting"].columns["event"]
    held = relations.rows["held"]
    memory.held = dict(zip(msgspec.convert(held.values or [], list[str]), held.columns["until"].tolist(), strict=True))
    put_rows(memory.partitions, relations.rows["partitions"])
    memory.partitions.head[NOW] = max(relations.epoch, 1)
    _put_keys(program, memory, relations.rows["partitions"])
    _put_rows(memory, relations.rows["partitions"], relations.rows["rows"].columns)
    _check_scans(program, memory, relations.rows["partitions"].numbers)
    return memory


def _note(relations: Relations, name: str) -> int:
    found = relations.notes.get(name, np.zeros(0, np.int64))
    if len(found) != 1:
        damaged(f"it does not tell '{name}'")
    return int(found[0])


def _check_rows(table: EventTable, size: int) -> None:
    """External events are made of themselves."""
    own = np.flatnonzero(table.generation == 0)
    if not size or not len(own):
        return
    if "id" not in table.fields or "type" not in table.fields:
        damaged("a row has no id, or no type")
    origins, ids = table.origin().take(own), table.fields["id"].take(pa.array(own))
    alone = origins.offsets is None or bool((np.diff(origins.offsets) == 1).all())
    if not alone or not np.array_equal(origins.lo, table.lo[own]) or not np.array_equal(origins.hi, table.hi[own]):
        damaged("an event is not made of itself")
    texts = (array.cast(pa.string()) for array in (origins.ids, ids))
    if ids.null_count or pc.all(pc.equal(*texts)).as_py() is False:
        damaged("an event is not made of itself")


def _put_keys(program: Program, memory: Memory, rows: Rows) -> None:
    keys: list[Key] = msgspec.convert(rows.values or [], list[StoredKey])
    sizes = {len(key) for key in keys}
    if len(set(keys)) < len(keys) or not sizes <= {len(program.clause.partition)}:
        damaged("a partition has another key")
    if any(isinstance(value, bool) != flag for key in keys for flag, value in key):
        damaged("a partition has another key")
    memory.partitions.known.put(plain_keys(keys), rows.numbers)


def _put_rows(memory: Memory, partitions: Rows, own: dict[str, Numbers]) -> None:
    order = np.argsort(own["partition"], kind="stable")
    memory.events = own["event"][order]
    memory.used = memory.live = len(order)
    starts = np.searchsorted(own["partition"][order], partitions.numbers)
    ends = np.searchsorted(own["partition"][order], partitions.numbers, side="right")
    memory.partitions.rows[partitions.numbers, ROW.first] = starts
    memory.partitions.rows[partitions.numbers, ROW.size] = ends - starts


def _check_scans(program: Program, memory: Memory, numbers: Numbers) -> None:
    rows = memory.partitions.rows[numbers]
    base, start, number, turn, due = (rows[:, at] for at in (ROW.base, ROW.start, ROW.number, ROW.turn, ROW.due))

    def check(good: Any, what: str) -> None:
        if not np.all(good):
            damaged(what)

    check((rows[:, ROW.base : ROW.turn + 1] >= 0) & (rows[:, ROW.base : ROW.turn + 1] <= 1 << 60), "a partition counts wrongly")
    check((start <= rows[:, ROW.size]) & ((base == 0) | (start >= program.back)), "a partition does not have its rows")
    check(number >= 1, "a partition counts wrongly")
    check((turn < memory.turns) & (len(distinct(turn)) == len(turn)), "partitions have no order")
    used, index = np.unique(memory.events, return_inverse=True)
    check(len(used) == len(memory.events), "a row is in two partitions")
    pending = np.flatnonzero(start < rows[:, ROW.size])
    bounds = np.full(len(rows), FOREVER, np.int64)
    if memory.within is not None and len(pending):
        hi = memory.store.hi(used)[index][(rows[:, ROW.first] + start)[pending]]
        bounds[pending] = hi + memory.within
        bounds[bounds <= memory.passed] = FOREVER
    check(due == bounds, "a bound does not pass when it says")
    check(memory.passed >= NEVER, "it has no clock")
    memory.exact = False
