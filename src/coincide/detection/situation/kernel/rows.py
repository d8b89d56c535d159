"""A batch as numbers: all conditions on single events, all keys, and the streams of candidates, over whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import key_codes
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.equality import by_equality
from coincide.detection.situation.kernel.state import Cell, Compact
from coincide.detection.situation.kernel.store import Refs, Store, of_type
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.prefilter import FittedRows, declared
from coincide.detection.situation.program import KeyReader, references
from coincide.detection.situation.state import Key, key_value
from coincide.expr.tree import Expr, Literal
from coincide.expr.vector import evaluate, holds
from coincide.model.column import Column

Mask = npt.NDArray[np.bool_]


class Prepared:
    """What the loop reads of a step. `keys` and `cells` are the numbers' meanings: those in use before, then new ones."""

    def __init__(self, program: Program, state: Compact, store: Store) -> None:
        self.program = program
        self.group = program.group
        self.store = store
        self.first = len(store.kept)
        self.kinds = declared(self.group)
        self.types = self._types()
        self.keys: list[dict[Key, int]] = [{key: n for n, key in enumerate(keys)} for keys in state.keys]
        self.cells: list[dict[Cell, int]] = [{cell: n for n, cell in enumerate(cells)} for cells in state.cells]
        self.conditions = self.accesses = 0  # work that is done here
        size = len(store.new)
        self.of_lifespan = np.zeros((len(self.group.lifespans), size, 3), np.int64)
        self.of_situation = np.zeros((len(self.group.situations), size, 3), np.int64)
        self.keeps = np.zeros((len(self.group.situations), len(store)), np.int64)
        for number, event in enumerate(program.events):
            self._event(event, np.flatnonzero(self.types == number))
        self.values = self._values()
        streams = self._lay_out(state)
        self.ranges, self.equal = by_equality(program.indexes, streams, self.values)

    @property
    def openings(self) -> int:
        """So many lifespans may open."""
        return int(np.count_nonzero(self.of_lifespan[:, :, at.INITIATORS]))

    def events(self) -> Any:
        new = self.store.new
        now = new.hi if new.given_places is None else new.place_matrix()[:, 0]
        return np.stack((now, self.types[self.first :], new.hi), axis=1).astype(np.int64)

    def _types(self) -> Any:
        """The number of each event's type; -1 for what opened a lifespan at startup, which is not an event."""
        column = self.store.column("type")
        numbers = {event: n for n, event in enumerate(self.program.events)}
        table = np.array([*(numbers.get(text, -1) for text in column.texts), -1], np.int64)
        return table[column.codes] if column.codes is not None else np.full(len(self.store), -1, np.int64)

    # Conditions and keys.

    def _event(self, event: str, refs: Refs) -> None:
        """Everything about the events of one type."""
        rows = of_type(self.store, refs[refs >= self.first], self.kinds[event])
        index = rows.rows - self.first
        readers = self.group.readers[event]
        for lifespan in readers.lifespans:
            d = lifespan.number
            for number, role in enumerate(lifespan.definition.initiators):
                self._note(self.of_lifespan[d, :, at.INITIATORS], index, number, role.event == event, role.where, rows)
            for number, end in enumerate(lifespan.definition.terminators):
                self._note(self.of_lifespan[d, :, at.TERMINATORS], index, number, end.event == event, end.where, rows)
        for d in dict.fromkeys([*(x.number for x in readers.lifespans), *(s.lifespan for s in readers.situations)]):
            readers_of_key = [s.global_key for s in self.group.lifespans[d].situations]
            reader = next(r for r in readers_of_key if not r.size or event in r.attributes)
            self.of_lifespan[d, index, at.KEY_NUMBER] = self._numbers([reader], event, rows, self.keys[d])
        for situation in readers.situations:
            if event not in situation.operands_of:
                self.of_situation[situation.number, index, at.CELL_NUMBER] = -1
                continue
            s = situation.number
            for number in situation.operands_of[event]:
                definition = situation.operands[number].definition
                self._note(self.of_situation[s, :, at.ENTERED], index, number, True, definition.threshold, rows)
                overridden = self.of_situation[s, :, at.OVERRIDDEN]
                self._note(overridden, index, number, definition.override is not None, definition.override, rows)
            if situation.local_key.size:
                self.of_situation[s, index, at.CELL_NUMBER] = self._cells(situation.number, event, rows)
            else:
                self.of_situation[s, index, at.CELL_NUMBER] = self.of_lifespan[situation.lifespan, index, at.KEY_NUMBER]
            self._retained(s, event, refs)

    def _retained(self, s: int, event: str, refs: Refs) -> None:
        """Decision 1: kept only if retain is true; removed only if consumption is true."""
        situation = self.group.situations[s]
        rows = of_type(self.store, refs, self.kinds[event])
        for number in situation.operands_of[event]:
            definition = situation.operands[number].definition
            if definition.consumption is not None:
                self.keeps[s, refs] |= np.where(self._mask(definition.consumption, rows), 0, 1 << number)
            else:
                self._note(self.keeps[s], refs, number, definition.retain is not None, definition.retain, rows)

    def _note(self, masks: Any, index: Any, number: int, concerned: bool, tree: Expr | None, rows: FittedRows) -> None:
        if concerned:
            masks[index] |= self._mask(tree, rows).astype(np.int64) << number

    def _mask(self, tree: Expr | None, rows: FittedRows) -> Mask:
        if tree is None or isinstance(tree, Literal):
            return np.full(rows.length, tree is None or tree.value is True)
        self.conditions += rows.length
        self.accesses += rows.length * references(tree)
        return holds(tree, rows)

    def _numbers(self, readers: Sequence[KeyReader], event: str, rows: FittedRows, known: dict[Any, int]) -> Any:
        codes, keys = _coded(readers, event, rows)
        return np.array([*(known.setdefault(key, len(known)) for key in keys), -1], np.int64)[codes]

    def _cells(self, s: int, event: str, rows: FittedRows) -> Any:
        situation = self.group.situations[s]
        codes, keys = _coded([situation.global_key, situation.local_key], event, rows)
        size, known, spans = situation.global_key.size, self.cells[s], self.keys[situation.lifespan]
        cells = [(spans.setdefault(key[:size], len(spans)), key[size:]) for key in keys]
        return np.array([*(known.setdefault(cell, len(known)) for cell in cells), -1], np.int64)[codes]

    def _values(self) -> Any:
        """What conditions across operands compare, as doubles with nan for null; texts as their ranks."""
        columns: list[tuple[Refs, Column]] = []
        for event, tree in self.program.leaves:
            refs = np.flatnonzero(self.types == self.program.events.index(event))
            columns.append((refs, evaluate(tree, of_type(self.store, refs, self.kinds[event]))))
        ranks = {text: float(n) for n, text in enumerate(sorted({t for _, column in columns for t in column.texts}))}
        values = np.full((len(columns), len(self.store)), np.nan)
        for number, (refs, column) in enumerate(columns):
            values[number, refs] = _doubles(column, ranks)
        return values

    # Where everything is in the arrays.

    def _lay_out(self, state: Compact) -> list[tuple[Any, Any]]:
        """Returns the streams: by operand, cells and refs."""
        situations = self.group.situations
        self.key_counts = [max(len(keys), 1) for keys in self.keys]
        self.cell_counts = [
            max(len(self.cells[s.number]), 1) if s.local_key.size else self.key_counts[s.lifespan] for s in situations
        ]
        self.key_base, self.cell_base = _bases(self.key_counts), _bases(self.cell_counts)
        sizes = [self.cell_counts[s.number] for s, _ in self.program.operand_list]
        self.stream_base = _bases(sizes)
        streams: list[tuple[Any, Any]] = []
        starts, filled, position = [], [], 0
        for (situation, number), size, (cells, refs) in zip(self.program.operand_list, sizes, state.streams, strict=True):
            mine = self.of_situation[situation.number]
            new = np.flatnonzero((mine[:, at.ENTERED] >> number) & 1)
            new = new[mine[new, at.CELL_NUMBER] >= 0]
            of_cell = np.concatenate((cells, mine[new, at.CELL_NUMBER]))
            order = np.argsort(of_cell, kind="stable")
            streams.append((of_cell[order], np.concatenate((refs, new + self.first))[order]))
            counts = np.bincount(of_cell, minlength=size)
            starts.append(position + np.concatenate(([0], np.cumsum(counts)[:-1])))
            filled.append(np.bincount(cells, minlength=size))
            position += len(of_cell)
        self.stream = _joined([refs for _, refs in streams])
        self.streams = np.full((len(_joined(starts)), 4), -1, np.int64)
        self.streams[:, at.FROM], self.streams[:, at.FILLED] = _joined(starts), _joined(filled)
        return streams

    def ranks(self) -> Any:
        """The place of each cell in the order of local key values."""
        ranks = np.zeros(sum(self.cell_counts), np.int64)
        for situation in self.group.situations:
            if situation.local_key.size:
                cells = self.cells[situation.number]
                ordered = sorted(cells, key=lambda cell: tuple(key_value(part) for part in cell[1]))
                base = self.cell_base[situation.number]
                ranks[base + np.array([cells[cell] for cell in ordered], np.int64)] = np.arange(len(ordered))
        return ranks


def _coded(readers: Sequence[KeyReader], event: str, rows: FittedRows) -> tuple[Any, list[Key]]:
    names = [name for reader in readers if reader.size for name in reader.attributes[event]]
    if not names:
        return np.zeros(rows.length, np.int64), [()]
    columns = [rows.column(name) or Column(rows.length) for name in names]
    return key_codes(columns)


def _doubles(column: Column, ranks: dict[str, float]) -> Any:
    if column.codes is not None:
        return np.array([*(ranks[text] for text in column.texts), np.nan])[column.codes]
    if column.flags is not None:
        return np.array([0.0, 1.0, np.nan])[column.flags]
    return column.numbers if column.numbers is not None else np.full(len(column), np.nan)


def _bases(counts: Sequence[int]) -> Any:
    return np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate([*parts, np.zeros(0, np.int64)]).astype(np.int64)
