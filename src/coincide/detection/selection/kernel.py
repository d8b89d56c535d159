"""Rules over columns: tests by distinct value, sets of rows; correlations see the rows that matched, one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coincide.detection.base import Clock
from coincide.detection.columns.rowsets import Rows
from coincide.detection.columns.tables import distinct
from coincide.detection.selection.interpreter import correlate
from coincide.detection.selection.program import Program, Simple
from coincide.detection.selection.rowset import Matches, Rules
from coincide.detection.selection.state import SelectionState
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event
from coincide.model.table import EventTable

ENVELOPE = ("type", "id", "source")


class Kernel:
    """Steps a program. `shown` are the attributes that detections and correlations read of events that match."""

    def __init__(self, program: Program, shown: frozenset[str]) -> None:
        self.program = program
        self.shown = shown
        self._rules = Rules(program)

    def step(self, state: SelectionState, batch: EventBatch, clock: Clock) -> tuple[SelectionState, EventBatch]:
        if not len(batch):
            return state, EMPTY
        table = batch.table
        matches = Matches(self._rules, table)
        found = [(rule, rows) for n, rule in enumerate(self.program.simple) if len(rows := matches.of_rule(n))]
        if not found:
            return state, EMPTY
        every = distinct(np.concatenate([rows for _, rows in found]))
        rules_at: dict[int, list[Simple]] = {}
        for rule, rows in found:
            for row in rows.tolist():
                rules_at.setdefault(row, []).append(rule)
        made: list[Event] = []
        for row, event in zip(every.tolist(), self._events(table, every), strict=True):
            self._show(state, event, rules_at[row], made)
        made.sort(key=lambda event: event.place)
        return state, EventBatch(made)

    def _show(self, state: SelectionState, event: Event, rules: list[Simple], made: list[Event]) -> None:
        made += [rule.detection(event) for rule in rules if rule.order is not None]
        referred = {rule.name for rule in rules if rule.referred}
        if referred:
            correlate(self.program, state, event, referred, made)

    def _events(self, table: EventTable, rows: Rows) -> list[Event]:
        """The rows as objects that have no more than is read of them."""
        names = [name for name in table.fields if name in self.shown or name in ENVELOPE]
        return replace(table, fields={name: table.fields[name] for name in names}, _columns={}).take(rows).events()
