"""How fast is a keyed sequence of EQL (runs, until, wildcards in any case, maxspan) over a million events: event by event, with
tests over columns, and compiled? And what do a hundred such rules cost over one stream?"""

from __future__ import annotations

from typing import Any

from benchmarks.measure import best, show
from coincide import loads
from coincide.detection.sequence.plan import SequencePlan
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import Rulebook

EVENTS, USERS, PROGRAMS, RULES = 1_000_000, 10_000, 500, 100
FEW = 50_000
"""Of the interpreter, which would take minutes."""

RULE = r"""// @name lateral{number}
sequence by user.name with maxspan=1h
  [authentication where event.outcome == "failure"] with runs=3
  [authentication where event.outcome == "success"]
  [process where process.executable : "*\\program{number}?.exe"]
until [network where process.executable : "*\\PROGRAM49?.exe"]"""

OWN = r"""// @name own{number}
sequence by user.name with maxspan=1h
  [authentication where event.outcome == "failure" and process.executable : "*\\program{number}?.exe"]
  [process where process.executable : ("*\\program{number}?.exe", "*\\program{number}.exe")]
  [network where process.executable : "*\\program{number}*.exe"]"""
"""As in published packs: hardly any item is that of another rule, and few events are one."""


def events(count: int) -> EventTable:
    import numpy as np
    import pyarrow as pa

    dice = np.random.default_rng(1)

    def drawn(values: list[str], codes: Any) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(values))

    times = np.sort(dice.integers(0, count * 1_000, count))
    kinds = dice.integers(0, 3, count)
    fields = {
        "type": drawn(["authentication", "process", "network"], kinds),
        "id": pa.array(np.arange(1, count + 1)),
        "user.name": drawn([f"user{n}" for n in range(USERS)], dice.integers(0, USERS, count)),
        "event.outcome": drawn(["failure", "success"], (dice.random(count) < 0.3)),
        "process.executable": drawn([f"C:\\Windows\\Program{n}.EXE" for n in range(PROGRAMS)], dice.integers(0, PROGRAMS, count)),
    }
    return EventTable(times, times, fields)


def rules(count: int, text: str = RULE) -> Rulebook:
    return loads(";\n".join(text.format(number=number) for number in range(1, count + 1)), "eql")


def taken(book: Rulebook, tier: str, table: EventTable, compiled: bool = True) -> tuple[float, int]:
    """Seconds of a run from its beginning, and how many detections it made."""

    def run() -> int:
        graph = Graph(book.plans(tier))
        for plan in graph.plans:
            if tier == "kernel" and isinstance(plan, SequencePlan):
                plan._kernel.compiled = compiled
        return len(graph.advance(graph.initial(), EventBatch(table=EventTable(table.lo, table.hi, table.fields))))

    return best(run, times=2)


def main() -> None:
    table, one = events(EVENTS), rules(1)
    import numpy as np

    few = table.take(np.arange(FEW))
    few = EventTable(few.lo, few.hi, few.fields)
    assert taken(one, "kernel", few)[1] == taken(one, "interpreter", few)[1]
    slow, _ = taken(one, "interpreter", few)
    vectorised, found = taken(one, "kernel", table, compiled=False)
    compiled, same = taken(one, "kernel", table)
    assert found == same
    many, _ = taken(rules(RULES), "kernel", table)
    single, _ = taken(rules(1, OWN), "kernel", table)
    various, _ = taken(rules(RULES, OWN), "kernel", table)
    show(
        f"a keyed sequence of EQL over {EVENTS:,} events, {USERS:,} keys; {found:,} detections",
        {
            f"interpreter (of {FEW:,} events)": f"{FEW / slow / 1e3:,.0f} k events/s",
            "tests over columns, stages event by event": f"{EVENTS / vectorised / 1e3:,.0f} k events/s",
            "compiled": f"{EVENTS / compiled / 1e3:,.0f} k events/s",
            f"{RULES} such rules": f"{EVENTS / many / 1e3:,.0f} k events/s, {many / compiled:.0f} times one",
            "one whose items are rare": f"{EVENTS / single / 1e3:,.0f} k events/s",
            f"{RULES} such rules, all different": f"{EVENTS / various / 1e3:,.0f} k events/s, {various / single:.0f} times one",
        },
        "compiled: 100 times the interpreter",
    )


if __name__ == "__main__":
    main()
