"""Workload K: for every t0 the first t1 after it with the same key and then the first t2 after that, within 10 s of the t0.

Each t0 is in one match at most; several may share their t1 and t2. An event exactly 10 s after the t0 still counts. No two events
of one key have the same time, so that nobody's order of equal times matters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

KEYS, TYPES = 1_000, 8
WITHIN = 10_000  # milliseconds

Match = tuple[int, int, int]
"""The ids of its three events."""

AMIT = """\
<amit>
  <event name="t0"><eventAttribute name="k" type="string"/></event>
  <event name="t1"><eventAttribute name="k" type="string"/></event>
  <event name="t2"><eventAttribute name="k" type="string"/></event>
  <lifespan name="within">
    <initiator><eventInitiator event="t0" correlate="add"/></initiator>
    <terminator><expirationInterval timeInterval="10 s"/></terminator>
    <keyBy attribute="k"/>
  </lifespan>
  <situation name="m" lifespan="within">
    <sequence repeatMode="once"><operandSequence event="t1"/><operandSequence event="t2"/></sequence>
    <situationAttribute name="a" type="string" expression="t0.id"/>
  </situation>
</amit>
"""
OPERA = "detect m = ([t0(k = ?x)], [t1(k = ?x)] [t2(k = ?x)]) T = 10s\n"


@dataclass(frozen=True)
class Stream:
    """Events in order of time; ids are 1, 2, …"""

    times: np.ndarray
    types: np.ndarray
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def head(self, events: int) -> Stream:
        return Stream(self.times[:events], self.types[:events], self.keys[:events])

    def write(self, path: Path, header: bool = True) -> None:
        rows = zip(self.types.tolist(), self.times.tolist(), self.keys.tolist(), strict=True)
        lines = (f"t{kind},{time},{number},k{key}\n" for number, (kind, time, key) in enumerate(rows, 1))
        with path.open("w", encoding="ascii") as file:
            file.write("type,time,id,k\n" if header else "")
            file.writelines(lines)


def stream(events: int, seed: int = 1) -> Stream:
    random = np.random.default_rng(seed)
    times = np.cumsum(random.integers(0, 3, events)).astype(np.int64)  # one millisecond apart in the mean
    keys = random.integers(0, KEYS, events)
    while len(twice := _repeated(times, keys)):
        keys[twice] = random.integers(0, KEYS, len(twice))
    return Stream(times, random.integers(0, TYPES, events), keys)


def _repeated(times: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Events that have time and key of an earlier one."""
    _, firsts = np.unique(times * KEYS + keys, return_index=True)
    return np.setdiff1d(np.arange(len(times)), firsts)


def matches(given: Stream) -> set[Match]:
    """By the definition, key by key: what everybody must find."""
    waiting: dict[int, list[tuple[int, int, int]]] = {}  # key -> time and id of t0, id of t1 or 0
    found = set()
    rows = zip(given.times.tolist(), given.types.tolist(), given.keys.tolist(), strict=True)
    for number, (time, kind, key) in enumerate(rows, 1):
        if kind > 2:
            continue
        open_ = [w for w in waiting.get(key, ()) if time - w[0] <= WITHIN]
        if kind == 0:
            open_.append((time, number, 0))
        elif kind == 1:
            open_ = [(begun, a, b or number) for begun, a, b in open_]
        else:
            found |= {(a, b, number) for _, a, b in open_ if b}
            open_ = [w for w in open_ if not w[2]]
        waiting[key] = open_
    return found
