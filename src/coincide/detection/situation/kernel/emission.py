"""From what the compiled loop recorded to detections, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.detection.columns.tables import numbered
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.folds import FOLDS, fill_latest, folded, sort
from coincide.detection.situation.kernel.rows import Prepared
from coincide.detection.situation.kernel.store import Gathered
from coincide.detection.situation.program import SituationProgram
from coincide.detection.situation.scope import AGGREGATE, AGGREGATE_FUNCTIONS
from coincide.detection.situation.state import key_value
from coincide.expr.tree import Alias, Call, Expr, Reference, transform
from coincide.expr.vector import Rows, Table, evaluate_joined, milliseconds_of
from coincide.lang.amit.functions import AGGREGATES
from coincide.lang.amit.names import GLOBAL_KEY, INITIATOR, LOCAL_KEY, NOW, OPERAND, TERMINATOR
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import Column, column_of, concatenated
from coincide.model.event import Place, caused, timer_place
from coincide.model.stamp import order_key
from coincide.model.table import EventTable, ForeignPlaces, LazyPlaces, Origins


def detections(prepared: Prepared, made: Any, selected: Any) -> EventBatch:
    """Detections stand in the order made, which is that of their places."""
    if not len(made):
        return EMPTY
    emission = _Emission(prepared, made, selected)
    now = made[:, at.MADE.now]
    origins = emission.origins()
    if not made[:, at.MADE.by_timer].any():
        return EventBatch(
            table=EventTable(now, now, emission.fields(), 0, LazyPlaces(emission.places), origins, None, emission.hidden)
        )
    foreign = ForeignPlaces(len(made), emission.place)
    places = LazyPlaces(emission.generations)
    return EventBatch(table=EventTable(now, now, emission.fields(), 0, places, origins, foreign, emission.hidden))


class _Emission:
    def __init__(self, prepared: Prepared, made: Any, selected: Any) -> None:
        self.prepared = prepared
        self.store = prepared.store
        self.group = prepared.group
        self.made = made
        self.selected = selected
        self.offsets = np.append(made[:, at.MADE.chosen], len(selected))
        self.whose, self.told = prepared.whose(made), prepared.program.told
        self.orders = self.told.orders[self.whose]

    @property
    def hidden(self) -> Any:
        """Internal situations are fed to others, not reported (AMIT-50)."""
        return self.told.internal[self.whose] if self.told.internal.any() else None

    # Places.

    @cached_property
    def ranks(self) -> Any:
        """Each detection's number among those of its situation at its cause."""
        key = self.made[:, at.MADE.cause_number] * len(self.group.situations) + self.made[:, at.MADE.situation]
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
        begin = np.maximum.accumulate(np.where(first, np.arange(len(key)), 0))
        ranks = np.empty(len(key), np.int64)
        ranks[order] = np.arange(len(key)) - begin
        return ranks

    def places(self) -> Any:
        """The place of the cause, one generation on, with (definition, rank) at the end of the path."""
        cause = self._places_of_causes()
        generation = cause[:, 2]
        width = max(cause.shape[1], 3 + 2 * (int(generation.max()) + 1))
        places = np.full((len(cause), width), -1, np.int64, order="F")
        places[:, : cause.shape[1]] = cause
        here = np.arange(len(cause))
        places[here, 3 + 2 * generation] = self.orders
        places[here, 4 + 2 * generation] = self.ranks
        places[:, 2] += 1
        return places

    def _places_of_causes(self) -> Any:
        used, index = numbered(self.made[:, at.MADE.cause_ref], len(self.store))
        return self.store.places(used)[index]

    def generations(self) -> Any:
        """All that plain numbers can tell of places with timers in them."""
        generation = np.where(self.made[:, at.MADE.by_timer] > 0, 0, self._places_of_causes()[:, 2])
        return np.stack((self.made[:, at.MADE.now], np.full(len(self.made), -1), generation + 1), axis=1)

    def place(self, number: int) -> Place:
        row, numbers = self.made[number].tolist(), self._numbers_of_causes[number]
        cause: Place = (numbers[0], 0, numbers[1], *numbers[2 : 3 + 2 * numbers[2]])
        situation = self.group.situations[row[at.MADE.situation]]
        if row[at.MADE.by_timer] == at.BY_TICK:
            cause = self.prepared.state.ticks.place(situation, cause, row[at.MADE.now], row[at.MADE.timer_number])
        elif row[at.MADE.by_timer]:
            set_by = self.orders[number] if row[at.MADE.by_timer] == at.BY_PASSING else self.told.lifespans[self.whose[number]]
            cause = timer_place(row[at.MADE.now], cause, int(set_by), row[at.MADE.timer_number])
        return caused(cause, int(self.orders[number]), int(self.ranks[number]))

    @cached_property
    def _numbers_of_causes(self) -> list[list[int]]:
        """Whoever asks for one place asks for others."""
        numbers: list[list[int]] = self._places_of_causes().tolist()
        return numbers

    # Origins.

    def origins(self) -> Origins:
        """The primitive events under the selected candidates, in total order, without repeats."""
        used, index = numbered(self.selected[:, 1], len(self.store))
        below = self.store.origins(used)
        assert below.offsets is not None
        starts, sizes = below.offsets[index], np.diff(below.offsets)[index]
        ends = np.cumsum(sizes)
        flat = np.repeat(starts - ends + sizes, sizes) + np.arange(int(ends[-1]) if len(ends) else 0)
        offsets = np.concatenate(([0], ends))[self.offsets]
        flat, offsets = _ordered(below, flat, offsets)
        return Origins(below.lo[flat], below.hi[flat], below.ids.take(pa.array(flat)), offsets)

    # Attributes.

    def fields(self) -> dict[str, pa.Array]:
        fields = {"type": pa.DictionaryArray.from_arrays(pa.array(self.whose.astype(np.int32)), self.told.names)}
        constants = self.prepared.program.told_constants
        attributes = [{a.name: a.expression for a in s.resolved.situation.attributes} for s in self.group.situations]
        where = [np.flatnonzero(self.made[:, at.MADE.situation] == s) for s in range(len(attributes))]
        slots = [_Slots(self, s, rows) for s, rows in zip(self.group.situations, where, strict=True)]
        back = np.empty(len(self.made), np.int64)
        back[np.concatenate(where)] = np.arange(len(self.made))
        for name in dict.fromkeys(name for some in attributes for name in some):
            if name in constants:
                fields[name] = constants[name].take(self.whose).to_arrow()
                continue
            pieces = [slots[s].evaluate(some.get(name)) for s, some in enumerate(attributes)]
            column = concatenated(pieces)
            fields[name] = (column if len(pieces) == 1 else column.take(back)).to_arrow()
        return fields


class _Slots:
    """What the expressions of one situation see, over all its detections."""

    def __init__(self, emission: _Emission, situation: SituationProgram, rows: Any) -> None:
        self.emission = emission
        self.prepared = emission.prepared
        self.situation = situation
        self.rows = rows
        self.made = emission.made if len(rows) == len(emission.made) else emission.made[rows]
        self.aggregates: dict[str, Column] = {}

    def evaluate(self, tree: Expr | None) -> Column:
        size = len(self.rows)
        if tree is None or not size:
            return Column(size)
        tree = transform(tree, self._without_aggregates)
        return evaluate_joined(tree, _Lookup(self.slot), size)

    def slot(self, alias: str | None) -> Rows | None:
        if alias == AGGREGATE:
            return Table(len(self.rows), self.aggregates)
        if alias == NOW:
            return Table(len(self.rows), {"time": Column(len(self.rows), numbers=milliseconds_of(self.made[:, at.MADE.now]))})
        if alias in (LOCAL_KEY, GLOBAL_KEY):
            return self._key(alias == LOCAL_KEY)
        assert alias is not None
        if alias.startswith(OPERAND):
            operand = int(alias.removeprefix(OPERAND))
            return self._events(self._latest(operand), self.situation.operands[operand].event)
        starts = alias.startswith(INITIATOR)
        roles: Sequence[Any] = self._roles(starts)
        label = alias.removeprefix(INITIATOR if starts else TERMINATOR)
        numbers = [n for n, role in enumerate(roles) if (role.alias or role.event) == label]
        which, refs = (at.MADE.initiator, at.MADE.opened_by) if starts else (at.MADE.terminator, at.MADE.ended_by)
        chosen = np.isin(self.made[:, which], numbers)
        return self._events(np.where(chosen, self.made[:, refs], -1), roles[numbers[0]].event)

    def _roles(self, starts: bool) -> Sequence[Any]:
        lifespan = self.situation.resolved.lifespan
        return lifespan.initiators if starts else lifespan.terminators

    def _events(self, refs: Any, event: str) -> Rows:
        return Gathered(self.prepared.store, refs, self.prepared.kinds[event])

    def _latest(self, operand: int) -> Any:
        """The latest selected candidate of an operand in each detection; -1: none."""
        refs = np.full(len(self.rows), -1, np.int64)
        fill_latest(self.emission.selected, self.emission.offsets, self.rows, operand, refs)
        return refs

    def _key(self, local: bool) -> Rows:
        s = self.situation
        state = self.prepared.state
        cells, index = numbered(self.made[:, at.MADE.cell], len(state.cells))
        names = [state.cells.values[cell] for cell in cells.tolist()]
        if not local or not s.local_key.size:
            names = state.names(state.cells.rows[cells, at.CELL.key])
        columns = {str(n): column_of([key_value(key[n]) for key in names]).take(index) for n in range(len(names[0]))}
        return Table(len(self.rows), columns)

    def _without_aggregates(self, node: Expr) -> Expr:
        if not isinstance(node, Call) or node.name not in AGGREGATES:
            return node
        name = str(len(self.aggregates))
        self.aggregates[name] = self._aggregate(node)
        return Reference(name, AGGREGATE)

    def _aggregate(self, call: Call) -> Column:
        """Exactly as the interpreter adds up: value by value, oldest first."""
        if call.name == "total":
            return self._total()
        argument = call.arguments[0]
        slot = argument.name if isinstance(argument, Alias) else argument.alias if isinstance(argument, Reference) else None
        assert slot is not None
        operand = int(slot.removeprefix(OPERAND))
        refs, offsets = self._selected(operand)
        if not isinstance(argument, Reference):
            values = Column(len(refs), numbers=np.ones(len(refs)))
        else:
            values = self._events(refs, self.situation.operands[operand].event).column(argument.name) or Column(len(refs))
        if call.name in FOLDS and values.codes is None and values.flags is None and values.rests is None:
            numbers = np.full(len(refs), np.nan) if values.numbers is None else values.numbers
            return Column(len(self.rows), numbers=folded(FOLDS.index(call.name), numbers, offsets))
        plain = [values.value(n) for n in range(len(refs))]
        meaning = AGGREGATE_FUNCTIONS[call.name]
        return column_of([meaning([v for v in plain[a:b] if v is not None]) for a, b in pairwise(offsets.tolist())])

    def _selected(self, operand: int) -> tuple[Any, Any]:
        """The candidates of an operand in all detections, and where those of each begin."""
        starts, ends = self.emission.offsets[self.rows], self.emission.offsets[self.rows + 1]
        sizes = ends - starts
        stops = np.cumsum(sizes)
        entries = np.repeat(starts - stops + sizes, sizes) + np.arange(int(sizes.sum()))
        own = self.emission.selected[entries, 0] == operand
        return self.emission.selected[entries[own], 1], np.concatenate(([0], np.cumsum(own)))[np.concatenate(([0], stops))]

    def _total(self) -> Column:
        emission, operands = self.emission, self.situation.operator.operands
        weights = np.zeros(1 + max(len(s.operands) for s in emission.group.situations), np.int64)
        weights[: len(operands)] = [o.weight if o.counted else 0 for o in operands]
        sums = np.concatenate(([0], np.cumsum(weights[emission.selected[:, 0]])))
        totals = sums[emission.offsets[self.rows + 1]] - sums[emission.offsets[self.rows]]
        return Column(len(self.rows), numbers=totals.astype(np.float64))


class _Lookup(dict[str | None, Rows]):
    """Slots by alias, made when they are asked for."""

    def __init__(self, make: Callable[[str | None], Rows | None]) -> None:
        super().__init__()
        self.make = make

    def get(self, alias: str | None, default: Any = None) -> Any:
        if alias not in self:
            made = self.make(alias)
            if made is None:
                return default
            self[alias] = made
        return self[alias]


def _ordered(below: Origins, flat: Any, offsets: Any) -> tuple[Any, Any]:
    """Each detection's primitive events by hi; where that does not tell two apart, by their whole order."""
    unclear = sort(below.hi, flat, offsets)
    if not unclear.any():
        return flat, offsets
    ids = below.ids.cast(pa.string())
    lists = np.split(flat, offsets[1:-1])
    for number in np.flatnonzero(unclear).tolist():
        by_key = {order_key(int(below.lo[n]), int(below.hi[n]), ids[n].as_py()): n for n in lists[number].tolist()}
        lists[number] = np.array([by_key[key] for key in sorted(by_key)], np.int64)
    sizes = [len(some) for some in lists]
    return np.concatenate(lists).astype(np.int64), np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
