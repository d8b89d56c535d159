"""Which rows many definitions read."""

from __future__ import annotations

import numpy as np

from coincide.detection.columns.asking import Asking
from coincide.model.column import Column


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
