"""One partition: its rows, and the scan over them (section 4, "The scan")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from coincide.detection.base import Detector
from coincide.detection.eventwise import Cause
from coincide.detection.rowpattern.automaton import Automaton
from coincide.detection.rowpattern.conditions import Conditions
from coincide.detection.rowpattern.expressions import row_field
from coincide.detection.rowpattern.measures import Match, Measures
from coincide.detection.rowpattern.output import Columns, Output
from coincide.detection.rowpattern.search import STEPS, Failed, Found, Search, Searching
from coincide.detection.rowpattern.skipping import SKIPS
from coincide.lang.matchrecognize.definition import Anchor, Clause, MatchFact, Query
from coincide.model.compound import Several
from coincide.model.event import Event, Value
from coincide.syntax import walk

Key = tuple[tuple[bool, Value], ...]
"""Values of the PARTITION BY columns; true is not 1."""


@dataclass
class Partition:
    """`rows` are those from number `base` on; `start` is the row whose match is sought."""

    key: Key
    rows: list[Event] = field(default_factory=list)
    base: int = 0
    start: int = 0
    number: int = 1
    covered: int = 0  # rows before this one lie in a match
    closed: bool = False
    search: Search | None = None
    found: Found | None = None  # its outcome, while NEXT in measures asks for rows
    timer: int | None = None  # the start for which a timer is set
    failed: Failed = field(default_factory=set)

    @property
    def count(self) -> int:
        return self.base + len(self.rows)

    def row(self, number: int) -> Event:
        return self.rows[number - self.base]

    @property
    def pending(self) -> Event | None:
        """The row whose match is undecided."""
        return self.row(self.start) if self.start < self.count else None


class Program:
    """A query, compiled."""

    def __init__(self, detector: Detector, steps: int = STEPS) -> None:
        self.query: Query = detector.definition
        self.clause: Clause = self.query.clause
        self.order = detector.order
        self.conditions = Conditions(self.clause)
        self.measures = Measures(self.clause)
        self.searching = Searching(self.clause, Automaton(self.clause.pattern, self.clause.variables), self.conditions, steps)
        self.output = Output(self.query, self.measures, self.order)
        self._key_fields = [row_field(column.name) for column in self.clause.partition]
        self._key_names = [column.name for column in self.clause.partition]

    @cached_property
    def back(self) -> int:
        """So many rows before the pending start are kept."""
        return max(self.conditions.back, self.measures.back)

    @cached_property
    def keeps_number(self) -> bool:
        trees = [*self.measures.trees.values(), *(t.tree for t in self.conditions.tests if t is not None)]
        return any(isinstance(n, MatchFact) and n.function == "MATCH_NUMBER" for t in trees for n in walk(t))

    @cached_property
    def keeps_beginning(self) -> bool:
        return any(isinstance(node, Anchor) and not node.end for node in walk(self.clause.pattern))

    @cached_property
    def remembers(self) -> bool:
        """Is there something that a partition keeps while it has no undecided row?"""
        return bool(self.back or self.keeps_number or self.keeps_beginning)

    def forgets(self, partition: Partition) -> bool:
        """Is there nothing that the partition must remember?"""
        return partition.start >= partition.count and not self.remembers

    def key_of(self, row: Event) -> Key:
        return tuple(key_part(read(row)) for read in self._key_fields)

    def key_columns(self, key: Key) -> Columns:
        return {name: value for name, (_, value) in zip(self._key_names, key, strict=True)}

    # The scan

    def scan(self, partition: Partition, cause: Cause, passed: int) -> None:
        """Make all that is decided. `passed` is how far the clock of the table has come: no row with such a time is to come."""
        while (row := partition.pending) is not None:
            found = partition.found or self._searched(partition, row, passed)
            if found is None or not self._settled(partition, found, row, cause):
                return
            partition.search = partition.found = None
            self._forget_rows(partition)

    def _searched(self, partition: Partition, row: Event, passed: int) -> Found | None:
        if partition.search is None:
            failed = partition.failed if self.searching.shares_failures else set()
            partition.search = Search(self.searching, partition.start, partition.number, failed)
        within = self.clause.within
        return partition.search.go_on(partition, within is not None and row.hi + within <= passed)

    def _settled(self, partition: Partition, found: Found, row: Event, cause: Cause) -> bool:
        """Make what was found and go on to the next start; False if its measures ask for rows that are not there."""
        start = partition.start
        if found.states is None:
            if not self._made_of_none(partition, found, row, cause):
                return False
            partition.start += 1
            return True
        match = self._match(partition, found.states, partition.number)
        if not self._can_be_made(partition, match, found):
            return False
        after = start + 1 if not match.labels else SKIPS[self.clause.skip.to].next_start(self.clause, match)
        self.output.make(match, self.key_columns(partition.key), cause)
        partition.number += 1
        partition.start = after
        partition.covered = max(partition.covered, match.end, start + 1)
        self._forget_failures(partition, found.states, start)
        return True

    def _made_of_none(self, partition: Partition, found: Found, row: Event, cause: Cause) -> bool:
        if found.cut is not None and self.clause.timed_out:
            match = self._match(partition, found.cut, None, timed_out=True)
            if not self._can_be_made(partition, match, found):
                return False
            self.output.make(match, self.key_columns(partition.key), cause)
        elif partition.start >= partition.covered:
            self.output.make_unmatched(row, self.key_columns(partition.key), cause)
        return True

    def _can_be_made(self, partition: Partition, match: Match, found: Found) -> bool:
        there = partition.closed or self.output.asks(match) < partition.count
        partition.found = None if there else found
        return there

    def _match(self, partition: Partition, states: Sequence[int], number: int | None, timed_out: bool = False) -> Match:
        return Match(partition, partition.start, states, self.searching.automaton, number, timed_out)

    def _forget_failures(self, partition: Partition, states: Sequence[int], start: int) -> None:
        """What led to the match did not fail."""
        partition.failed.difference_update((state, start + n) for n, state in enumerate(states))
        if partition.start == start + len(states):
            partition.failed.clear()

    def _forget_rows(self, partition: Partition) -> None:
        """Rows before those that may still be read; a few more stay, so that rows do not move one by one."""
        gone = partition.start - self.back - partition.base
        if gone > 0 and (gone >= 64 or partition.start >= partition.count):
            del partition.rows[:gone]
            partition.base += gone
        if len(partition.failed) > 100_000:
            partition.failed = {key for key in partition.failed if key[1] >= partition.start}


def key_part(value: Value) -> tuple[bool, Value]:
    return isinstance(value, bool), plain(value)


def plain(value: Value) -> Value:
    """A list counts as null."""
    return None if isinstance(value, Several) else value
