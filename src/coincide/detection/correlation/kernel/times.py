"""Time events in the join tier. They follow from the messages that set them: when each is due, and whether that is over. So none
is kept; those that are over stand among the messages of a step as rows of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.detection.columns.places import caused_places
from coincide.detection.columns.store import joined
from coincide.detection.correlation.interpreter import FARTHEST
from coincide.detection.correlation.kernel.chunks import Chunk
from coincide.detection.correlation.kernel.rows import Gathered, Messages, Numbers, Scope, clocks, typed
from coincide.detection.correlation.kernel.trees import Trees
from coincide.detection.correlation.live import PLACE, TRIGGER, Links
from coincide.model.bounds import FURTHEST
from coincide.model.column import Column
from coincide.model.event import Place, caused, timer_place
from coincide.model.stamp import MILLISECOND
from coincide.model.table import EventTable, ForeignPlaces, LazyPlaces, Origins

NOT_SET = -FURTHEST
"""When a time event is due that a message does not set."""


def dues(trees: Trees, time: int, messages: Messages) -> Numbers:
    """When the time events are due that messages set, in microseconds."""
    source = trees.program.sources[time]
    scope = Scope(trees, {source.trigger: Gathered(messages, np.arange(len(messages)))}, len(messages), {})
    value, now = scope.evaluate(trees.dues[time]), clocks(messages.table)[messages.rows]
    numbers = (value if source.is_relative else typed(value, "time_t", cut=False)).numbers
    if numbers is None:
        return np.full(len(messages), NOT_SET)
    after = np.rint(numbers * MILLISECOND)
    there = np.abs(after) <= FARTHEST  # and a number
    due = np.where(there, after, 0).astype(np.int64) + (now if source.is_relative else 0)
    return np.where(there & (due >= now) & (due <= FARTHEST), due, NOT_SET)


@dataclass(frozen=True, eq=False)
class Setting:
    """The time events that messages of a source set: by time event, when they are due and as which of their message's."""

    due: dict[int, Numbers]
    number: dict[int, Numbers]


def settings(trees: Trees, source: int, messages: Messages) -> Setting:
    due, number, count = {}, {}, np.zeros(len(messages), np.int64)
    for time in trees.program.sources[source].triggers:
        due[time] = dues(trees, time, messages)
        number[time] = count.copy()
        count += due[time] > NOT_SET
    return Setting(due, number)


@dataclass(frozen=True, eq=False)
class Moments:
    """The messages of a step with time events among them. For each row of the table: which row of the batch it is, which row has
    set it and as which number (-1: none), and how many time events it sets itself."""

    table: EventTable
    messages: list[Messages]
    batch_rows: Numbers
    setter: Numbers
    number: Numbers
    sets: Numbers

    def placed(self, made: EventTable, batch: EventTable, rows: Numbers, ranks: Numbers, order: int) -> EventTable:
        """Detections with the places of what rows lead to: after the time events that these set."""
        ranks, by_time = ranks + self.sets[rows], self.setter[rows] >= 0
        if not by_time.any():
            causes, orders = self.batch_rows[rows], np.full(len(rows), order)
            return replace(made, given_places=LazyPlaces(lambda: caused_places(batch, causes, orders, ranks)))
        matrix = self.table.place_rows(rows)[:, :3] + (0, 0, 1)
        matrix[:, 1] = -1

        def place(number: int) -> Place:
            return caused(self.place(int(rows[number]), order), order, int(ranks[number]))

        return replace(made, given_places=matrix, foreign_places=ForeignPlaces(len(rows), place))

    def place(self, row: int, order: int) -> Place:
        setter = int(self.setter[row])
        if setter < 0:
            return self.table.place_tuple(row)
        return timer_place(int(self.table.hi[row]), self.table.place_tuple(setter), order, int(self.number[row]))


def moments(trees: Trees, working: Chunk, batch_rows: Numbers, until: int) -> Moments:
    """With the time events that are due before an instant."""
    size = len(working)
    sets, none = np.zeros(size, np.int64), np.full(size, -1)
    if not trees.dues:
        return Moments(working.table, working.messages, batch_rows, none, none, sets)
    over: list[tuple[int, Numbers, Numbers, Numbers]] = []  # time event, due, setter, number
    for source, messages in enumerate(working.messages):
        setting = settings(trees, source, messages)
        for time, due in setting.due.items():
            sets[messages.rows] += due > NOT_SET
            there = np.flatnonzero((due > NOT_SET) & (due < until))
            over.append((time, due[there], messages.rows[there], setting.number[time][there]))
    return _merged(working, batch_rows, sets, over)


def _merged(working: Chunk, batch_rows: Numbers, sets: Numbers, over: list[tuple[int, Numbers, Numbers, Numbers]]) -> Moments:
    size = len(working)
    due, setter, number = (np.concatenate([one[part] for one in over]) for part in (1, 2, 3))
    time = np.repeat([one[0] for one in over], [len(one[1]) for one in over])
    is_time = np.repeat((False, True), (size, len(due)))
    instants = np.concatenate((working.table.place_matrix()[:, 0] if size else due[:0], due))
    numbers = np.concatenate((np.zeros(size, np.int64), number))
    order = np.lexsort((numbers, np.concatenate((np.arange(size), setter)), is_time, instants))
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    table = joined([working.table, _rows(working.table, due)]).take(order) if len(due) else working.table
    messages = [_moved(table, some, where) for some in working.messages]
    for number_ in dict.fromkeys(one[0] for one in over):
        own = np.sort(where[size + np.flatnonzero(time == number_)])
        set_by = where[np.concatenate((np.full(size, -1), setter))[order[own]]]
        messages[number_] = Messages(table, own, {TRIGGER: Column(len(own), set_by.astype(np.float64))})

    def spread(of_rows: Numbers, of_times: Numbers) -> Numbers:
        found: Numbers = np.concatenate((of_rows, of_times))[order]
        return found

    nothing, rest = np.full(size, -1), np.full(len(due), -1)
    set_by = spread(nothing, where[setter])
    return Moments(table, messages, spread(batch_rows, rest), set_by, spread(nothing, number), spread(sets, 0 * due))


def _rows(like: EventTable, due: Numbers) -> EventTable:
    """Time events: they have no field, and nothing is under them."""
    fields: dict[str, Any] = {name: pa.nulls(len(due), array.type) for name, array in like.fields.items()}
    places = np.column_stack((due, np.full(len(due), -1), np.zeros(len(due), np.int64)))
    none = np.zeros(0, np.int64)
    return EventTable(
        due, due, fields, 0, places, Origins(none, none, pa.nulls(0, pa.string()), np.zeros(len(due) + 1, np.int64))
    )


def _moved(table: EventTable, some: Messages, where: Numbers) -> Messages:
    rows = where[some.rows]
    return Messages(table, rows, {**some.columns, PLACE: Column(len(rows), rows.astype(np.float64))})


def both_ways(links: Links) -> Links:
    """With the way back from a time event to what has set it."""
    found = {source: list(some) for source, some in links.items()}
    for source, some in links.items():
        for own, other, name in some:
            if own == TRIGGER:
                found.setdefault(other, []).append((name, source, own))
    return {source: tuple(some) for source, some in found.items()}
