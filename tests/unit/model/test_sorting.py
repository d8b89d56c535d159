"""Orders and ranks of whole numbers, against NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from coincide.detection.columns.keys import key_codes
from coincide.model.column import Column
from coincide.model.sorting import first_rows, stable_order, without_gaps

SMALL, WIDE = st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)
MILLISECONDS = st.integers(-(2**63) // 1000 + 1, 2**63 // 1000).map(lambda n: 1000 * n)
numbers = st.one_of(*(st.lists(some, max_size=20) for some in (SMALL, WIDE, MILLISECONDS)))


def whole(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


@given(st.lists(st.tuples(SMALL, st.one_of(SMALL, WIDE)), max_size=20))
def test_equal_rows_stay_as_they_are(pairs: list[tuple[int, int]]) -> None:
    first, second = (whole([pair[n] for pair in pairs]) for n in (0, 1))
    assert stable_order(first, second).tolist() == np.lexsort((first, second)).tolist()


@given(numbers)
def test_any_numbers_are_sorted(values: list[int]) -> None:
    assert stable_order(whole(values)).tolist() == np.argsort(whole(values), kind="stable").tolist()


@given(st.one_of(*(st.lists(st.integers(0, n), max_size=20) for n in (5, 10_000, 2**40))), st.integers(0, 3))
def test_ranks_have_no_gaps(values: list[int], more: int) -> None:
    distinct, ranks = np.unique(whole(values), return_inverse=True)
    found, count = without_gaps(whole(values), max(values, default=-1) + 1 + more)
    assert (found.tolist(), count) == (ranks.tolist(), len(distinct))
    assert first_rows(found, count).tolist() == np.unique(whole(values), return_index=True)[1].tolist()


UNUSUAL: list[Any] = [None, 0.0, -0.0, 0.5, 1.0, 2.0**40, 2.0**53 + 2, -(2.0**60), float("inf")]


@given(st.lists(st.tuples(st.sampled_from(UNUSUAL), st.sampled_from([None, 1.0, 7e11])), max_size=12))
def test_equal_keys_have_equal_numbers(rows: list[tuple[Any, Any]]) -> None:
    columns = [Column(len(rows), numbers=np.array([row[n] for row in rows], np.float64)) for n in (0, 1)]
    codes, keys = key_codes(columns)
    assert [None if code < 0 else keys[code] for code in codes.tolist()] == [None if None in row else row for row in rows]
    assert len(set(keys)) == len(keys)
