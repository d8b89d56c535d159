"""Spark's process that forks Python workers, after it has imported what all of them need: a worker is there at once, and what it
does after each task, collecting garbage, need not look at the half of the heap that they share."""

from __future__ import annotations

import gc
from importlib import import_module

from pyspark import daemon

from coincide.languages.registry import MODULES

WORKERS = ("pyspark.worker", "coincide.engines.spark.stateful", "coincide.engines.spark.worker")

for name in ("pandas", "numba", *WORKERS, *MODULES.values()):
    import_module(name)
gc.collect()
gc.freeze()

if __name__ == "__main__":
    daemon.manager()
