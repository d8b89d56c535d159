"""Many texts looked for at once: an automaton (Aho and Corasick) over the bytes of many values, compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.compiling import compiled

CONTAINS, STARTS, ENDS = 1, 2, 4
ROOM = 1 << 16

Integers = npt.NDArray[np.int32]
Level = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Of one depth: states, their parents, and the letters that lead to them."""


class Search:
    """Finds needles in values; each needle says whether it counts anywhere, at the start or at the end (bits)."""

    def __init__(self, needles: Sequence[tuple[bytes, int]]) -> None:
        self.lengths = np.array([len(needle) for needle, _ in needles], np.int32)
        self.kinds = np.array([kind for _, kind in needles], np.uint8)
        used = sorted({byte for needle, _ in needles for byte in needle})
        self.classes = np.zeros(256, np.int32)
        self.classes[used] = np.arange(1, len(used) + 1)
        self._build([needle for needle, _ in needles], len(used) + 1)

    def _build(self, needles: Sequence[bytes], width: int) -> None:
        """Level by level, all needles at once: those that have come the same way so far are in the same state."""
        order = np.argsort(-self.lengths, kind="stable")  # the longest first, so that those that go on are the first ones
        lengths = self.lengths[order]
        letters = self.classes[np.frombuffer(b"".join(needles[n] for n in order), np.uint8)]
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        states = np.zeros(len(needles), np.int64)
        ends = np.zeros(len(needles), np.int64)
        levels: list[Level] = []
        count = 1
        for depth in range(int(lengths[0])):
            going = int(np.searchsorted(-lengths, -depth, "left"))
            letter = letters[starts[:going] + depth]
            ways, way = np.unique(states[:going] * width + letter, return_inverse=True)
            states = count + way
            levels.append((np.arange(count, count + len(ways)), ways // width, ways % width))
            count += len(ways)
            over = lengths[:going] == depth + 1
            ends[:going][over] = states[over]
        self.out = np.full(count, -1, np.int32)
        self.out[ends] = order
        self._complete(levels, count, width)

    def _complete(self, levels: Sequence[Level], count: int, width: int) -> None:
        """Where a state has no child, it goes on as the longest suffix that is a state does."""
        self.delta = np.zeros((count, width), np.int32)
        self.link = np.zeros(count, np.int32)
        for states, parents, letters in levels:
            self.delta[parents, letters] = states
        fail = np.zeros(count, np.int32)
        own = self.delta.copy()
        for depth, (states, parents, letters) in enumerate(levels):
            if depth:
                fail[states] = self.delta[fail[parents], letters]
            back = fail[states]
            self.delta[states] = np.where(own[states] > 0, own[states], self.delta[back])
            self.link[states] = np.where(self.out[back] >= 0, back, self.link[back])

    def find(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Numbers of values, of the needles in them, and the bits that count, piece by piece. The values stand one behind the
        other; `offsets` tells where each begins, and where the last ends."""
        seen = np.full(len(self.kinds), -1, np.int64)
        room = max(ROOM, 4 * len(self.kinds))  # as much as one value can need
        found = np.empty((3, room), np.int32)
        start = 0
        while start < len(offsets) - 1:
            start, count = _scan(
                data, offsets, start, self.classes, self.delta, self.out, self.link, self.kinds, self.lengths, seen, found
            )
            yield found[0, :count].copy(), found[1, :count].copy(), found[2, :count].copy()


def _scan_values(
    data: Any,
    offsets: Any,
    start: int,
    classes: Any,
    delta: Any,
    out: Any,
    link: Any,
    kinds: Any,
    lengths: Any,
    seen: Any,
    found: Any,
) -> tuple[int, int]:  # fmt: skip
    """From value `start` on, as far as there is room; where to go on, and how much was found."""
    count = 0
    room = found.shape[1]
    for value in range(start, len(offsets) - 1):
        before = count
        first, end = offsets[value], offsets[value + 1]
        state = 0
        for at in range(first, end):
            state = delta[state, classes[data[at]]]
            match = state if out[state] >= 0 else link[state]
            while match > 0:
                needle = out[match]
                kind = kinds[needle]
                bits = 0
                if kind & 1 and seen[needle] != value:
                    bits |= 1
                    seen[needle] = value
                if kind & 2 and at + 1 - first == lengths[needle]:
                    bits |= 2
                if kind & 4 and at + 1 == end:
                    bits |= 4
                if bits:
                    if count == room:
                        for again in range(before, count):
                            seen[found[1, again]] = -1
                        seen[needle] = -1
                        return value, before
                    found[0, count] = value
                    found[1, count] = needle
                    found[2, count] = bits
                    count += 1
                match = link[match]
    return len(offsets) - 1, count


_scan = compiled(_scan_values)
