"""Rows by when they are due: what a look at all of them would find."""

from __future__ import annotations

import random

import numpy as np
import pytest

from coincide.detection.columns.dues import NEVER, Dues, TableDues
from coincide.detection.columns.tables import Shape, Table

WAITS = Shape("waits", "due")


@pytest.mark.parametrize("seed", range(5))
def test_what_is_due(seed: int) -> None:
    rng, queue, known = random.Random(seed), Dues(), dict[int, int]()
    for _ in range(300):
        rows = rng.sample(range(200), rng.randrange(1, 20))
        due = [rng.choice([NEVER, rng.randrange(1000)]) for _ in rows]
        queue.note(np.array(rows), np.array(due))
        known.update(zip(rows, due, strict=True))
        instant = rng.randrange(1200)
        assert queue.first() == min(known.values())
        assert queue.before(instant).tolist() == sorted(row for row, due in known.items() if due < instant)
    assert sum(map(len, queue.lots)) <= 3 * len(known)


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_a_table(seed: int) -> None:
    """Added, changed, freed and numbered anew, in one epoch or in several."""
    rng, table = random.Random(seed), Table(WAITS)
    queue = TableDues(table, lambda rows: table.rows[rows, WAITS.columns.due])
    for _ in range(200):
        new = table.add(rng.randrange(6))
        live = table.live()
        some = live[np.array([rng.random() < 0.2 for _ in live], np.bool_)]
        for rows in (new, some):
            table.rows[rows, WAITS.columns.due] = [rng.randrange(1000) for _ in rows]
            table.touch(rows)
        table.free(live[np.array([rng.random() < 0.1 for _ in live], np.bool_)])
        what = rng.random()
        if what < 0.2:
            queue.next_epoch()
        elif what < 0.3:
            table.next_epoch()
        elif what < 0.4:
            table.keep(table.live()[::-1])
        live, instant = table.live(), rng.randrange(1000)
        due = table.rows[live, WAITS.columns.due]
        if rng.random() < 0.7:
            assert queue.now().first() == due.min(initial=NEVER)
            assert queue.now().before(instant).tolist() == live[due < instant].tolist()
