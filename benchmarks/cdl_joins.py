"""Would CDL without preferences lose by being built on ECCO's operators? The same said in both, with the same detections.

`where` is what CDL would be translated to, `per k` another way to say it. What ECCO's loop cannot say: docs/decisions/0014."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from benchmarks.amit_worlds import part
from benchmarks.measure import best, show
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import loads

EVENTS = 200_000
GAP = 1_000  # microseconds between two events
BATCHES = (65_536, 4_096)
KINDS = "abc"


@dataclass(frozen=True)
class Question:
    """Some of the kinds with one key, one after another or in any order."""

    name: str
    kinds: str
    within: int  # seconds
    keys: int
    ordered: bool = True

    def cdl(self) -> str:
        sources = "".join(f'<source class="{k}" anchor="{k}"><attribute name="k" type="double"/></source>' for k in self.kinds)
        orders = [f"{a}.time &lt; {b}.time" for a, b in pairwise(self.kinds)] if self.ordered else []
        conditions = [f"{a}.k = {b}.k" for a, b in pairwise(self.kinds)] + orders
        predicates = "".join(f'<predicate anchor="p{n}">{text}</predicate>' for n, text in enumerate(conditions))
        expression = " and ".join(f"p{n}" for n in range(len(conditions)))
        return f"""<cd id="found" version="1" within="{self.within} s">
          <sources>{sources}</sources><predicates>{predicates}</predicates>
          <expressions><expression anchor="x">{expression}</expression></expressions>
          <events><event class="found" trigger="x"><attribute name="k" type="double">a.k</attribute></event></events></cd>"""

    def ecco(self, keyed: bool) -> str:
        body = (" ; " if self.ordered else " + ").join(self.kinds)
        equalities = " and ".join(f"{a}.k = {b}.k" for a, b in pairwise(self.kinds))
        start, where = ("detect found per k", "") if keyed else ("detect found", f" where {equalities}")
        return f"{start} = ({body}{where}) within {self.within}s give a.k"

    def rules(self) -> dict[str, tuple[str, str]]:
        ecco = {"ECCO, where": ("ecco", self.ecco(False)), "ECCO, per k": ("ecco", self.ecco(True))}
        return {"CDL": ("cdl.xml", self.cdl()), **ecco}


QUESTIONS = (
    Question("Two, the second after the first", "ab", 3, 1_000),
    Question("The same, many that wait", "ab", 30, 1_000),
    Question("Two in any order", "ab", 3, 1_000, ordered=False),
    Question("Three, one after another", "abc", 6, 1_000),
)


def events(count: int, keys: int) -> EventTable:
    """The last one is long after the others: ECCO answers for an instant once it is over."""
    random = np.random.default_rng(1)
    hi = np.arange(1, count + 1, dtype=np.int64) * GAP
    hi[-1] += 3_600_000_000
    codes = random.integers(0, len(KINDS), count).astype(np.int32)
    fields = {
        "type": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(KINDS))),
        "id": pa.array(np.arange(1, count + 1)),
        "k": pa.array(random.integers(0, keys, count).astype(np.float64)),
    }
    return EventTable(hi, hi, fields)


def run(rules: tuple[str, str], table: EventTable, size: int) -> int:
    language, text = rules
    plans = loads(text, language).plans("kernel")
    assert all(plan.tier == "kernel" for plan in plans)
    graph = Graph(plans)
    state = graph.initial()
    starts = range(0, len(table), size)
    return sum(len(graph.advance(state, EventBatch(table=part(table, at, min(at + size, len(table)))))) for at in starts)


def compare(question: Question, table: EventTable, size: int) -> None:
    found = {name: best(lambda rules=rules: run(rules, table, size), 2) for name, rules in question.rules().items()}
    (detections,) = {made for _, made in found.values()}
    figures = {f"{name}: seconds; of CDL's": f"{s:.2f}; {s / found['CDL'][0]:.2f}" for name, (s, _) in found.items()}
    show(f"{question.name}: {len(table):,} events, batches of {size:,}, {detections:,} detections", figures, "at most 1.30")


def main(count: int = EVENTS) -> None:
    for question in QUESTIONS:
        table = events(count, question.keys)
        for size in BATCHES:
            compare(question, table, size)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
