"""Events that are too far in the future."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.engines.ahead import DAY, FOREVER, Guard

NOW = 1_800_000_000_000_000
GUARD = Guard()


def limit(instants: list[int], clock: int | None = None, wall: int | None = NOW) -> int:
    return GUARD.limit(GUARD.runs(np.array(instants, np.int64), wall), wall, clock)


def test_beyond_the_others() -> None:
    """History: what is far from the median, not what is far from the first event of a long stretch."""
    month = [hour * DAY // 24 for hour in range(720)]
    assert limit(month) == month[-1]
    assert limit([*month, month[-1] + 3 * DAY]) == month[-1]
    assert limit([0, 5, 10, 40 * DAY]) == 10
    assert limit([0, 40 * DAY, 40 * DAY + 1]) == 40 * DAY + 1
    assert limit([0, 1, 2, 9 * DAY, 40 * DAY], clock=9 * DAY - 5) == 9 * DAY, "most of it is late, but time goes on"


def test_beyond_the_wall_clock() -> None:
    assert limit([NOW - 5, NOW, NOW + 3 * DAY]) == NOW + DAY
    assert limit([NOW + 3 * DAY], clock=NOW - 60) == NOW + DAY, "alone in its micro-batch"
    assert limit([NOW + DAY - 5, NOW + DAY + 5], clock=NOW) == NOW + DAY
    assert limit([NOW + 3 * DAY], clock=0) == NOW + DAY, "history does not jump there, either"
    assert limit([NOW + 9 * DAY, NOW + 10 * DAY], clock=NOW + 8 * DAY) == NOW + 10 * DAY, "simulated time may be there"
    assert limit([5, 9 * DAY], wall=None) == 5
    assert limit([]) == FOREVER


@settings(max_examples=60)
@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 9 * DAY), min_size=1), st.integers(1, 4), st.integers(0, 2**32))
def test_tasks_together_see_what_one_would(instants: list[int], tasks: int, seed: int) -> None:
    random.Random(seed).shuffle(instants)
    whole = GUARD.runs(np.array(instants, np.int64), 3 * DAY)
    parts = [np.array(instants[task::tasks], np.int64) for task in range(tasks)]
    assert GUARD.joined([run for part in parts for run in GUARD.runs(part, 3 * DAY)], 3 * DAY) == whole
