"""What does testing conditions early save, and how does the join tier grow? The paper's physician's visit, on made-up wards."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import best, show
from benchmarks.workloads import fresh
from coincide import loads
from coincide.detection.base import Clock
from coincide.detection.correlation.kernel.kernel import Kernel
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.stamp import MILLISECOND
from coincide.model.table import EventTable

CASE = Path(__file__).parents[1] / "tests/conformance/cases/cdl/paper-physician-visit/rules.cdl.xml"
WITHIN = "30 min"
LATE = 500
"""Events that are tested at the end in a time that one waits for."""
SIZES = (10_000, 100_000, 1_000_000)
MINUTE = 60_000 * MILLISECOND
KINDS = ("access", "disinfect", "door")
ACCESS, DISINFECT, DOOR = range(3)


def rules() -> Any:
    """The paper's description; messages are forgotten after half an hour, by when a visit is over."""
    text = CASE.read_text(encoding="utf-8").replace('version="1.0"', f'version="1.0" within="{WITHIN}"', 1)
    return loads(text, "cdl.xml", "visit")


@dataclass
class Wards:
    """Each room has a visit every two hours or so; four rooms to a physician, two patients to a room. Two of five visits lack a
    step; at each there is one more door, disinfection and writing that belong to none."""

    events: int
    rooms: int = 400
    seed: int = 7

    def table(self) -> EventTable:
        random = np.random.default_rng(self.seed)
        visits = self.events // 8
        room = random.integers(0, self.rooms, visits)
        begin = np.sort(random.integers(0, visits * MINUTE * 120 // self.rooms, visits))
        steps = np.cumsum(random.integers(MINUTE // 6, 2 * MINUTE, (visits, 6)), axis=1)
        physician, patient = room // 4, room * 2 + random.integers(0, 2, visits)
        columns = []
        for step, kind, writes in ((0, ACCESS, 0), (1, DISINFECT, 0), (2, DOOR, 0), (3, DOOR, 0), (5, ACCESS, 1)):
            columns.append(
                (begin + steps[:, step], kind, writes, begin + steps[:, step] - MINUTE // 12, random.random(visits) < 0.9)
            )
        columns.append((begin + random.integers(0, 8 * MINUTE, visits), DOOR, 0, begin, np.ones(visits, bool)))
        columns.append((begin + random.integers(0, 8 * MINUTE, visits), DISINFECT, 0, begin, np.ones(visits, bool)))
        columns.append((begin + random.integers(0, 8 * MINUTE, visits), ACCESS, 1, begin, np.ones(visits, bool)))
        return _table(columns, room, physician, patient)


def _table(columns: list[Any], room: Any, physician: Any, patient: Any) -> EventTable:
    hi = np.concatenate([at[there] for at, *_, there in columns])
    order = np.argsort(hi, kind="stable")

    def spread(values: Any) -> Any:
        return np.concatenate([values[there] for *_, there in columns])[order]

    kinds = np.concatenate([np.full(there.sum(), kind) for _, kind, _, _, there in columns])[order]
    writes = np.concatenate([np.full(there.sum(), w) for _, _, w, _, there in columns])[order]
    began = np.concatenate([b[there] for _, _, _, b, there in columns])[order]
    hi = hi[order]
    fields = {
        "type": _coded(kinds, list(KINDS)),
        "id": pa.array(np.arange(1, len(hi) + 1)),
        "room": pa.array(spread(room).astype(np.float64)),
        "physician": _coded(spread(physician), [f"physician {n}" for n in range(int(physician.max()) + 1)]),
        "patient": _coded(spread(patient), [f"patient {n}" for n in range(int(patient.max()) + 1)]),
        "accesstype": _coded(writes, ["read", "write"]),
        "begin": pa.array(np.minimum(began, hi) / MILLISECOND),
        "end": pa.array(hi / MILLISECOND),
    }
    return EventTable(hi, hi, fields)


def _coded(codes: Any, texts: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts))


def stepped(kernel: Kernel, table: EventTable) -> EventBatch:
    return kernel.step(kernel.fresh(), EventBatch(table=fresh(table).numbered(0)), Clock(0))[1]


def interpret(book: Any, table: EventTable) -> EventBatch:
    graph = Graph(book.plans())
    return graph.advance(graph.initial(), EventBatch(table=fresh(table)))


def main(largest: int = SIZES[-1]) -> None:
    book = rules()
    plan: Any = book.plans()[0]
    few = Wards(LATE, rooms=32).table()
    early, late = (Kernel(plan.program, 0, early=way) for way in (True, False))
    seconds, made = best(lambda: stepped(early, few), 3)
    seconds_late, made_late = best(lambda: stepped(late, few), 1)
    assert made.records() == made_late.records()
    interpreted, found = best(lambda: interpret(book, few), 1)
    assert len(found) == len(made)
    show(
        f"The visit over {len(few):,} events ({len(made):,} visits), within {WITHIN}",
        {
            "all conditions at the end": f"{seconds_late:.2f} s",
            "interpreter, conditions as soon as they can be": f"{interpreted:.2f} s",
            "join tier, conditions as soon as they can be": f"{seconds:.3f} s",
            "ratio of late to early": f"{seconds_late / seconds:.0f}",
        },
    )
    figures = {}
    for size in (s for s in SIZES if s <= largest):
        table = Wards(size).table()
        seconds, made = best(lambda table=table: stepped(early, table), 1)  # type: ignore[misc]
        figures[f"{len(table):,} events, {len(made):,} visits"] = f"{seconds / len(table) * 1e6:.2f} us/event"
    show(f"How it grows, within {WITHIN}", figures, "the same for each")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1])
