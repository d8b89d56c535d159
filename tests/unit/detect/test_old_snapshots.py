"""Snapshots that earlier releases have written are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coincide.engines.embedded import Engine
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.rulebook import load, loads

SNAPSHOTS = Path(__file__).parent / "snapshots"
CASES = Path(__file__).parents[2] / "conformance/cases"


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_correlations_of_version_1(tier: str) -> None:
    """Written after `in` and `out` in turn, one a millisecond, in rooms 0, 1, 2 in turn, up to 8: pairs wait in it."""
    graph = Graph(load(SNAPSHOTS / "meet.cdl.xml").plans(tier))
    state = graph.decode((SNAPSHOTS / "meet-v1.snapshot").read_bytes())
    events = [primitive("out", n * 1000, n * 1000, f"e{n}", {"room": float(n % 3)}) for n in range(20, 23)]
    found = [tuple(record(d)["from"]) for d in graph.advance(state, EventBatch(events)).events]  # type: ignore[arg-type]
    assert found == [("e5", "e20"), ("e3", "e21"), ("e1", "e22"), ("e7", "e22")]


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize("rules", ["pair.amit.xml", "pair.ce", "pair.ecco", "pair.ecl", "pair.cdl.xml"])
def test_state_kept_by_a_digest_of_older_releases(rules: str, tier: str) -> None:
    """Written after `a` with k = 0, 1, 2, a millisecond apart, when digests were not yet made of the printed text;
    the last two as tables."""
    engine = Engine(load(SNAPSHOTS / rules), tier)
    engine.restore((SNAPSHOTS / f"pair-{rules.split('.')[1]}-v1.snapshot").read_bytes())
    made = [*engine.process([{"type": "b", "time": 5, "k": 2, "id": "e"}]).events, *engine.finish().events]
    assert [(d.type, record(d)["from"][-1]) for d in made] == [("pair", "e")]  # type: ignore[index]


AS_OBJECTS = [
    *(f"amit/{case}" for case in ("key-global", "after", "mode-delayed")),
    *(f"opera/{case}" for case in ("timing-concurrent-pair", "timing-timer-restarts-in-iteration", "with-attributes")),
    *(f"eql/{case}" for case in ("missing-trailing", "sample", "pipes", "runs")),
    *(f"sigma/{case}" for case in ("brute-force-chain", "chain-several-groups", "temporal-count", "temporal-ordered-latest")),
    *(f"sigma/{case}" for case in ("value-avg", "value-percentile")),
    *(f"ecco/{case}" for case in ("exact-numbers", "give-agreement-nesting", "windows-per-key", "selection-empty-windows")),
    *(f"cdl/{case}" for case in ("exact-numbers", "paper-data-enrichment", "paper-physician-visit-near-misses")),
    *(f"match-recognize/{case}" for case in ("within-timer", "match-number", "order-by-other", "partition-by")),
]


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize("case", AS_OBJECTS)
def test_states_written_as_objects(case: str, tier: str) -> None:
    """By the kernel after the first half of the case's events. Windows of ECCO that were open then end at places of their own, so
    within an instant detections may stand in another order."""
    (file,) = (CASES / case).glob("rules.*")
    rules = load(file)
    events = [json.loads(line) for line in (CASES / case / "events.jsonl").read_text().splitlines()]
    half = len(events) // 2
    whole, later = Engine(rules, tier), Engine(rules, tier)
    whole.process(events[:half])
    later.restore((SNAPSHOTS / f"{case.replace('/', '-')}-v1.snapshot").read_bytes())
    expected, found = (sorted((*e.process(events[half:]).events, *e.finish().events), key=_instant) for e in (whole, later))
    assert [record(d) for d in found] == [record(d) for d in expected] != []


def _instant(event: Event) -> tuple[int, str]:
    return event.hi, str(record(event))


MONITORS = """monitor pairs by k, b = repeat { push(pair) { sequential { a, b } } }
monitor other by k, b = repeat { push(three) { sequential { a, a, b } } }"""


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_monitors_of_version_1(tier: str) -> None:
    """Written by the kernel after seven events, as entries by key."""
    rules = loads(MONITORS)
    events = [{"type": "a", "time": n, "id": f"e{n}", "k": n % 3, "b": n % 2 == 0} for n in range(7)]
    more = [{"type": "b", "time": n, "id": f"e{n}", "k": n % 3, "b": n % 2 == 0} for n in range(10, 16)]
    whole, later = Engine(rules, tier), Engine(rules, tier)
    whole.process(events)
    later.restore((SNAPSHOTS / "ecl-pairs-v1.snapshot").read_bytes())
    expected, found = ([record(d) for d in engine.process(more).events] for engine in (whole, later))
    assert found == expected != []


@pytest.mark.parametrize("rules", ["pair.ecl", "pair.cdl.xml"])
def test_what_changes_after_a_state_kept_by_an_older_digest(rules: str) -> None:
    """What is told then does not add to tables of another name."""
    graph = Graph(load(SNAPSHOTS / rules).plans("kernel"))
    old = (SNAPSHOTS / f"pair-{rules.split('.')[1]}-v1.snapshot").read_bytes()
    state = graph.decode(old)
    told = []
    for n in (3, 4):
        graph.advance(state, EventBatch([primitive("a", n * 1000, n * 1000, f"a{n}", {"k": float(n)})]))
        told.append(graph.changes(state))
    later = graph.with_changes(old, told)
    events = [primitive("b", 9000, 9000, f"b{n}", {"k": float(n)}) for n in range(6)]
    found = [record(d)["from"][-1] for d in graph.advance(later, EventBatch(events)).events]  # type: ignore[index]
    assert found == [f"b{n}" for n in range(5)]


def test_tables_of_messages_without_keys() -> None:
    """As they were written before portions of them could be read: what changes is told in a whole with keys first."""
    rules = load(SNAPSHOTS / "pair.cdl.xml")
    before, graph = Graph(rules.plans("kernel")), Graph(rules.plans("kernel"))
    before.plans[0]._kernel.key = None  # type: ignore[attr-defined]
    state = before.initial()
    before.advance(state, EventBatch([primitive("a", 1000, 1000, "a1", {"k": 1.0})]))
    told = [before.changes(state, everything=True)]
    before.advance(state, EventBatch([primitive("a", 2000, 2000, "a2", {"k": 2.0})]))
    told.append(before.changes(state))
    for n in (3, 4):
        state = graph.with_changes(told[0], told[1:])
        graph.advance(state, EventBatch([primitive("a", n * 1000, n * 1000, f"a{n}", {"k": float(n)})]))
        told.append(graph.changes(state))
    assert [b"correlation by key" in some for some in told] == [False, False, True, True]
    events = [primitive("b", 9000, 9000, f"b{n}", {"k": float(n)}) for n in range(6)]
    found = [record(d)["from"] for d in graph.advance(graph.with_changes(told[0], told[1:]), EventBatch(events)).events]
    assert found == [[f"a{n}", f"b{n}"] for n in range(1, 5)]
