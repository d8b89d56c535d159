"""Lists and queues that compiled loops share."""

from __future__ import annotations

import numba
import numpy as np

from coincide.detection.columns.heaps import ENTRY, pop, push
from coincide.detection.columns.linked import put_after, rows_of, take_out
from coincide.detection.columns.records import Numbers, Records, record

ONE, OWNER = record("due before after"), record("first last")
DUES = np.random.default_rng(1).integers(0, 20, 200)


@numba.njit
def emptied(dues: Numbers, heap: Records, found: Numbers) -> None:
    for one in range(len(dues)):
        push(heap, one, dues[one], one, one)
    for one in range(len(dues)):
        found[one] = pop(heap, len(dues) - one)


@numba.njit
def listed(ones: Records, owner: Records, found: Numbers) -> int:
    """By due time; then every third one goes."""
    for one in range(len(ones)):
        before = owner[0].last
        while before >= 0 and ones[before].due > ones[one].due:
            before = ones[before].before
        put_after(rows_of(ones), 1, before, one, rows_of(owner), 0, 0)
    for one in range(0, len(ones), 3):
        take_out(rows_of(ones), 1, one, rows_of(owner), 0, 0)
    one, count = owner[0].first, 0
    while one >= 0:
        found[count] = one
        one, count = ones[one].after, count + 1
    return count


def test_what_is_equally_due_comes_by_number() -> None:
    found = np.zeros(len(DUES), np.int64)
    emptied(DUES, np.zeros(len(DUES), ENTRY), found)
    assert found.tolist() == np.argsort(DUES, kind="stable").tolist()


def test_a_list_that_is_put_in_order() -> None:
    ones, owner, found = np.zeros(len(DUES), ONE), np.full(1, -1, np.int64).repeat(2).view(OWNER), np.zeros(len(DUES), np.int64)
    ones["due"] = DUES
    count = listed(ones, owner, found)
    assert found[:count].tolist() == [one for one in np.argsort(DUES, kind="stable").tolist() if one % 3]
    assert owner[0].last == found[count - 1]
