"""A batch on a machine that has compiled no kernel yet, twice: what does the first million rows take, and what the second?

    python -m benchmarks.spark_cold

Two workers, a rule of each kind; Spark's own start is not in it, workers' is. The same again after `coincide warm`, as images of
machines do it. Kernels are kept in a folder of this run's own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import show
from benchmarks.spark_batch import ONE, TIMED, detecting, write_events
from coincide import spark as on_spark
from coincide.rulebook import loads

ROWS, KEYS = 1_000_000, 10_000
WARM = "import sys; from coincide.cli.main import entry; sys.argv[1:] = ['warm']; entry()"
RULES = {"a monitor": (ONE, "ecl"), "with timers (Opera)": (TIMED, "ce")}


def main() -> None:
    for label in RULES:
        figures = {}
        for state in ("nothing compiled", "after coincide warm"):
            with tempfile.TemporaryDirectory() as cache:
                environment = {**os.environ, "XDG_CACHE_HOME": cache}
                if state != "nothing compiled":
                    subprocess.run([sys.executable, "-c", WARM], env=environment, check=True, capture_output=True)
                command = [sys.executable, "-m", "benchmarks.spark_cold", label]
                done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                figures[state] = done.stdout.strip()
        show(f"{ROWS:,} rows on two workers, {label}: the first time; the second", figures)


def measured(label: str) -> str:
    spark = on_spark.session("benchmark", "local[2]", spark__driver__memory="2g")
    with tempfile.TemporaryDirectory() as name:
        write_events(Path(name), ROWS, KEYS)
        frame, times = spark.read.parquet(name), []
        frame.groupBy("type").count().collect()  # Spark itself has begun
        for _ in range(2):
            begun = time.perf_counter()
            detecting(frame, loads(*RULES[label])).collect()
            times.append(time.perf_counter() - begun)
    spark.stop()
    return "; ".join(f"{seconds:.1f} s" for seconds in times)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(measured(sys.argv[1]))
    else:
        main()
