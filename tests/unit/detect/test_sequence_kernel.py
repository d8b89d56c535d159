"""EQL's compiled loop: the same detections as event by event, what it keeps, and what `explain` says of it."""

from __future__ import annotations

import random

import pytest

from coincide.detection.sequence import memory as memories
from coincide.detection.sequence.memory import Memory
from coincide.engines.graph import Graph
from coincide.explanation import explanation
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.compound import ValueSet
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, load, loads
from coincide.source import SourceText

SECOND = 1_000_000

QUERIES = {
    "runs and until": "sequence by k with maxspan=20s [a where v > 0] with runs=3 [b where true] until [c where v == 0]",
    "no maxspan": "sequence by k [a where true] [b where v != 1] [a where true]",
    "keys of items": "sequence [a where true] by k, v [b where true] by w, v until [c where true] by k, v",
    "optional key": "sequence by ?k, ?w with maxspan=9s [a where true] [b where true]",
    "between": "sequence by k with maxspan=30s [a where true] ![c where v > 0] [b where true] ![c where v == 2] [a where true]",
    "in front": "sequence by k with maxspan=9s ![c where true] [a where true] [b where true]",
    "at the end": "sequence by k with maxspan=9s [a where true] [b where true] ![c where true] ![a where v == 2]",
    "both ends": "sequence by k with maxspan=9s ![c where v == 0] [a where true] [b where true] ![c where v > 0]",
    "no key, first ones": "sequence with maxspan=5s [a where true] [b where true] ![c where true] | head 7",
    "last ones": "sequence by k with maxspan=5s [a where true] [b where true] | tail 3",
    "one event": 'any where s : "X*" and v >= 1',
    "expression": "sequence by v * 2, k [a where true] [b where true]",
}


def stream(count: int, keys: int = 40) -> list[Event]:
    source = random.Random(7)
    events = []
    for n in range(count):
        hi = n // 3 * SECOND
        k: object = source.choice([float(source.randrange(keys)), f"k{source.randrange(keys)}", True, None])
        if source.random() < 0.05:
            k = ValueSet((1.0, "k1", "k2"))
        given = {"k": k, "v": float(source.randrange(3)), "w": source.choice([k, 1.0]), "s": source.choice(["x1", "XY", "y"])}
        events.append(primitive(source.choice("aabbc"), hi, hi, str(n), {n: v for n, v in given.items() if v is not None}))
    return events


def found(rules: Rulebook, tier: str, events: list[Event], size: int) -> tuple[list[dict[str, object]], object]:
    graph = Graph(rules.plans(tier))
    state = graph.initial()
    made: list[Event] = []
    for start in range(0, len(events), size):
        made += graph.advance(state, EventBatch(events[start : start + size])).events
    last = state.states[-1]
    made += graph.finish(state, events[-1].hi + 60.0 * SECOND).events
    return [record(event) for event in made], last


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_detections_are_those_of_the_interpreter(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "LITTLE", 50)  # what is not needed is looked for all the time
    rules, events = loads(f"// @fields s, @timestamp\n{query}", "eql"), stream(1500)
    expected, _ = found(rules, "interpreter", events, 1500)
    assert len(expected) > 2
    for size in (1500, 170):
        made, state = found(rules, "kernel", events, size)
        assert made == expected
        assert isinstance(state, Memory)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_what_has_changed_is_enough(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Added to what was written before, also where what is not needed has gone in between."""
    monkeypatch.setattr(memories, "LITTLE", 50)
    rules, events = loads(f"// @fields s, @timestamp\n{query}", "eql"), stream(600)
    graph = Graph(rules.plans("kernel"))
    state, again = graph.initial(), graph.initial()
    told: list[bytes] = []
    for start in range(0, len(events), 60):
        batch = events[start : start + 60]
        expected = graph.advance(state, EventBatch(batch)).events
        assert [record(e) for e in graph.advance(again, EventBatch(batch)).events] == [record(e) for e in expected]
        told.append(graph.changes(state, everything=not told))
        again = graph.with_changes(told[0], told[1:])
    assert sorted(map(len, told))[0] < len(graph.encode(state)) or len(state.states[0].numbers) < 3


def test_detections_of_other_rules_are_events() -> None:
    first = SourceText("r.ecl", "monitor m by k = repeat { push(p) { a } }")
    second = SourceText(
        "r.eql",
        "// @name q\nsequence by k with maxspan=9s [p where true] [b where true];\n"
        "// @name r\nsequence [p where true] [q where true]",
    )
    found_by = [
        [one for one in found(load(first, second), tier, stream(300), 300)[0] if one["type"] != "p"]
        for tier in ("interpreter", "kernel")
    ]
    assert found_by[0] == found_by[1]
    assert {one["type"] for one in found_by[0]} == {"q", "r"}


def test_keys_that_time_has_passed_by_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "LITTLE", 50)
    rules = loads("sequence by k with maxspan=9s [a where true] [b where true]", "eql")
    events = [primitive("a", n * SECOND, n * SECOND, str(n), {"k": float(n)}) for n in range(1000)]
    _, state = found(rules, "kernel", events, 100)
    assert isinstance(state, Memory)
    assert len(state.keys) < 200
    assert len(state.store) < 200


def test_explain_says_how_it_is_done() -> None:
    def tier(query: str) -> str:
        return next(line for line in explanation(loads(query, "eql")).splitlines() if line.strip().startswith("tier"))

    assert "kernel (compiled) from 60,000 events on" in tier("sequence by k [a where true] [c where true]")
    assert "kernel (over columns) from 5,000 events on" in tier("a where true")
    assert "tests over columns, then event by event, because it is a sample" in tier("sample by k [a where true] [b where true]")


def test_many_patterns_are_found_by_one_search() -> None:
    source = random.Random(3)
    letters = "aAbB*?.İK\u212a"
    patterns = {"".join(source.choices(letters, k=source.randrange(1, 6))) for _ in range(120)}
    texts = ["".join(source.choices("aAbBiIkK\u212aİ.", k=source.randrange(0, 7))) for _ in range(300)]
    tests = [f's {op} "{pattern}"' for pattern in sorted(patterns) for op in (":", "like")]
    tests += ['s in~ ("AB", "ba")', 's != "a"', 's not in ("a", "ab")', 's == "ab" or s == null']
    rules = loads(";".join(f"// @name r{n}\na where {test}" for n, test in enumerate(tests)), "eql")
    events = [primitive("a", n, n, str(n), {"s": text} if text else {}) for n, text in enumerate(texts)]
    expected, _ = found(rules, "interpreter", events, 300)
    assert len(expected) > 1000
    assert found(rules, "kernel", events, 300)[0] == expected


def _tests(source: random.Random, depth: int = 0) -> str:
    """A condition over fields with few values and with many, mixed ones and several."""
    if depth < 3 and source.random() < 0.6:
        joint = source.choice([" and ", " and ", " or "])
        return "(" + joint.join(_tests(source, depth + 1) for _ in range(source.randrange(2, 4))) + ")"
    number = source.randrange(400)
    negated = source.choice(["", "", "not "])
    return negated + source.choice(
        [
            f'line : "*w{number}*"', f'line like ("W{number}?*", "x*")', f'few == "v{number % 5}"', f'few != "v{number % 3}"',
            f'line in~ ("W{number} A", "w1 b")', f"n > {number}", f'mixed == "{number % 9}"', f'several : "t{number % 9}*"',
            f"length(line) > {number % 9}", f'line regex "[wW]{number % 40}.*"', "few == line", "n % 7 == 1", "mixed == null",
            f'several not in ("t{number % 9}x", few)',
        ]
    )  # fmt: skip


def test_conditions_of_many_rules_over_many_rows() -> None:
    source = random.Random(11)
    events = []
    for n in range(1200):
        given = {
            "line": f"{source.choice('wW')}{source.randrange(400)} {source.choice('AbX')}", "few": f"v{source.randrange(5)}",
            "n": float(source.randrange(500)), "mixed": source.choice([float(n % 9), str(n % 9), True]),
            "several": ValueSet((f"t{n % 9}x", f"t{n % 5}")),
        }  # fmt: skip
        there = {name: value for name, value in given.items() if source.random() < 0.8}
        events.append(primitive(source.choice("abc"), n * SECOND, n * SECOND, str(n), there))
    rules = [f"// @name r{n}\n{source.choice(['a', 'any'])} where {_tests(source)}" for n in range(50)]
    rules += [
        f"// @name s{n}\nsequence by few with maxspan=90s [a where {_tests(source)}] [b where {_tests(source)}]"
        for n in range(15)
    ]
    book = loads(";\n".join(rules), "eql")
    expected, _ = found(book, "interpreter", events, 1200)
    assert len(expected) > 1000
    for size in (1200, 500):
        assert found(book, "kernel", events, size)[0] == expected


def test_timers_of_a_state_that_was_read_are_on_time() -> None:
    graph = Graph(loads("sequence with maxspan=5ms [a where true] ![b where true]", "eql").plans("kernel"))
    state = graph.initial()
    graph.advance(state, EventBatch([primitive("a", 1000, 1000, "1", {})]))
    again = graph.decode(graph.encode(state))
    assert [event.hi for event in graph.advance(again, EMPTY, 7000).events] == [6000]
