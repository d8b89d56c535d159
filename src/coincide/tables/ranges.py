"""A table without PARTITION BY, cut into ranges of time that are matched each on its own (section 12).

Under WITHIN the match from a row depends on rows near it alone. So a range that also reads the rows just before and after its
own finds the matches of all its rows. Which of them are starts depends on AFTER MATCH SKIP, and so on the range before: for each
row at which the scan may enter it, a range tells where the scan leaves it again, how many matches it makes on the way and how far
these come. Scans that meet are one from there on, so that costs little more than one scan. From range to range follows where the
scan really goes; then each range makes its matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.rowpattern.columnar import Segments, rows_around
from coincide.detection.rowpattern.partition import Program
from coincide.detection.rowpattern.registers import Unfit
from coincide.detection.rowpattern.skipping import SKIPS
from coincide.tables.query import TableQuery

Numbers = npt.NDArray[np.int64]
POSITION, TIE = "__position", "__tie"
"""Columns that rows have beside their own: the microsecond by which they are cut, and what orders rows with equal keys: the same
in every range that reads them."""

FIRST, LAST = -(2**63), 2**63 - 1
"""Before and after all positions."""

SLACK = 1000
"""Microseconds: times beyond 2^53 are rounded."""

NONE = np.zeros(0, np.int64)


class Range(NamedTuple):
    """`first` to `last` are the positions of its own rows, `low` to `high` of those that it reads. Does it read the first row of
    the table, and its last?"""

    first: int
    last: int
    low: int
    high: int
    begins: bool
    ends: bool


class Entry(NamedTuple):
    """Where the scan enters a range, counted from its first row; the number of its next match; the row before which all rows lie
    in matches, or before the range."""

    row: int = 0
    number: int = 1
    covered: int = 0


class Ways(NamedTuple):
    """What a range tells: how many rows it has; by the row at which the scan enters it, where the scan leaves it (counted from
    its end; LOST: it stops with an error), the matches on the way, and how far they come."""

    rows: int
    leaves: Numbers
    matches: Numbers
    covered: Numbers


LOST = np.iinfo(np.int64).min


class Neighbours(NamedTuple):
    """Positions of some rows before the first row of each range but the first, and after the last one that a match from each but
    the last can take; both in order."""

    before: list[Numbers]
    after: list[Numbers]


def neighbours(positions: Numbers, cuts: Sequence[int], program: Program) -> Neighbours:
    """Of the rows with these positions: those nearest to the cuts."""
    (back, ahead), within = rows_around(program), program.clause.within or 0
    positions = np.sort(positions)
    before, after = [], []
    for cut in cuts:
        at, beyond = np.searchsorted(positions, [cut, cut + within + SLACK])
        before.append(positions[max(0, at - back - 1) : at])
        after.append(positions[beyond : beyond + ahead])
    return Neighbours(before, after)


def joined(parts: Sequence[Neighbours], program: Program) -> Neighbours:
    """Those of all rows, from those of parts of them."""
    back, ahead = rows_around(program)
    before = [np.sort(np.concatenate(of_cut))[-back - 1 :] for of_cut in zip(*(p.before for p in parts), strict=True)]
    after = [np.sort(np.concatenate(of_cut))[:ahead] for of_cut in zip(*(p.after for p in parts), strict=True)]
    return Neighbours(before, after)


def ranges_of(cuts: Sequence[int], near: Neighbours, program: Program) -> list[Range]:
    """One more than there are cuts; a range begins with its cut."""
    back, ahead = rows_around(program)
    found = []
    for number in range(len(cuts) + 1):
        before = near.before[number - 1] if number else NONE
        after = near.after[number] if number < len(cuts) else NONE
        first, last = (cuts[number - 1] if number else FIRST), (cuts[number] - 1 if number < len(cuts) else LAST)
        begins, ends = len(before) <= back, len(after) < ahead
        low = FIRST if begins else int(before[-back]) if back else first
        found.append(Range(first, last, low, LAST if ends else int(after[-1]), begins, ends))
    return found


def is_walked(program: Program) -> bool:
    """Does it matter to a range what happened before it?"""
    clause = program.clause
    return SKIPS[clause.skip.to].depends or clause.unmatched_rows or program.keeps_number


def entries_of(ways: Sequence[Ways]) -> list[Entry]:
    """Where the scan enters each range; those after one in which it stops are not reached."""
    entries = [Entry()]
    for way in ways[:-1]:
        row, number, covered = entries[-1]
        if row >= way.rows:  # a match before has taken all its rows
            entries.append(Entry(row - way.rows, number, covered - way.rows))
        elif (leaves := int(way.leaves[row])) != LOST:
            reached = max(covered - way.rows, int(way.covered[row]))
            entries.append(Entry(leaves, number + int(way.matches[row]), reached))
        else:
            return entries
    return entries


class RangeScan:
    """Matches the ranges of one query."""

    def __init__(self, query: TableQuery) -> None:
        self.query = query

    def ways(self, table: pa.Table, part: Range) -> Ways | None:
        """Of all that the range reads; None: its values are not for the columns' loop."""
        table, segments, end = self._placed(table, part, Entry())
        first = int(segments.starts[0])
        positions = table.column(POSITION).to_numpy()
        reached = part.first - 1 + (self.query.clause.within or 0)  # no match from before takes a later row
        last = first if part.begins and first == 0 else int(np.searchsorted(positions, reached, side="right"))
        entries = np.arange(first, max(first, min(last, end)) + 1)
        try:
            found = self.query.ways(table, segments, entries, part.ends)
        except Unfit:
            return None
        leaves = np.where(found[:, 0] < 0, LOST, found[:, 0] - end)
        return Ways(end - first, leaves, found[:, 1], found[:, 2] - end)

    def run(self, table: pa.Table, part: Range, entry: Entry, clock: int | None) -> pa.Table:
        """The output rows of the range."""
        table, segments, _ = self._placed(table, part, entry)
        return self.query.scanned(table, segments, part.ends, clock)

    def _placed(self, table: pa.Table, part: Range, entry: Entry) -> tuple[pa.Table, Segments, int]:
        """The rows in order, and the scan at its entry; its own rows end before the number given last."""
        table = self.query.in_order(table, TIE)
        positions = table.column(POSITION).to_numpy()
        first, end = (int(np.searchsorted(positions, *at)) for at in ((part.first, "left"), (part.last, "right")))

        def one(number: int) -> Numbers:
            return np.array([number], np.int64)

        bounds, begins = np.array([0, len(table)], np.int64), np.array([part.begins])
        scan = one(first + entry.row), one(entry.number), one(max(0, first + entry.covered))
        return table, Segments(bounds, *scan, begins, one(end)), end
