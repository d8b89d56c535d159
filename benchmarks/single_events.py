"""What does it cost to give an engine one event at a time, against the same events in one batch?"""

from __future__ import annotations

from typing import Any

from benchmarks.measure import best, show
from coincide import Engine, Rulebook, loads

EVENTS = 5_000
RULES = {
    "ECL": ("monitor pairs by door = repeat { push(pair) { sequential { open, close } } }", "ecl"),
    "Opera": ("detect Pair = [open(door = ?d)] ; [close(door = ?d)]", "opera"),
    "ECCO": ("detect pair per door = (open ; close) within 1s with recent", "ecco"),
    "50 rules, each of other types": (
        "\n".join(f"detect d{n} per door = (open-{n} ; close-{n}) within 1s" for n in range(49))
        + "\ndetect pair per door = (open ; close) within 1s with recent",
        "ecco",
    ),
}


def main() -> None:
    records = [{"type": ("open", "close")[n // 20 % 2], "time": n * 10, "door": f"d{n % 20}"} for n in range(EVENTS)]
    figures: dict[str, str] = {}
    for name, (text, language) in RULES.items():
        book = loads(text, language)
        whole, found = best(lambda book=book: len(Engine(book, "interpreter").process(records)))  # type: ignore[misc]
        single, one_by_one = best(lambda book=book: _one_by_one(book, records))  # type: ignore[misc]
        assert found == one_by_one > 0
        figures[name] = f"{EVENTS / single:,.0f} events/s"
        figures[f"{name}, as one batch"] = f"{EVENTS / whole:,.0f} events/s"
        figures[f"{name}, ratio"] = f"{single / whole:.2f}"
    show("Single events through Engine.process, CPU time, best of 5", figures, "38,000 events/s (ECL), ratio below 3")


def _one_by_one(book: Rulebook, records: list[dict[str, Any]]) -> int:
    engine = Engine(book)
    return sum(len(engine.process(record)) for record in records)


if __name__ == "__main__":
    main()
