"""Which rows many definitions read."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from coincide.detection.columns import asking
from coincide.detection.columns.asking import Answer, Asking
from coincide.detection.columns.known import KnownKeys
from coincide.model.batch import EventBatch
from coincide.model.column import Column
from coincide.model.event import primitive


def test_what_several_ask_of_a_row_is_tried_once() -> None:
    """Who tries it relies on rows that ascend, each once."""
    asking = Asking([[("a", "even")], [("a", "even"), ("a", None)], [("b", "even")]])
    kinds, tried = Column(4, codes=np.array([0, 0, 1, 0], np.int32), texts=("a", "b")), list[list[int]]()

    def holds(test: object, rows: np.ndarray) -> np.ndarray:
        tried.append(rows.tolist())
        return rows % 2 == 0

    answer = asking.of(kinds, holds)
    assert tried == [[0, 1, 2, 3]]
    found = zip(answer.rows.tolist(), answer.whose.tolist(), answer.bits.tolist(), strict=True)
    assert [*found] == [(0, 0, 1), (0, 1, 3), (1, 1, 2), (2, 2, 1), (3, 1, 2)]


def test_rows_are_cut_where_many_definitions_read_them() -> None:
    asked = Asking([[("a", None)]] * 3 + [[("b", None)]])
    events = [primitive(kind, n, n, str(n), {}) for n, kind in enumerate("abacaa")]
    with patch.object(asking, "AT_ONCE", 4):
        parts = [*asked.cut(EventBatch(events).table)]
    assert [[event.type for event in part.events()] for part in parts] == [["a"], ["b", "a", "c"], ["a"], ["a"]]
    assert [len(part) for part in asked.cut(EventBatch(events).table)] == [6]


def test_keys_that_wait_for_nothing_are_left_out() -> None:
    """Definition 0 opens something for x and has opened something for y; definition 1 has nothing, but is shown x and null."""
    answer = Answer(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1]), np.array([1, 1, 1, 1, 1]))
    opens = np.array([True, False, False, False, False])
    known = KnownKeys()
    known.put([(0.0, "y")], np.array([7]))
    numbers, keys = answer.keyed(np.array([0, 1, -1]), [("x",), ("y",)], opens, known)
    assert keys == [(0, "x"), (0, "y")]
    assert numbers.tolist() == [0, -1, 1, -1, -1]
