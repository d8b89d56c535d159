"""The questions of benchmarks/peers: rules, Polars and a loop in Python find the same."""

from __future__ import annotations

import pytest

from benchmarks.alternatives import line
from benchmarks.peers.questions import QUESTIONS
from benchmarks.peers.workload import stream


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "many"])
def test_all_find_the_same(name: str) -> None:
    assert line(QUESTIONS[name], 20_000, 1)


def test_a_stream_of_few_keys_has_an_end() -> None:
    """No more events have one time than there are keys for them."""
    events = stream(2_000, keys=4).events
    assert len({*zip(events["time"].to_pylist(), events["k"].to_pylist(), strict=True)}) == 2_000
