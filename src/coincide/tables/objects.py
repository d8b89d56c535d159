"""Matching over objects, for queries that the columns' loop does not do: rows as events without an envelope."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coincide.detection.rowpattern.columnar import Matches, Rows, Segments
from coincide.detection.rowpattern.loop import MATCHED, TIMED_OUT, UNMATCHED
from coincide.detection.rowpattern.measures import Match
from coincide.detection.rowpattern.output import Output
from coincide.detection.rowpattern.partition import Partition, Program
from coincide.expr.scalar import ENVELOPE_FIELDS
from coincide.expr.tree import Expr, Reference, transform
from coincide.lang.matchrecognize.definition import Query
from coincide.model.column import Column
from coincide.model.event import Event
from coincide.syntax import walk

COLUMN = "column "
"""Before the name of a column that is called like a field of every event, which it is not here."""


def without_envelope(query: Query) -> Query:
    """The query with conditions that do not mistake columns for fields of the envelope."""

    def rewrite(node: Expr) -> Expr:
        named_so = isinstance(node, Reference) and node.name in ENVELOPE_FIELDS
        return replace(node, name=COLUMN + node.name) if named_so and isinstance(node, Reference) else node

    conditions = tuple(replace(c, test=transform(c.test, rewrite)) for c in query.clause.conditions)
    return replace(query, clause=replace(query.clause, conditions=conditions))


class _Recorder:
    """In place of an output: what was found, and where."""

    def __init__(self, output: Output) -> None:
        self.made: list[list[int]] = []
        self.states: list[int] = []
        self.asks = output.asks
        self._unmatched = output.clause.unmatched_rows
        self.base = 0

    def make(self, match: Match, key: Any, cause: Any) -> None:
        kind = TIMED_OUT if match.timed_out else MATCHED
        self._record(kind, self.base + match.start, match.states, match.number or -1)

    def make_unmatched(self, row: Event, key: Any, cause: Any) -> None:
        if self._unmatched:
            self._record(UNMATCHED, row.lo, [], -1)

    def _record(self, kind: int, start: int, states: Any, number: int) -> None:
        self.made.append([kind, start, len(states), number, 0, 0, 0, 0])
        self.states.extend(states)


def found_by_objects(program: Program, rows: Rows, segments: Segments, closed: bool, passed: int) -> Matches:
    """The matches that are decided. The number of a row is its `lo`, its time the `hi`."""
    trees = [test.tree for test in program.conditions.tests if test is not None]
    names = {node.name for tree in trees for node in walk(tree) if isinstance(node, Reference)}
    columns = {name: rows.columns[name.removeprefix(COLUMN)] for name in names}
    recorder = _Recorder(program.output)
    output, program.output = program.output, recorder  # type: ignore[assignment]
    try:
        for segment in range(len(segments.bounds) - 1):
            low = int(segments.bounds[segment])
            base = 0 if segments.begins[segment] else 1  # whether there are rows before matters, not how many
            recorder.base = low - base
            partition = _partition(program, rows, columns, segments, segment, base, closed)
            program.scan(partition, None, passed)  # type: ignore[arg-type]
            segments.starts[segment] = low + partition.start - base
            segments.numbers[segment] = partition.number
            segments.covered[segment] = low + partition.covered - base
    finally:
        program.output = output
    made = np.array(recorder.made, np.int64).reshape(-1, 8)
    return Matches(made, np.array(recorder.states, np.int32), np.concatenate(([0], np.cumsum(made[:, 2]))))


@dataclass
class _Part(Partition):
    """Its starts lie before `end`."""

    end: int = 0

    @property
    def pending(self) -> Event | None:
        return self.row(self.start) if self.start < self.end else None


def _partition(
    program: Program, rows: Rows, columns: dict[str, Column], segments: Segments, segment: int, base: int, closed: bool
) -> Partition:
    low, high = int(segments.bounds[segment]), int(segments.bounds[segment + 1])
    events = []
    for row in range(low, high):
        values = {name: column.value(row) for name, column in columns.items()}
        events.append(Event("", row, int(rows.times[row]), str(row + 1), values, ()))
    no_key = ((False, None),) * len(program.clause.partition)
    start, covered = (int(at[segment]) - low + base for at in (segments.starts, segments.covered))
    end = high if segments.ends is None else int(segments.ends[segment])
    return _Part(no_key, events, base, start, int(segments.numbers[segment]), covered, closed, end=end - low + base)
