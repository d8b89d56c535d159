"""Keys by number (columns/known.py): as a dict of Python's has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide.detection.columns.keys import Keys, key_codes
from coincide.detection.columns.known import KeyedTable, KnownKeys
from coincide.detection.columns.tables import KEYED, Shape
from coincide.detection.keys import Key
from coincide.model.column import column_of

parts = st.one_of(
    st.sampled_from(["", "a", "1", "ü", "x" * 40, "y" * 300]),
    st.sampled_from([0.0, -0.0, 1.0, 1, -1, 0.5, 2.0**53, 2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**63 - 1]),
    st.sampled_from([(True,), (False,), None]),
)
keys = st.lists(st.lists(parts, max_size=3).map(tuple), unique=True, max_size=12)
steps = st.lists(st.tuples(st.sampled_from(["add", "remove", "keep"]), keys), max_size=12)


def numbered(known: KnownKeys) -> dict[Key, int]:
    return dict(zip(known, known.numbers().tolist(), strict=True))


@given(steps)
def test_keys_have_the_numbers_that_a_dict_gives_them(told: list[tuple[str, list[Key]]]) -> None:
    known, expected, free = KnownKeys(), dict[Key, int](), [*range(1_000)]
    for what, some in told:
        assert known.of(some).tolist() == [expected.get(key, -1) for key in some]
        there = [expected[key] for key in some if key in expected]
        if what == "add":
            new = [key for key in some if key not in expected]
            expected.update((key, free.pop()) for key in new)
            numbers = np.array([expected[key] for key in new], np.int64)
            found, added = known.with_keys(some, lambda count, own=numbers: own[:count])  # type: ignore[misc]
            assert found.tolist() == [expected[key] for key in some]
            assert added.tolist() == numbers.tolist()
        elif what == "remove":
            known.remove(np.array(there, np.int64))
            expected = {key: number for key, number in expected.items() if number not in there}
            free += there
        else:
            known.keep(np.array(there, np.int64))
            names = {number: key for key, number in expected.items()}
            expected = {names[old]: new for new, old in enumerate(there)}
            free = [*range(len(there), 1_000)]
        assert numbered(known) == expected
        assert len(known) == len(expected)


@given(st.lists(st.tuples(*[st.one_of(st.text(max_size=3), st.booleans(), st.sampled_from([0.0, -0.0, 1.0, 2**60 + 1]))] * 2)))
def test_keys_of_columns_are_those_of_values(rows: list[tuple[Any, Any]]) -> None:
    if not rows:
        return
    codes, of_columns = key_codes([column_of([row[part] for row in rows]) for part in range(2)])
    assert isinstance(of_columns, Keys)
    known = KnownKeys()
    numbers, _ = known.with_keys(of_columns, np.arange)
    wrapped = [tuple((v,) if isinstance(v, bool) else v for v in row) for row in rows]
    assert known.of(wrapped).tolist() == numbers[codes].tolist()


def test_many_keys_that_come_and_go_take_no_more_room() -> None:
    known = KnownKeys()
    for turn in range(200):
        known.with_keys([(f"{turn} {n}",) for n in range(500)], np.arange)
        assert known.of([(f"{turn} 7",), (f"{turn - 1} 7",)]).tolist() == [7, -1]
        known.remove(np.arange(500))
    assert not len(known)
    assert len(known._data) < 1 << 18
    assert len(known._entries) <= 1 << 12


@pytest.mark.parametrize("prefixed", [False, True])
def test_a_table_forgets_keys_with_their_rows(prefixed: bool) -> None:
    table = KeyedTable(Shape("keys", "", valued=True, use=KEYED), prefixed=prefixed)
    rows, new = table.with_keys([(1.0, "a"), (1.0, "b"), (2.0, "a")])
    assert rows.tolist() == new.tolist() == [0, 1, 2]
    table.free(rows[:1])
    assert table.with_keys([(2.0, "a"), (1.0, "a"), (3.0, "c")])[0].tolist() == [2, 0, 3]
    table.keep(np.array([2, 3]))
    assert table.known.of([(2.0, "a"), (3.0, "c"), (1.0, "b")]).tolist() == [0, 1, -1]
    assert table.values_at(np.array([1])) == [("c",) if prefixed else (3.0, "c")]
