"""A batch as numbers: all conditions on single events, all keys, and the streams of candidates, over whole columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import Keys, key_codes
from coincide.detection.columns.store import NOTHING
from coincide.detection.columns.tables import distinct, longer, taken
from coincide.detection.situation.conditions import COMPARED, REST
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.equality import Stream, by_equality
from coincide.detection.situation.kernel.ranks import ranked
from coincide.detection.situation.kernel.state import Tables
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.prefilter import FittedRows, declared
from coincide.detection.situation.program import KeyReader, SituationProgram, references
from coincide.detection.situation.state import Key
from coincide.expr.tree import Expr, Literal
from coincide.expr.vector import evaluate, holds
from coincide.model.column import Column
from coincide.model.sorting import stable_order
from coincide.model.table import EventTable

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Prepared:
    """What the loop reads of a step: its rows in numbers, and in the state the keys, cells and streams that they touch."""

    def __init__(self, program: Program, state: Tables, table: EventTable | None) -> None:
        self.program = program
        self.group = program.group
        self.state = state
        self.new = NOTHING if table is None else table
        self.store = state.store.followed_by(table)
        self.first = len(state.store)
        self.kinds = declared(self.group)
        self.types = self._types()
        self.conditions = self.accesses = 0  # work that is done here
        size = len(self.new)
        state.steps += 1
        state.reserve_events(self.first + size)
        self.of_lifespan = np.zeros((len(self.group.lifespans), size, 3), np.int64)
        self.of_situation = np.zeros((len(self.group.situations), size, 3), np.int64)
        self.of_lifespan[:, :, at.ROLE.key] = self.of_situation[:, :, at.ENTRY.cell] = -1
        self._fill()
        work = note_events(program, state, self.new, self.types, self.first)
        self.conditions, self.accesses = self.conditions + work[0], self.accesses + work[1]
        self.touched_keys = _present(self.of_lifespan[:, :, at.ROLE.key], len(state.keys))
        self.touched = _present(self.of_situation[:, :, at.ENTRY.cell], len(state.cells))
        state.cells.touch(self.touched)
        self.equal = self._lay_out()

    def events(self) -> Any:
        new = self.new
        now = new.hi if new.given_places is None else new.place_matrix()[:, 0]
        return np.stack((now, self.types, new.hi), axis=1).astype(np.int64)

    def whose(self, made: Any) -> Any:
        """The situations of detections, by their numbers among all that are stepped."""
        keys = self.state.cells.rows[made[:, at.MADE.cell], at.CELL.key]
        return made[:, at.MADE.situation] + self.state.keys.rows[keys, at.KEY.whose]

    def in_order(self, made: Any, selected: Any) -> tuple[Any, Any]:
        """Detections, and what is selected for them, in the order of places."""
        return made, selected

    # Conditions and keys.

    def _types(self) -> Any:
        return types_of(self.program, self.new)

    def _fill(self) -> None:
        for number in _present(self.types, len(self.program.events)).tolist():
            self._event(self.program.events[number], np.flatnonzero(self.types == number))

    def _event(self, event: str, index: Rows) -> None:
        """Everything about the rows of one type."""
        rows = FittedRows(self.new, index, self.kinds[event])
        readers = self.group.readers[event]
        for lifespan in readers.lifespans:
            d = lifespan.number
            for number, role in enumerate(lifespan.definition.initiators):
                self._note(self.of_lifespan[d, :, at.ROLE.initiators], index, number, role.event == event, role.where, rows)
            for number, end in enumerate(lifespan.definition.terminators):
                self._note(self.of_lifespan[d, :, at.ROLE.terminators], index, number, end.event == event, end.where, rows)
        for d in dict.fromkeys([*(x.number for x in readers.lifespans), *(s.lifespan for s in readers.situations)]):
            readers_of_key = [s.global_key for s in self.group.lifespans[d].situations]
            reader = next(r for r in readers_of_key if not r.size or event in r.attributes)
            codes, keys = _coded([reader], event, rows)
            self.of_lifespan[d, index, at.ROLE.key] = _rows_of_keys(codes, keys, partial(self.state.key_rows, d))
        for situation in readers.situations:
            if event not in situation.operands_of:
                self.of_situation[situation.number, index, at.ENTRY.cell] = -1
                continue
            s = situation.number
            for number in situation.operands_of[event]:
                definition = situation.operands[number].definition
                self._note(self.of_situation[s, :, at.ENTRY.entered], index, number, True, definition.threshold, rows)
                overridden = self.of_situation[s, :, at.ENTRY.overridden]
                self._note(overridden, index, number, definition.override is not None, definition.override, rows)
            self.of_situation[s, index, at.ENTRY.cell] = self._cells(situation, event, index, rows)

    def _cells(self, situation: SituationProgram, event: str, index: Rows, rows: FittedRows) -> Any:
        if not situation.local_key.size:
            keys = self.of_lifespan[situation.lifespan, index, at.ROLE.key]
            column = at.KEY.parts + self.program.among[situation.number]
            return np.where(keys < 0, -1, self.state.keys.rows[keys, column])
        codes, keys = _coded([situation.global_key, situation.local_key], event, rows)
        return _rows_of_keys(codes, keys, partial(self._local_cells, situation))

    def _local_cells(self, situation: SituationProgram, keys: Sequence[Key]) -> list[int]:
        """The rows of cells, by values of the lifespan's key and then of the local one."""
        size = situation.global_key.size
        outer = list(dict.fromkeys(key[:size] for key in keys))
        rows = dict(zip(outer, self.state.key_rows(situation.lifespan, outer).tolist(), strict=True))
        return self.state.cell_rows(situation.number, [(rows[key[:size]], key[size:]) for key in keys])

    def _note(self, masks: Any, index: Any, number: int, concerned: bool, tree: Expr | None, rows: FittedRows) -> None:
        if concerned:
            masks[index] |= self._mask(tree, rows).astype(np.int64) << number

    def _mask(self, tree: Expr | None, rows: FittedRows) -> Mask:
        conditions, accesses = _cost(tree, rows)
        self.conditions += conditions
        self.accesses += accesses
        return _mask(tree, rows)

    # Streams.

    def _lay_out(self) -> Any:
        """Candidates that come in this step are in their streams before it begins; how far those are filled, the loop says."""
        indexed = {index.operand for index in self.program.indexes}
        streams: dict[int, Stream] = {}
        for situation in self.group.situations:
            if self.program.situations[situation.number, at.SITUATION.kind] >= at.PASSED:
                continue
            mine = self.of_situation[situation.number]
            new = []
            for operand in range(len(situation.operands)):
                rows = np.flatnonzero((mine[:, at.ENTRY.entered] >> operand) & 1 & (mine[:, at.ENTRY.cell] >= 0))
                order = stable_order(cells := mine[rows, at.ENTRY.cell])
                new.append((cells[order], rows[order] + self.first))
                self._extend(operand, *new[-1])
            first = self.program.first_operand[situation.number]
            operands = range(len(situation.operands))
            if any(first + operand in indexed for operand in operands):
                cells = self._indexed_cells(situation, [cells for cells, _ in new])
                streams.update((first + operand, self._stream(operand, cells, new[operand][0])) for operand in operands)
        return by_equality(self.program.indexes, streams, self.state.values, self.state.ranges)

    def _extend(self, operand: int, cells: Any, refs: Any) -> None:
        """New candidates behind those that are there; a stream without room for them moves to the end, with more."""
        if not len(cells):
            return
        state, column = self.state, at.CELL.parts + operand * at.STREAM.width
        rows = state.cells.rows
        places = [column + name for name in (at.STREAM.filled, at.STREAM.low, at.STREAM.origin, at.STREAM.limit)]
        starts = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
        touched, counts = cells[starts], np.diff(np.append(starts, len(cells)))
        filled, low, origin, limit = rows[touched][:, places].T
        full = filled + counts > limit
        if full.any():
            held = (filled - low)[full]
            room = held + counts[full] + np.where(held > 0, held + counts[full], 0)
            begin = state.streamed + np.cumsum(room) - room
            size = state.streamed + int(room.sum())
            state.stream = longer(state.stream, size)
            state.stream[taken(begin, held)] = state.stream[taken((origin + low)[full], held)]
            state.streamed = size
            rows[touched[full], places[2]] = begin - low[full]
            rows[touched[full], places[3]] = low[full] + room
            origin = rows[touched, places[2]]
        behind = np.arange(len(cells)) - np.repeat(starts, counts)
        state.stream[np.repeat(origin + filled, counts) + behind] = refs

    def _indexed_cells(self, situation: SituationProgram, entered: Sequence[Any]) -> Any:
        """The cells in which candidates are looked for: those that some come to, or all if decisions are deferred."""
        cells = np.unique(np.concatenate(entered))
        rows = self.state.cells.rows
        if situation.operator.mode == "deferred":
            live = self.state.cells.live()
            cells = live[rows[live, at.CELL.situation] == situation.number]
        rows[cells, at.CELL.indexed] = self.state.steps
        return cells

    def _stream(self, operand: int, cells: Any, entering: Any) -> Stream:
        rows, column = self.state.cells.rows, at.CELL.parts + operand * at.STREAM.width
        low, origin = rows[cells, column + at.STREAM.low], rows[cells, column + at.STREAM.origin]
        entered = np.searchsorted(entering, cells, "right") - np.searchsorted(entering, cells)
        sizes = rows[cells, column + at.STREAM.filled] + entered - low
        flat = taken(origin + low, sizes)
        return np.repeat(cells, sizes), self.state.stream[flat], flat - np.repeat(origin, sizes)


def _rows_of_keys(codes: Any, keys: Sequence[Key], find: Callable[[Sequence[Key]], Any]) -> Any:
    """The row of each key that occurs; a dictionary may have more than that."""
    used = distinct(codes[codes >= 0], len(keys))
    numbers = np.full(len(keys) + 1, -1, np.int64)
    numbers[used] = find(keys.take(used) if isinstance(keys, Keys) else [keys[code] for code in used.tolist()])
    return numbers[codes]


def types_of(program: Program, table: EventTable) -> Any:
    """The number of each event's type; -1 for what opened a lifespan at startup, which is not an event."""
    column = table.column("type")
    numbers = {event: n for n, event in enumerate(program.events)}
    known = np.array([*(numbers.get(text, -1) for text in column.texts), -1], np.int64)
    return known[column.codes] if column.codes is not None else np.full(len(table), -1, np.int64)


def note_events(program: Program, state: Tables, table: EventTable, types: Any, first: int) -> tuple[int, int]:
    """What candidates are compared by, and whether they are kept, from a ref on. Returns the work that it was."""
    kinds, work = declared(program.group), [0, 0]
    refs = slice(first, first + len(table))
    state.keeps[:, refs], state.values[:, refs] = 0, np.nan
    for number, event in enumerate(program.events):
        rows = FittedRows(table, np.flatnonzero(types == number), kinds[event])
        for situation in program.group.readers[event].situations:
            for operand in situation.operands_of.get(event, ()):
                keeping = situation.operands[operand].definition.keeping
                if keeping is not None and rows.length:
                    tree, stays = keeping
                    qualifies = _mask(tree, rows) == stays
                    state.keeps[situation.number, first + rows.rows] |= qualifies.astype(np.int64) << operand
                    work = [a + b for a, b in zip(work, _cost(tree, rows), strict=True)]
    compared: dict[int, tuple[Rows, Column]] = {}
    for (event, tree, kind), number in program.leaves.items():
        rows = FittedRows(table, np.flatnonzero(types == program.events.index(event)), kinds[event])
        column = evaluate(tree, rows)
        if kind == COMPARED:
            compared[number] = first + rows.rows, column
        else:
            state.values[number, first + rows.rows] = _rests(column) if kind == REST else _doubles(column, column.numbers)
    _number_texts(program, state, first, {text: None for _, column in compared.values() for text in column.texts})
    numbers = ranked(state, first, {number: column for number, (_, column) in compared.items()})
    for number, (where, column) in compared.items():
        if column.codes is None:
            state.values[number, where] = _doubles(column, numbers[number])
        else:
            state.values[number, where] = np.array([*(state.texts[text] for text in column.texts), np.nan])[column.codes]
            state.textual.add(number)
    return work[0], work[1]


def _number_texts(program: Program, state: Tables, size: int, texts: Iterable[str]) -> None:
    """Texts by number; where it matters which is less, numbers stand in their order, and those before may change."""
    new = [text for text in texts if text not in state.texts]
    if not new:
        return
    if not program.ordered:
        following = max(state.texts.values(), default=-1.0) + 1.0
        state.texts.update((text, following + n) for n, text in enumerate(new))
        return
    ranks = {text: float(n) for n, text in enumerate(sorted([*state.texts, *new]))}
    old = np.array([[number, ranks[text]] for text, number in state.texts.items()]).reshape(-1, 2)
    old = old[np.argsort(old[:, 0])]
    for column in state.textual:
        values = state.values[column, :size]
        known = np.flatnonzero(~np.isnan(values))
        values[known] = old[np.searchsorted(old[:, 0], values[known]), 1]
    state.texts = ranks


def _present(numbers: Any, size: int) -> Any:
    return distinct(numbers[numbers >= 0], size)


def _mask(tree: Expr | None, rows: FittedRows) -> Mask:
    if tree is None or isinstance(tree, Literal):
        return np.full(rows.length, tree is None or tree.value is True)
    return holds(tree, rows)


def _cost(tree: Expr | None, rows: FittedRows) -> tuple[int, int]:
    if tree is None or isinstance(tree, Literal):
        return 0, 0
    return rows.length, rows.length * references(tree)


def _coded(readers: Sequence[KeyReader], event: str, rows: FittedRows) -> tuple[Any, Sequence[Key]]:
    names = [name for reader in readers if reader.size for name in reader.attributes[event]]
    if not names:
        return np.zeros(rows.length, np.int64), [()]
    columns = [rows.column(name) or Column(rows.length) for name in names]
    return key_codes(columns)


def _doubles(column: Column, numbers: Any) -> Any:
    """What stands for flags, or these numbers; nan for null."""
    if column.flags is not None:
        return np.array([0.0, 1.0, np.nan])[column.flags]
    return np.nan if numbers is None else numbers


def _rests(column: Column) -> Any:
    return 0.0 if column.rests is None else column.rests
