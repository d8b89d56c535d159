"""`python -m benchmarks [NAME …]`: all questions, or those named; `soak` and `live` take options, too."""

from __future__ import annotations

import importlib
import sys

QUESTIONS = (
    "startup",
    "reading",
    "ambiguity",
    "tiers",
    "monitor_kernel",
    "many_monitors",
    "many_rules",
    "many_sigma",
    "many_eql",
    "eql_sequences",
    "sigma_sqlite",
    "workload_k",
    "late_events",
    "alternatives",
    "single_events",
    "live",
    "amit_worlds",
    "snapshots",
    "memory",
    "timers",
    "spark_pages",
    "spark_flat",
    "spark_sizes",
    "spark_open",
    "spark_cold",
    "ranges",
    "cdl_visit",
    "cdl_joins",
    "ecco_windows",
    "match_recognize",
    "spark_batch",
)


def main(names: list[str]) -> int:
    if names[:1] in (["soak"], ["live"]):
        importlib.import_module(f"benchmarks.{names[0]}").main(names[1:])
        return 0
    unknown = [name for name in names if name not in QUESTIONS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are: {', '.join(QUESTIONS)}", file=sys.stderr)
        return 2
    for name in names or QUESTIONS:
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
