"""When rows are due, as a queue: what is due next, and what is due before an instant, without a look at the rest.

A lot is what was noted at once, by time. Lots grow by merging, so that there are never many. Of a row that has been noted anew
since, the old entry is passed over, and dropped when its lot is merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from coincide.detection.columns.tables import CHANGED, CHANGES, FREE, IN_USE, NOW, UNASKED, Numbers, Table, distinct, longer

NEVER = 2**63 - 1


@dataclass
class Lot:
    due: Numbers
    rows: Numbers
    begin: int = 0  # those before are passed over

    def __len__(self) -> int:
        return len(self.due) - self.begin


@dataclass
class Dues:
    of: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))  # by row: when it is due
    lots: list[Lot] = field(default_factory=list)

    def note(self, rows: Numbers, due: Numbers) -> None:
        """From now on these rows, each of which is there once, are due then, or never."""
        if not len(rows):
            return
        self.of = longer(self.of, int(rows.max()) + 1, NEVER)
        due = np.minimum(due, NEVER)
        other = self.of[rows] != due
        self.of[rows] = due
        new = other & (due < NEVER)
        if new.any():
            self._add(due[new], rows[new])

    def first(self) -> int:
        """When something is due next, or never."""
        return min((int(lot.due[lot.begin]) for lot in self.lots if self._pass_over(lot)), default=NEVER)

    def before(self, instant: int) -> Numbers:
        """The rows that are due before, in order. They stay until they are noted anew."""
        found = [self._before(lot, instant) for lot in self.lots if self._pass_over(lot)]
        return distinct(np.concatenate([np.zeros(0, np.int64), *found]))

    def _before(self, lot: Lot, instant: int) -> Numbers:
        here = slice(lot.begin, int(np.searchsorted(lot.due, instant)))
        found: Numbers = lot.rows[here][self.of[lot.rows[here]] == lot.due[here]]
        return found

    def _pass_over(self, lot: Lot) -> bool:
        """What has been noted anew; is there anything left?"""
        size = 64
        while len(lot):
            here = slice(lot.begin, lot.begin + size)
            valid = np.flatnonzero(self.of[lot.rows[here]] == lot.due[here])
            lot.begin += int(valid[0]) if len(valid) else min(size, len(lot))
            if len(valid):
                return True
            size *= 2
        return False

    def _add(self, due: Numbers, rows: Numbers) -> None:
        order = np.argsort(due, kind="stable")
        lots = [lot for lot in self.lots if len(lot)]
        lots.append(Lot(due[order], rows[order]))
        while len(lots) > 1 and 2 * len(lots[-1]) >= len(lots[-2]):
            last = lots.pop()
            lots[-1] = self._merged(lots[-1], last)
        self.lots = lots

    def _merged(self, *lots: Lot) -> Lot:
        """Without what has been noted anew, and each entry once."""
        due = np.concatenate([lot.due[lot.begin :] for lot in lots])
        rows = np.concatenate([lot.rows[lot.begin :] for lot in lots])
        order = np.lexsort((rows, due))
        due, rows = due[order], rows[order]
        again = (np.diff(due, prepend=due[:1] - 1) == 0) & (np.diff(rows, prepend=rows[:1] - 1) == 0)
        current = np.flatnonzero((self.of[rows] == due) & ~again)
        return Lot(due[current], rows[current])


class TableDues:
    """When rows of a table are due, by what it lists as changed; where it lists nothing, or most rows, all are looked at."""

    def __init__(self, table: Table, due: Callable[[Numbers], Numbers]) -> None:
        self.table, self._due = table, due
        self._queue, self._known = Dues(), (0, 0)

    def now(self) -> Dues:
        """As the rows are at present."""
        table, head = self.table, self.table.head
        known = int(head[NOW]), table.renewals
        if known[1] != self._known[1]:
            self._queue = Dues()
        few = known == self._known and head[NOW] != UNASKED and 4 * head[CHANGES] < len(table)
        rows = table.rows[: head[CHANGES], CHANGED] if few else np.arange(len(table))
        there = table.rows[rows, FREE] == IN_USE
        self._queue.note(rows[~there], np.full(len(rows) - int(there.sum()), NEVER))
        self._queue.note(rows[there], self._due(rows[there]))
        self._known = known
        return self._queue

    def next_epoch(self) -> None:
        """Of the table: what has changed until now is not listed then."""
        self.now()
        self.table.next_epoch()
        self._known = int(self.table.head[NOW]), self.table.renewals
