"""On Spark, does a micro-batch that touches a thousand keys cost the same whatever is open?

    python -m benchmarks.spark_pages [LANGUAGE …]

A bucket as Spark's workers have it, with its state in memory instead of Spark's store: every key has something open (Amit's
lifespans wait for what is absent, the others have a beginning), and each micro-batch goes on with a thousand of them. What is
measured are micro-batches; those of two workers that take turns, each of which has missed what the other did; the first two of a
worker that has just started, and those that follow, with other keys: what they take at first, and the dearest of many, in which
whole pages are read."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from benchmarks.snapshots import RULES, SIZES, TOUCHED, batch, timed
from coincide.engines.spark import pages
from coincide.engines.spark.bucket import Arrived, Bucket
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.packing import to_bytes
from coincide.engines.spark.timing import BELIEVED
from coincide.engines.spark.worker import Task, sources_of
from coincide.rulebook import loads

sys.path.append(str(Path(__file__).parents[1] / "tests/spark"))
FIELDS = ("hi", "lo", "type", "id", ".k")
PAGES = 8
TIMES = 5
MANY = 25
MONITOR = "monitor m by k = repeat { push(refunded) { sequential { order, payment, refund } } }"
LANGUAGES = RULES | {"ecl": MONITOR}


def arrived(kind: str, keys: np.ndarray, second: int) -> Arrived:
    table = batch(kind, keys, second).table
    columns = {"hi": pa.array(table.hi), "lo": pa.array(table.lo), **{name: table.fields[name] for name in ("type", "id")}}
    columns |= {".k": table.fields["k"], "page": pa.array(keys % PAGES, pa.int32())}
    now = second * 1_000_000
    return Arrived([(now, now, 1)], [to_bytes(pa.table(columns))], firsts=[now])


def bucket_of(language: str) -> tuple[Any, Callable[[str, np.ndarray, int], None]]:
    """The store of a bucket, and what gives it a micro-batch of events of one type at this second."""
    from support import Memory

    rules = loads(LANGUAGES[language], language)
    keyed = tuple(d.order for d in rules.detectors if d.partition)  # rules of single events keep no state
    task = Task(sources_of(rules), keyed, "kernel", Layout(FIELDS), Outputs(()))
    store = Memory()

    def take(kind: str, keys: np.ndarray, second: int) -> None:
        Bucket(task, BELIEVED, True, Division(["k"], 1, PAGES), store).advance(arrived(kind, keys, second))

    return store, take


def taking_turns(touch: Callable[[int], None], first: int) -> list[float]:
    """Milliseconds of CPU where each of two workers holds the state as it was before the other had its turn."""
    workers, large = [pages.MEMORY, pages._Memory()], pages.LARGE
    pages.LARGE = 2**62  # no portions: the other reads the whole
    times = []
    for second in range(first, first + TIMES):
        pages.MEMORY = workers[(first - second) % 2]
        times.append(timed(lambda second=second: touch(second)))
    pages.MEMORY, pages.LARGE = workers[0], large
    return times[2:]


def measured(language: str, size: int) -> tuple[float, float, float, float, float, int]:
    """Milliseconds of CPU of two micro-batches, of those of workers that take turns, of the first of a worker that has just
    started, of those that follow, and of the dearest of these; bytes that are stored for them."""
    pages.MEMORY.forget()
    (store, take), random = bucket_of(language), np.random.default_rng(1)

    def touch(second: int) -> None:
        keys = random.choice(size, TOUCHED, replace=False)
        take("payment", keys, 2 * second)
        take("order", keys, 2 * second + 1)

    take("order", np.arange(size), 1)
    touch(1)
    times = [timed(lambda second=second: touch(second)) for second in range(2, 2 + TIMES)]
    turns = taking_turns(touch, 2 + TIMES)
    pages.MEMORY.forget()
    before = {name: len(data) for name, data in store.data.items()}
    now = 2 + 2 * TIMES
    cold = timed(lambda: touch(now))
    more = sum(len(data) for name, data in store.data.items() if name not in before)
    later = [timed(lambda second=second: touch(second)) for second in range(now + 1, now + 1 + MANY)]
    return statistics.median(times), statistics.median(turns), cold, statistics.median(later[:TIMES]), max(later), more


def question(language: str, sizes: tuple[int, ...]) -> None:
    measured(language, TOUCHED)  # compiled and warm
    rows = {size: measured(language, size) for size in sizes}
    figures = {}
    for size, (warm, turns, cold, later, dearest, stored) in rows.items():
        figures[f"{size:,} open: two micro-batches of {TOUCHED:,} events; taking turns"] = (
            f"{warm:,.0f} ms, {stored:,} bytes; {turns:,.0f} ms"
        )
        figures[f"  {size:,}: in a worker that has just started; then"] = (
            f"{cold:,.0f} ms; {later:,.0f} ms, once {dearest:,.0f} ms"
        )
    warm, turns, cold, later = (rows[sizes[-1]][n] / rows[sizes[1]][n] for n in range(4))
    ratios = f"{warm:.2f}, taking turns {turns:.2f}, just started {cold:.2f}, then {later:.2f}"
    aim = f"{sizes[-1]:,} open / {sizes[1]:,}: {ratios} (at most 1.5)"
    show(f"State on Spark of a rule in {language}", figures, aim)


def main(languages: tuple[str, ...] = (*LANGUAGES,), sizes: tuple[int, ...] = SIZES) -> None:
    for language in languages:
        question(language, sizes)


if __name__ == "__main__":
    main(*([tuple(sys.argv[1:])] if sys.argv[1:] else []))
