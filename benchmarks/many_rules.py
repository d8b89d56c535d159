"""What do many rules cost? Ten thousand different ones of each language over one stream: to load, to keep, and for each event.

There are as many types as rules, and a rule reads three of them: so an event concerns three rules, however many there are. Each
figure comes from a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from time import process_time

import numpy as np

from benchmarks.workloads import fresh, keyed, many_monitors

EVENTS, KEYS = 100_000, 1_000
COUNTS = (100, 1_000, 10_000)
HEAD = ("language", "rules", "load, CPU s", "kB a rule", "first batch, s", "events/s", "detections")


def steps(count: int, seed: int = 3) -> list[tuple[int, int, int, int]]:
    """For each rule three types, and a threshold for the second."""
    random = np.random.default_rng(seed)
    return [(*map(int, random.choice(count, 3, replace=False)), int(random.integers(0, 100))) for _ in range(count)]


def opera(count: int) -> str:
    line = "detect x{} = ([t{}(k = ?k)], [t{}(k = ?k, v > {})] [t{}(k = ?k)]) T = 10s"
    return "\n".join(line.format(n, a, b, least, c) for n, (a, b, c, least) in enumerate(steps(count)))


def ecco(count: int) -> str:
    line = "detect x{} per k = (t{} ; t{}{{v > {}}} ; t{}) within 10s with recent"
    return "\n".join(line.format(n, a, b, least, c) for n, (a, b, c, least) in enumerate(steps(count)))


def amit(count: int) -> str:
    event = '<event name="t{}"><eventAttribute name="k" type="string"/><eventAttribute name="v" type="number"/></event>'
    rule = (
        '<lifespan name="l{0}"><initiator><eventInitiator event="t{1}" correlate="ignore"/></initiator>'
        '<terminator><expirationInterval timeInterval="10 s"/></terminator><keyBy attribute="k"/></lifespan>'
        '<situation name="x{0}" lifespan="l{0}"><sequence repeatMode="once">'
        '<operandSequence event="t{2}" threshold="v &gt; {3}"/><operandSequence event="t{4}"/></sequence></situation>'
    )
    rules = [rule.format(n, a, b, least, c) for n, (a, b, c, least) in enumerate(steps(count))]
    return "\n".join(["<amit>", *map(event.format, range(count)), *rules, "</amit>"])


LANGUAGES: dict[str, tuple[str, Callable[[int], str]]] = {
    "ECL": ("ecl", lambda count: many_monitors(count, count)),
    "Opera": ("ce", opera),
    "ECCO": ("ecco", ecco),
    "Amit": ("amit.xml", amit),
}


def main() -> None:
    print(f"\nMany rules over {EVENTS:,} events, each of which concerns three of them; the kernel tier")
    _line(HEAD)
    for language in LANGUAGES:
        for count in COUNTS:
            command = [sys.executable, "-m", "benchmarks.many_rules", language, str(count)]
            _line(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def measured(language: str, count: int) -> tuple[str, ...]:
    """Of the second batch: what is learnt once is learnt."""
    from coincide import loads
    from coincide.engines.graph import Graph
    from coincide.model.batch import EventBatch

    ending, text = LANGUAGES[language][0], LANGUAGES[language][1](count)
    table = keyed(EVENTS, KEYS, count)
    loads(LANGUAGES[language][1](10), ending).plans("kernel")  # whatever is imported is there
    before, begun = _resident(), process_time()
    graph = Graph(loads(text, ending).plans("kernel"))
    loading, kept = process_time() - begun, _resident() - before
    state = graph.initial()
    begun = process_time()
    graph.advance(state, EventBatch(table=fresh(table)))
    first, begun = process_time() - begun, process_time()
    made = graph.advance(state, EventBatch(table=fresh(keyed(EVENTS, KEYS, count, start=int(table.hi[-1])))))
    second = process_time() - begun
    figures = f"{loading:.1f}", f"{kept / count / 1000:.1f}", f"{first:.1f}", f"{EVENTS / second:,.0f}", f"{len(made):,}"
    return language, f"{count:,}", *figures


def _resident() -> int:
    """Bytes of memory in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _line(cells: tuple[str, ...]) -> None:
    print("  " + f"{cells[0]:<10}" + " ".join(f"{cell:>15}" for cell in cells[1:]), flush=True)


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
