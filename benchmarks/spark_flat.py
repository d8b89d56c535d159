"""On Spark, do memory and checkpoint stay the same over many micro-batches of a rule whose state is bounded?

A bucket as Spark's workers have it, with its state in memory instead of Spark's store: a thousand keys come and go, in Amit as
lifespans that end, in ECL as machines that go back to their start. Measured are the bytes that are stored, and the memory of the
process beyond those, after every hundred micro-batches. (A log of steps or changes grows up to 64 kB a page before it is folded:
so does what is stored.)"""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from benchmarks.snapshots import AMIT, batch
from coincide.engines.spark.bucket import Arrived, Bucket
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.packing import to_bytes
from coincide.engines.spark.timing import BELIEVED
from coincide.engines.spark.worker import Task, sources_of
from coincide.rulebook import Rulebook, loads

sys.path.append(str(Path(__file__).parents[1] / "tests/spark"))
FIELDS = ("hi", "lo", "type", "id", ".k")
PAGES, KEYS, MICRO_BATCHES = 8, 1_000, 500
RULES = {
    "amit": AMIT.replace("2592000000", "5000"),
    "ecl": "monitor m by k = repeat { push(paid) { sequential { order, payment } } }",
}


def arrived(kinds: np.ndarray, keys: np.ndarray, second: int) -> Arrived:
    """Orders and payments of some keys, one a key."""
    parts = []
    for kind in np.unique(kinds).tolist():
        own = keys[kinds == kind]
        table = batch(kind, own, second).table
        columns = {"hi": pa.array(table.hi), "lo": pa.array(table.lo), **{name: table.fields[name] for name in ("type", "id")}}
        parts.append(pa.table(columns | {".k": table.fields["k"], "page": pa.array(own % PAGES, pa.int32())}))
    now = second * 1_000_000
    return Arrived([(now, now, len(keys))], [to_bytes(pa.concat_tables(parts))], firsts=[now])


class Stream:
    """Micro-batches of random keys."""

    def __init__(self, rules: Rulebook, tier: str = "kernel") -> None:
        from support import Memory

        members = tuple(d.order for d in rules.detectors)
        self.task = Task(sources_of(rules), members, tier, Layout(FIELDS), Outputs(()))
        self.store, self._random, self._second = Memory(), np.random.default_rng(1), 0

    def take(self, events: int) -> None:
        self._second += 1
        keys = self._random.choice(KEYS, events, replace=False)
        kinds = self._random.choice(["order", "payment"], events)
        Bucket(self.task, BELIEVED, True, Division([], 1, PAGES), self.store).advance(arrived(kinds, keys, self._second))

    @property
    def stored(self) -> int:
        return sum(map(len, self.store.data.values()))


def main(micro_batches: int = MICRO_BATCHES) -> None:
    for language, text in RULES.items():
        stream, figures = Stream(loads(text, language)), {}
        peaks: list[int] = []
        for number in range(1, micro_batches + 1):
            stream.take(KEYS // 2)
            peaks.append(stream.stored)
            if number % (micro_batches // 5) == 0:
                gc.collect()
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                peak = max(peaks[-micro_batches // 5 :])
                figures[f"after {number} micro-batches"] = f"{peak / 1e6:.2f} MB stored at most, {memory:,.0f} MB of memory"
        half = micro_batches // 2
        ratio = max(peaks[half:]) / max(peaks[:half])
        show(f"A bounded rule in {language} on Spark", figures, f"stored, second half / first half: {ratio:.2f} (about 1)")


if __name__ == "__main__":
    main()
