"""On Spark, what does a match that is open cost: memory of a worker, bytes of a checkpoint; and an event, of a core's time?

    python -m benchmarks.spark_sizes [LANGUAGE …]

Every key has something open (rules of `snapshots`), in a bucket as Spark's workers have it; then each gets one more event.
A process for each language, so that memory is its own. Reading, shuffling and Spark's own store are not in it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import show
from benchmarks.snapshots import timed
from benchmarks.spark_pages import LANGUAGES, arrived, bucket_of

OPEN = 50_000


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measured(language: str, answer: Any) -> None:
    consumed(bucket_of(language)[1], "order", np.arange(1000), 1)  # compiled and warm
    store, take = bucket_of(language)
    keys = np.arange(OPEN)
    arrived("order", keys, 1)  # what events themselves take is not the state's
    before = resident()
    first = timed(lambda: consumed(take, "order", keys, 1))
    memory = resident() - before
    stored = sum(map(len, store.data.values()))
    second = timed(lambda: consumed(take, "payment", keys, 3))
    answer.send((memory / OPEN, stored / OPEN, 2 * OPEN / (first + second) * 1000))


def consumed(take: Callable[[str, np.ndarray, int], None], kind: str, keys: np.ndarray, second: int) -> None:
    """Events wait until the clock has passed them."""
    take(kind, keys, second)
    take("tick", keys[:1], second + 1)


def question(language: str) -> None:
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=measured, args=(language, sending))
    process.start()
    memory, stored, events = receiving.recv()
    process.join()
    show(
        f"One open match of a rule in {language}",
        {
            "memory of the worker": f"{memory:,.0f} bytes",
            "in the checkpoint": f"{stored:,.0f} bytes",
            "events for each second of a core": f"{events:,.0f}",
        },
    )


def main(languages: tuple[str, ...] = (*LANGUAGES,)) -> None:
    for language in languages:
        question(language)


if __name__ == "__main__":
    main(*([tuple(sys.argv[1:])] if sys.argv[1:] else []))
