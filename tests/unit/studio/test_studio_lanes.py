"""Counts by time: whatever the level, they are those that somebody would count by hand."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.studio.lanes import BUCKETS, MOST, OTHERS, lanes_of

INSTANTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5_000)), min_size=1, max_size=60)


def lanes(entries: list[tuple[str, int]], stable: bool = False):
    kinds = list(dict.fromkeys(kind for kind, _ in entries))
    codes = np.array([kinds.index(kind) for kind, _ in entries], np.int32)
    return lanes_of(kinds, codes, np.array([time for _, time in entries], np.int64), stable)


@given(INSTANTS, st.integers(0, 12), st.integers(0, 4))
@settings(max_examples=80, deadline=None)
def test_tiles_count(entries: list[tuple[str, int]], level: int, index: int) -> None:
    made = lanes(entries)
    tile = made.tile(level, index)
    for lane, name in enumerate(made.names):
        for bucket in range(BUCKETS):
            first = (index * BUCKETS + bucket) << level
            assert tile[lane, bucket] == sum(kind == name and first <= time < first + (1 << level) for kind, time in entries)


@given(INSTANTS, st.integers(0, 5_000), st.integers(0, 5_000))
@settings(max_examples=80, deadline=None)
def test_between_is_in_order_and_complete(entries: list[tuple[str, int]], a: int, b: int) -> None:
    first, last = min(a, b), max(a, b)
    found = lanes(entries).between(first, last, 1_000)
    assert found is not None
    times = [entries[n][1] for n in found.tolist()]
    assert times == sorted(time for _, time in entries if first <= time <= last)


def test_too_many_are_not_given() -> None:
    made = lanes([("a", n) for n in range(10)])
    assert made.between(0, 9, 9) is None
    assert made.between(0, 9, 9, frozenset()) is not None


def test_lanes_by_frequency_or_as_they_came() -> None:
    entries = [("b", 1), ("a", 2), ("a", 3)]
    assert lanes(entries).names == ("a", "b")
    assert lanes(entries, stable=True).names == ("b", "a")


def test_rare_types_share_a_lane() -> None:
    entries = [(f"t{n}", n) for n in range(MOST + 5)] + [("often", 1)] * 3
    kinds = list(dict.fromkeys(kind for kind, _ in entries))
    codes = np.array([kinds.index(kind) for kind, _ in entries], np.int32)
    made = lanes_of(kinds, codes, np.array([time for _, time in entries], np.int64))
    assert len(made.names) == MOST
    assert made.names[0] == "often"
    assert made.names[-1] == OTHERS
    assert made.counts.sum() == len(entries)


def test_a_tile_of_a_million_is_counted_at_once() -> None:
    random = np.random.default_rng(1)
    times = random.integers(0, 86_400_000_000, 1_000_000)
    made = lanes_of([f"t{n}" for n in range(20)], random.integers(0, 20, len(times)).astype(np.int32), times)
    made.sort()

    def taken() -> float:
        begun = time.process_time()
        assert made.tile(28, 0).sum() > 0
        return time.process_time() - begun

    assert min(taken() for _ in range(5)) < 0.05
    whole = sum(int(made.tile(28, index).sum()) for index in range((86_400_000_000 >> 36) + 1))
    assert whole == len(times)
