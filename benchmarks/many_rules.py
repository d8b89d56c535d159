"""What do many rules cost? Ten thousand different ones of each language over one stream: to load, to keep, and for each event.

There are as many types as rules, and a rule reads three of them: so an event concerns three rules, however many there are. In
batches the kernel tier runs, for events that come singly the interpreter. Each line comes from a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.workloads import fresh, keyed

if TYPE_CHECKING:
    from coincide.engines.graph import Graph, GraphState

EVENTS, SINGLE, KEYS = 65_536, 300, 100
COUNTS = (100, 1_000, 10_000)
HEAD = (
    "language", "rules", "load, CPU s", "kB a rule", "first batch, s", "events/s", "times one", "ms, singly", "detections"
)  # fmt: skip
Steps = list[tuple[int, int, int, int]]


def steps(count: int, seed: int = 3) -> Steps:
    """For each rule three types, and a threshold for the second."""
    random = np.random.default_rng(seed)
    return [(*map(int, random.choice(count, 3, replace=False)), int(random.integers(0, 100))) for _ in range(count)]


def lines(form: str) -> Callable[[Steps, int], str]:
    return lambda rules, types: "\n".join(form.format(n, a, b, least, c) for n, (a, b, c, least) in enumerate(rules))


def amit(steps: Steps, types: int) -> str:
    event = '<event name="t{}"><eventAttribute name="k" type="string"/><eventAttribute name="v" type="number"/></event>'
    rule = (
        '<lifespan name="l{0}"><initiator><eventInitiator event="t{1}" correlate="ignore"/></initiator>'
        '<terminator><expirationInterval timeInterval="10 s"/></terminator><keyBy attribute="k"/></lifespan>'
        '<situation name="x{0}" lifespan="l{0}"><sequence repeatMode="once">'
        '<operandSequence event="t{2}" threshold="v &gt; {3}"/><operandSequence event="t{4}"/></sequence></situation>'
    )
    return "\n".join(["<amit>", *map(event.format, range(types)), lines(rule)(steps, types), "</amit>"])


CDL = (
    '<cd id="c{0}" version="1" within="10 s"><sources>'
    '<source class="t{1}" anchor="a"><attribute name="k" type="string"/></source>'
    '<source class="t{2}" anchor="b"><attribute name="k" type="string"/><attribute name="v" type="double"/></source>'
    '<source class="t{4}" anchor="c"><attribute name="k" type="string"/></source></sources><predicates>'
    '<predicate anchor="p">a.k = b.k</predicate><predicate anchor="q">b.k = c.k</predicate>'
    '<predicate anchor="r">a.time &lt; b.time</predicate><predicate anchor="s">b.time &lt; c.time</predicate>'
    '<predicate anchor="t">b.v &gt; {3}</predicate></predicates>'
    '<expressions><expression anchor="x">p and q and r and s and t</expression></expressions>'
    '<events><event class="x{0}" trigger="x"><attribute name="k" type="string">a.k</attribute></event></events></cd>'
)
ROWS = (
    "CREATE VIEW x{0} AS SELECT * FROM (SELECT * FROM events WHERE type IN ('t{1}', 't{2}', 't{4}')) MATCH_RECOGNIZE ("
    "PARTITION BY k ORDER BY time MEASURES C.id AS c AFTER MATCH SKIP TO NEXT ROW PATTERN (A B C) WITHIN 10 seconds "
    "DEFINE A AS A.type = 't{1}', B AS B.type = 't{2}' AND B.v > {3}, C AS C.type = 't{4}');"
)

LANGUAGES: dict[str, tuple[str, Callable[[Steps, int], str]]] = {
    "ECL": ("ecl", lines("monitor m{0} by k = repeat {{ push(x{0}) {{ sequential {{ t{1}, t{2} and v > {3}, t{4} }} }} }}")),
    "Opera": ("ce", lines("detect x{} = ([t{}(k = ?k)], [t{}(k = ?k, v > {})] [t{}(k = ?k)]) T = 10s")),
    "ECCO": ("ecco", lines("detect x{} per k = (t{} ; t{}{{v > {}}} ; t{}) within 10s with recent")),
    "Amit": ("amit.xml", amit),
    "EQL": (
        "eql",
        lines("// @name x{}\nsequence by k with maxspan=10s [t{} where true] [t{} where v > {}] [t{} where true];"),
    ),
    "CDL": ("cdl.xml", lambda steps, types: f"<cds>{lines(CDL)(steps, types)}</cds>"),
    "row patterns": ("mr.sql", lines(ROWS)),
}


def main() -> None:
    print(f"\nMany rules over {EVENTS:,} events, each of which concerns three of them")
    _line(HEAD)
    for language in LANGUAGES:
        for count in COUNTS:
            command = [sys.executable, "-m", "benchmarks.many_rules", language, str(count)]
            _line(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def measured(language: str, count: int) -> tuple[str, ...]:
    from coincide import loads
    from coincide.engines.graph import Graph

    ending, text = LANGUAGES[language]
    rules = steps(count)
    graph = Graph(loads(text(rules[:1], count), ending).plans("kernel"))
    alone = _times(graph, graph.initial(), count)  # whatever is imported is there
    before, begun = _resident(), process_time()
    book = loads(text(rules, count), ending)
    graph = Graph(book.plans("kernel"))
    state = graph.initial()
    loading, kept = process_time() - begun, _resident() - before
    first, second, made = _times(graph, state, count)
    return (
        language, f"{count:,}", f"{loading:.1f}", f"{kept / count / 1000:.1f}", f"{first:.1f}", f"{EVENTS / second:,.0f}",
        f"{second / alone[1]:,.0f}", f"{1000 * _singly(Graph(book.plans()), count):.2f}", f"{made:,}",
    )  # fmt: skip


def _times(graph: Graph, state: GraphState, types: int) -> tuple[float, float, int]:
    """Seconds for the first batch, with all that is made for it, and for the second: what is learnt once is learnt. Then the
    detections of the second."""
    from coincide.model.batch import EventBatch

    now, times, made = 0, [], 0
    for seed in range(2):
        table = fresh(keyed(EVENTS, KEYS, types, seed=seed, start=now))
        begun = process_time()
        made = len(graph.advance(state, EventBatch(table=table)))
        times.append(process_time() - begun)
        now = int(table.hi[-1])
    return times[0], times[1], made


def _singly(graph: Graph, types: int) -> float:
    """Seconds for an event that comes alone, in the interpreter tier."""
    from coincide.model.batch import EventBatch

    state, events = graph.initial(), EventBatch(table=keyed(2 * SINGLE, KEYS, types)).events
    begun = 0.0
    for number, event in enumerate(events):
        begun = process_time() if number == SINGLE else begun
        graph.advance(state, EventBatch((event,)))
    return (process_time() - begun) / SINGLE


def _resident() -> int:
    """Bytes of memory in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _line(cells: tuple[str, ...]) -> None:
    print("  " + f"{cells[0]:<10}" + " ".join(f"{cell:>15}" for cell in cells[1:]), flush=True)


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
