"""The tables of a state as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from coincide.detection.columns.codec import Relations, Rows, compact, decode, encode, encode_whole, owned_rows, put_rows, rows_of
from coincide.detection.columns.store import spread
from coincide.detection.columns.tables import NOW, Numbers, distinct, numbered, taken
from coincide.detection.situation.encoding import KIND
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.rows import note_events, types_of
from coincide.detection.situation.kernel.state import Tables
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.program import KeyReader
from coincide.detection.situation.state import Key
from coincide.detection.snapshots import damaged
from coincide.model.bounds import FURTHEST, Finite, Whole

COUNTED = {
    "candidates": ("situations", at.COUNTED.candidates),
    "detections": ("situations", at.COUNTED.detections),
    "initiated": ("lifespans", at.COUNTED.initiated),
    "terminated": ("lifespans", at.COUNTED.terminated),
}
MOST = 1 << 62
StoredKey = tuple[Whole | Finite | str | tuple[bool, ...], ...]
"""A key as it is (detection/keys.py)."""


def whole(tables: Tables) -> bytes:
    return encode_whole(relations_of(tables))


def changes(tables: Tables, everything: bool) -> tuple[bytes, bool]:
    """What has changed since this was called last, or all if that is wanted or as much; and whether it is all."""
    everything = everything or tables.renewed
    data = encode(relations_of(tables, not everything))
    changed = tables.cells.live() if everything else tables.cells.changed()
    for operand in range(tables.program.most_operands):
        tables.cells.of_part(operand, "written")[changed] = tables.cells.of_part(operand, "filled")[changed]
    for table in tables.all:
        table.next_epoch()
    tables.written, tables.renewed = len(tables.store), False
    return data, everything


def relations_of(tables: Tables, since_last: bool = False) -> Relations:
    rows = {table.shape.name: rows_of(table, since_last) for table in tables.all}
    of_cell, operands, positions, refs = tables.streams(rows["cells"].numbers, since_last)
    rows["candidates"] = owned_rows(at.CANDIDATES, {"cell": of_cell, "operand": operands, "position": positions, "event": refs})
    rows["consumed"] = owned_rows(at.CONSUMED, _consumed(tables, rows["records"].numbers))
    held, chosen = tables.choices(rows["held"].numbers)
    rows["chosen"] = owned_rows(at.CHOSEN, {"held": held, "operand": chosen[:, 0], "event": chosen[:, 1]})
    used = [rows["spans"].columns["opened"], rows["timers"].columns["event"], chosen[:, 1], refs]
    wanted = distinct(np.concatenate(used), len(tables.store))
    if since_last:
        wanted = wanted[wanted >= tables.written]
    epoch = int(tables.heads[0, NOW])
    return Relations(KIND, rows, wanted, tables.store.taken(wanted), _notes(tables), epoch if since_last else 0, epoch + 1)


def _consumed(tables: Tables, records: Numbers) -> dict[str, Numbers]:
    """The words of bits of these records."""
    rows = tables.records.rows
    records = records[rows[records, at.RECORD.done] == 0]
    found: list[list[Numbers]] = [[], [], [], []]
    for operand in range(tables.program.most_operands):
        column = at.RECORD.parts + operand * at.TAKEN.width
        own = records[rows[records, column + at.TAKEN.bits] >= 0]
        bits, begin, words = rows[own, column + 1 : column + at.TAKEN.width].T
        flat = taken(bits, words)
        found[0].append(np.repeat(own, words))
        found[1].append(np.full(len(flat), operand))
        found[2].append(np.repeat(begin, words) + 64 * (flat - np.repeat(bits, words)))
        found[3].append(tables.pool[flat])
    names = ("record", "operand", "position", "word")
    return {name: np.concatenate([np.zeros(0, np.int64), *some]) for name, some in zip(names, found, strict=True)}


def _notes(tables: Tables) -> dict[str, Numbers]:
    counted = {name: tables.counted[: len(getattr(tables, rows)), column] for name, (rows, column) in COUNTED.items()}
    return {**counted, "work": np.array([tables.conditions, tables.accesses]), "events": np.array([len(tables.store)])}


# From bytes.


def read(program: Program, base: bytes, later: Sequence[bytes] = ()) -> Tables:
    """The state, ready for the loop; what changes from then on can be told in addition to these. Raises ValueError."""
    tables = load(program, decode(at.SHAPES, KIND, base, *later))
    tables.link()
    return tables


def taken_up(program: Program, relations: Relations) -> Tables:
    """Likewise, of relations that were not written yet."""
    tables = load(program, relations)
    tables.link()
    tables.renewed = True
    return tables


def load(program: Program, relations: Relations) -> Tables:
    """Without the lists that only the loop needs."""
    relations, size, same = compact(relations)
    tables = _Reader(program, relations, size).tables
    tables.renewed = not same
    return tables


def of_some(relations: Relations, program: Program, numbers: Sequence[int], lifespans: Sequence[int]) -> Relations:
    """Those of some situations, which have these numbers there, as a group of these alone has them: `lifespans` are those of all
    situations there."""
    group = program.group
    if max(numbers) >= len(lifespans):
        damaged("it tells of other situations")
    situations = np.full(len(lifespans), -1, np.int64)
    situations[list(numbers)] = np.arange(len(numbers))
    definitions = np.full(max(lifespans) + 1, -1, np.int64)
    for situation, number in zip(group.situations, numbers, strict=True):
        if definitions[lifespans[number]] not in (-1, situation.lifespan):
            damaged("it tells of other lifespans")
        definitions[lifespans[number]] = situation.lifespan
    rows = dict(relations.rows)
    for name, column, new in (
        *((name, "definition", definitions) for name in ("keys", "spans")),
        *((name, "situation", situations) for name in ("cells", "records", "timers", "held")),
    ):
        old = rows[name].columns[column]
        if len(old) and (old.min() < 0 or old.max() >= len(new)):
            damaged("it tells of other situations")
        rows[name] = rows[name].select(new[old] >= 0)
        rows[name].columns[column] = new[rows[name].columns[column]]
    for name, owner, owners in (("candidates", "cell", "cells"), ("consumed", "record", "records"), ("chosen", "held", "held")):
        rows[name] = rows[name].select(np.isin(rows[name].columns[owner], rows[owners].numbers))
        rows[name].numbers = np.arange(len(rows[name].numbers))
    for name, parts in (("keys", program.most_cells), ("cells", program.most_operands), ("records", program.most_operands)):
        rows[name] = _with_parts(rows[name], parts)
    notes = dict(relations.notes)
    for name, (kind, _) in COUNTED.items():
        notes[name] = _counts(notes.get(name, np.zeros(0, np.int64)), situations if kind == "situations" else definitions)
    return Relations(KIND, rows, relations.refs, relations.events, notes, 0, relations.epoch)


def _with_parts(rows: Rows, parts: int) -> Rows:
    """With so many parts; what is not there is 0."""
    columns = {name: rows.columns.get(name, np.zeros(len(rows), np.int64)) for name, *_ in rows.shape.written(parts)}
    return Rows(rows.shape, rows.numbers, columns, rows.size, parts, rows.freed, rows.values)


def _counts(counts: Numbers, new: Numbers) -> Numbers:
    """Counts by their new numbers."""
    if len(counts) < len(new):
        damaged("its counts are others")
    found = np.zeros(new.max(initial=-1) + 1, np.int64)
    found[new[new >= 0]] = counts[: len(new)][new >= 0]
    return found


class _Reader:
    """Puts relations into tables. References have been checked; here, that they mean what they should."""

    def __init__(self, program: Program, relations: Relations, size: int) -> None:
        self.program = program
        self.relations = relations
        self.tables = Tables(program)
        for table in self.tables.all:
            put_rows(table, relations.rows[table.shape.name])
            table.head[3] = max(relations.epoch, 1)
        self._events(size)
        self._keys()
        self._cells()
        self._spans()
        self._records()
        self._timers()
        self._held()
        self._notes()
        tables = self.tables
        tables.written = size
        tables.before = (len(relations.refs), tables.streamed, tables.pooled, tables.chosen)

    def _events(self, size: int) -> None:
        program, tables, relations = self.program, self.tables, self.relations
        self.types = np.full(size, -1, np.int64)
        tables.reserve_events(size)
        if not size:
            return
        table = spread(relations.events, relations.refs, size)
        self.types[relations.refs] = types_of(program, relations.events)
        note_events(program, tables, table, self.types, 0)
        tables.add_events(table)

    def _check(self, good: Any, what: str) -> None:
        if not np.all(good):
            damaged(what)

    def _within(self, numbers: Numbers, end: Any, what: str) -> None:
        self._check((numbers >= 0) & (numbers < end), what)

    def _keys(self) -> None:
        rows = self.relations.rows["keys"]
        definitions = rows.columns["definition"]
        self._within(definitions, len(self.program.group.lifespans), "a key is not one of a lifespan")
        keys = _keys_of(rows.values or [])
        self.bare: Numbers = rows.numbers[[not key for key in keys]]
        for lifespan in self.program.group.lifespans:
            own = np.flatnonzero(definitions == lifespan.number)
            some = [keys[n] for n in own.tolist()]
            self._check_alike(some, lifespan.situations[0].global_key, lifespan.definition.startup)
            self._check(len(set(some)) == len(some), "a key is there twice")
            self.tables.keys.known.put(self.tables.named(lifespan.number, some), rows.numbers[own])
        self.tables.keys.rows[rows.numbers, at.KEY.open] = self.tables.keys.rows[rows.numbers, at.KEY.whose] = 0

    def _check_alike(self, keys: Sequence[Key], reader: KeyReader, or_none: bool = False) -> None:
        """All of a size, and of the types that attributes are declared with: so keys can be put in order. A lifespan of the start
        has no key."""
        size, sizes = reader.size, set(map(len, keys))
        if not sizes <= ({size, 0} if or_none else {size}):
            damaged(f"a key has other than {size} values")
        some = [key for key in keys if key] if 0 in sizes else keys
        for part in range(size if some else 0):
            values = list(map(itemgetter(part), some))
            if not self.program.group.fits(reader, part, values):
                damaged("a key has a value of another type than its attribute")
            if tuple in {*map(type, values)} and any(type(v) is tuple and [*map(type, v)] != [bool] for v in values):
                damaged("a part of a key is not a single value")

    def _cells(self) -> None:
        tables, rows = self.tables, self.relations.rows["cells"]
        situations, keys = rows.columns["situation"], rows.columns["key"]
        program, matrix = self.program, tables.cells.rows
        self._within(situations, len(program.group.situations), "a cell is not one of a situation")
        lifespans = program.situations[:, at.SITUATION.lifespan][situations]
        self._check(tables.keys.rows[keys, at.KEY.definition] == lifespans, "a cell is not one of its key's lifespan")
        self._check((rows.columns["seen"] >= 0) & (rows.columns["seen"] <= len(self.types)), "a cell has seen what was not")
        numbers = rows.numbers
        matrix[numbers, at.CELL.rank : at.CELL.parts] = 0
        local = _keys_of(rows.values or [])
        for number, key in zip(numbers.tolist(), local, strict=True):
            tables.cells.values[number] = key
        for situation in program.group.situations:
            own = np.flatnonzero(situations == situation.number)
            some = [local[n] for n in own.tolist()]
            self._check_alike(some, situation.local_key)
            if situation.local_key.size:
                pairs = zip(keys[own].tolist(), some, strict=True)
                tables.cell_numbers[situation.number] = known = dict(zip(pairs, numbers[own].tolist(), strict=True))
                self._check(len(known) == len(some), "a cell is there twice")
                if situation.operator.mode == "deferred":
                    tables.rank(situation.number)
                continue
            column = at.KEY.parts + program.among[situation.number]
            tables.keys.rows[keys[own], column] = numbers[own]
            present = self.relations.rows["keys"]
            of = present.numbers[present.columns["definition"] == situation.lifespan]
            self._check(len(of) == len(own) and (tables.keys.rows[of, column] >= 0).all(), "a key has no cell, or two")
        self._streams(numbers)

    def _streams(self, numbers: Numbers) -> None:
        tables, program = self.tables, self.program
        own = self.relations.rows["candidates"].columns
        cell, operand, position, event = (own[name] for name in ("cell", "operand", "position", "event"))
        counts = program.situations[:, at.SITUATION.operands]
        situation = tables.cells.rows[cell, at.CELL.situation]
        self._within(operand, counts[situation], "a candidate is not one of an operand")
        columns = at.CELL.parts + operand * at.STREAM.width
        keep = position >= tables.cells.rows[cell, columns + at.STREAM.low]  # those before were left out later
        cell, operand, position, event, situation = (a[keep] for a in (cell, operand, position, event, situation))
        kinds = np.array([program.events.index(s.operands[n].event) for s, n in program.operand_list], np.int64)
        of_operand = program.situations[situation, at.SITUATION.first_operand] + operand
        self._check(self.types[event] == kinds[of_operand], "a candidate is not one of its operand")
        order = np.lexsort((position, cell, operand))
        cell, operand, position, event = (a[order] for a in (cell, operand, position, event))
        again = (cell[1:] == cell[:-1]) & (operand[1:] == operand[:-1]) & (position[1:] == position[:-1])
        once = np.concatenate((np.ones(min(len(cell), 1), np.bool_), ~again))
        cell, operand, position, event = (a[once] for a in (cell, operand, position, event))
        for part in range(program.most_operands):
            column = at.CELL.parts + part * at.STREAM.width
            filled, low = tables.cells.rows[numbers, column], tables.cells.rows[numbers, column + 1]
            self._check((filled >= low) & (low >= 0) & (filled < MOST), "a stream of candidates has no end")
            mine = operand == part
            found = np.bincount(np.searchsorted(numbers, cell[mine]), minlength=len(numbers))
            self._check(found == filled - low, "a stream of candidates is not complete")
            first = tables.cells.rows[cell[mine], column + 1]
            at_start = np.concatenate(([True], cell[mine][1:] != cell[mine][:-1])) if mine.any() else np.zeros(0, np.bool_)
            self._check(position[mine][at_start] == first[at_start], "a stream of candidates is not complete")
            follows = (position[mine][1:] == position[mine][:-1] + 1) & (event[mine][1:] > event[mine][:-1])
            self._check(follows | at_start[1:], "candidates do not stand in order")
            tables.cells.rows[numbers, column + at.STREAM.written] = filled
            tables.cells.rows[numbers, column + at.STREAM.watched_first : column + at.STREAM.width] = -1
        tables.put_streams(numbers, cell, operand, position, event)

    def _spans(self) -> None:
        tables, rows = self.tables, self.relations.rows["spans"].columns
        d, key, opened, due, initiator = (rows[name] for name in ("definition", "key", "opened", "due", "initiator"))
        self._within(d, len(self.program.group.lifespans), "a lifespan is not one of a definition")
        self._check(tables.keys.rows[key, at.KEY.definition] == d, "a lifespan has a key of another")
        for lifespan in self.program.group.lifespans:
            own = d == lifespan.number
            kinds = np.array([*(self.program.events.index(i.event) for _, i, _ in lifespan.initiators), -1], np.int64)
            self._check(initiator[own] < len(kinds) - 1, "a lifespan was not opened by what it says")
            self._check(self.types[opened[own]] == kinds[initiator[own]], "a lifespan was not opened by what it says")
            size = lifespan.situations[0].global_key.size
            self._check(
                (initiator[own] == -1) | ~np.isin(key[own], self.bare if size else ()), "a lifespan has a key of another kind"
            )
            interval = self.program.lifespans[lifespan.number, at.LIFESPAN.interval]
            self._check(initiator[own] >= -1, "a lifespan was not opened by what it says")
            used, index = numbered(opened[own], len(self.types))
            ends = tables.store.places(used)[index, 0] + interval
            self._check(due[own] == (ends if interval else at.NEVER), "a lifespan does not end when it says")
        pairs = np.sort(opened * len(self.program.group.lifespans) + d)
        self._check(pairs[1:] != pairs[:-1], "two lifespans have one place")

    def _records(self) -> None:
        tables, rows = self.tables, self.relations.rows["records"]
        matrix, numbers = tables.records.rows, rows.numbers
        situation, cell, done = (rows.columns[name] for name in ("situation", "cell", "done"))
        self._place(rows, "a partition")
        self._check((done == 0) | (done == 1), "a partition is done or not")
        kinds = self.program.situations[:, at.SITUATION.kind]
        self._check(kinds[situation] < at.PASSED, "a situation has partitions that it cannot have")
        pairs = np.sort(rows.columns["span"] * len(tables.cells) + cell)
        self._check(pairs[1:] != pairs[:-1], "a partition is there twice")
        operands = self.program.situations[situation, at.SITUATION.operands]
        for part in range(self.program.most_operands):
            column, stream = at.RECORD.parts + part * at.TAKEN.width, at.CELL.parts + part * at.STREAM.width
            low, filled = tables.cells.rows[cell, stream + at.STREAM.low], tables.cells.rows[cell, stream + at.STREAM.filled]
            start = matrix[numbers, column]
            fits = (start >= low) & (start <= filled)
            self._check(fits | (done == 1) | (part >= operands), "a partition starts where its stream is not")
            matrix[numbers, column + at.TAKEN.bits] = -1
        self._consumed()

    def _consumed(self) -> None:
        """Words of bits, those of an operand of a record one after another."""
        tables, own = self.tables, self.relations.rows["consumed"].columns
        record, operand, position, word = (own[name] for name in ("record", "operand", "position", "word"))
        order = np.lexsort((position, operand, record))
        record, operand, position, word = (a[order] for a in (record, operand, position, word))
        situation = tables.records.rows[record, at.RECORD.situation]
        counts = self.program.situations[:, at.SITUATION.operands]
        self._within(operand, counts[situation], "what is consumed is not of an operand")
        same = (record[1:] == record[:-1]) & (operand[1:] == operand[:-1])
        self._check(~same | (position[1:] == position[:-1] + 64), "what is consumed does not stand in order")
        first = np.flatnonzero(np.concatenate(([True], ~same))) if len(record) else np.zeros(0, np.int64)
        ends = np.append(first[1:], len(record))
        begin = np.concatenate(([0], word, [0]))
        column = at.RECORD.parts + operand[first] * at.TAKEN.width
        start = tables.records.rows[record[first], column]
        self._check(position[first] <= start, "what is consumed begins behind what is there")
        self._check(position[first] >= 0, "what is consumed begins nowhere")
        tables.pool, tables.pooled = begin, 1 + len(word)
        rows = tables.records.rows
        rows[record[first], column + at.TAKEN.bits] = 1 + first
        rows[record[first], column + at.TAKEN.bits_from] = position[first]
        rows[record[first], column + at.TAKEN.words] = ends - first
        offset = start - position[first]
        inside = offset >> 6 < ends - first
        at_start = (word[np.minimum(first + (offset >> 6), max(len(word) - 1, 0))] >> (offset & 63)) & 1 if len(word) else offset
        self._check(~inside | (at_start == 0), "the first candidate of a partition is consumed")

    def _place(self, rows: Rows, what: str) -> None:
        """A row in a lifespan and in a cell, both of one situation and one key."""
        tables, situation = self.tables, rows.columns["situation"]
        span, cell = rows.columns["span"], rows.columns["cell"]
        self._within(situation, len(self.program.group.situations), f"{what} is not one of a situation")
        lifespan = self.program.situations[:, at.SITUATION.lifespan][situation]
        self._check(tables.cells.rows[cell, at.CELL.situation] == situation, f"{what} is in a cell of another situation")
        self._check(tables.spans.rows[span, at.SPAN.definition] == lifespan, f"{what} is in a lifespan of another situation")
        self._check(tables.cells.rows[cell, at.CELL.key] == tables.spans.rows[span, at.SPAN.key], f"{what} has two keys")

    def _timers(self) -> None:
        rows = self.relations.rows["timers"]
        self._place(rows, "a timer")
        situation, operand, event, due = (rows.columns[name] for name in ("situation", "operand", "event", "due"))
        kinds = self.program.situations[situation, at.SITUATION.kind]
        self._check(kinds >= at.PASSED, "a situation without a clock has one")
        after, ticks = np.flatnonzero(kinds == at.PASSED), np.flatnonzero(kinds == at.TICKING)
        self._fits(situation[after], operand[after], event[after])
        self._ticks(rows.columns["span"][ticks], situation[ticks], operand[ticks], event[ticks], due[ticks])
        self._check((np.abs(due) <= FURTHEST) & (rows.columns["number"] >= 0), "a timer is never due")

    def _ticks(self, span: Numbers, situation: Numbers, which: Numbers, event: Numbers, due: Numbers) -> None:
        tables = self.tables
        self._check(event == tables.spans.rows[span, at.SPAN.opened], "a tick is not one of its lifespan")
        used, index = numbered(event, len(self.types))
        opened, interval = tables.store.places(used)[index, 0], self.program.situations[situation, at.SITUATION.delay]
        self._check((which > 0) & (which <= MOST // interval), "a tick is none")
        self._check(due == opened + which * interval, "a tick is not due when it says")
        pairs = np.sort(span * len(self.program.group.situations) + situation)
        self._check(pairs[1:] != pairs[:-1], "a lifespan has two ticks at once")

    def _fits(self, situation: Numbers, operand: Numbers, event: Numbers) -> None:
        program = self.program
        self._within(operand, program.situations[situation, at.SITUATION.operands], "candidates are not those of their operand")
        kinds = np.array([program.events.index(s.operands[n].event) for s, n in program.operand_list] or [-1], np.int64)
        wanted = kinds[program.situations[situation, at.SITUATION.first_operand] + operand]
        self._check(self.types[event] == wanted, "candidates are not those of their operand")

    def _held(self) -> None:
        tables, rows = self.tables, self.relations.rows["held"]
        self._place(rows, "what is held")
        own = self.relations.rows["chosen"].columns
        first = np.zeros(len(tables.held), np.int64)
        first[rows.numbers] = rows.columns["first"]
        self._check(len(np.unique(rows.columns["first"])) == len(rows) or not len(own["held"]), "what is held has no order")
        order = np.argsort(first[own["held"]], kind="stable")
        held, operand, event = (own[name][order] for name in ("held", "operand", "event"))
        self._fits(tables.held.rows[held, at.WAITING.situation], operand, event)
        by_order = rows.numbers[np.argsort(rows.columns["first"], kind="stable")]
        tables.put_held(by_order, held, np.stack((operand, event), axis=1))

    def _notes(self) -> None:
        tables, notes = self.tables, self.relations.notes
        for name, (rows, column) in COUNTED.items():
            counted = notes.get(name, np.zeros(0, np.int64))
            several = len(getattr(tables, rows))
            self._check(len(counted) == several and (counted >= 0).all(), "its counts are others")
            tables.counted[:several, column] = counted
        work = notes.get("work", np.zeros(0, np.int64))
        self._check(len(work) == 2 and (work >= 0).all(), "its counts are others")
        tables.conditions, tables.accesses = int(work[0]), int(work[1])


def _keys_of(values: list[Any]) -> list[Key]:
    keys: list[Key] = msgspec.convert(values, list[StoredKey])
    return keys
