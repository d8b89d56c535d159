"""The questions of benchmarks/peers: rules, Polars and a loop in Python find the same."""

from __future__ import annotations

import pytest

from benchmarks.alternatives import line
from benchmarks.peers.questions import QUESTIONS


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "many"])
def test_all_find_the_same(name: str) -> None:
    assert line(QUESTIONS[name], 20_000, 1)
