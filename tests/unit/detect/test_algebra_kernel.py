"""The kernel tier of ECCO: what it covers, at sizes at which its arrays grow and are swept, and its exact sums."""

from __future__ import annotations

import json
import random
from math import fsum

import numpy as np
import pytest

from coincide.detection.algebra.kernel.kernel import Columns
from coincide.detection.algebra.kernel.rows import Slots
from coincide.detection.algebra.state import PlanState
from coincide.detection.algebra.window import windows
from coincide.detection.algebra.window.sums import group_sums
from coincide.detection.algebra.window.windows import _steps
from coincide.engines.graph import Graph
from coincide.explanation import explanation
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Value, primitive, record
from coincide.model.sorting import stable_order
from coincide.rulebook import load, loads
from coincide.source import SourceText

SECOND = 1_000_000
RULES = """
detect quiet per sensor = ((open ; shut) within 20s) - alarm  with recent
detect pair = (open as o ; shut as s where o.sensor = s.sensor) within 10s with chronicle  give s.sensor, o.value
detect shortest per sensor = (open + alarm) within 30s with subset
detect mean per sensor = shut^AVG(value) over 7s  give avg
detect alarms = alarm^COUNT over 3s every 1s  give count
detect pairs = pair^COUNT over 5s
detect after per sensor = (quiet ; alarm) within 20s with recent
detect often per sensor = (quiet + mean) within 9s with chronicle
"""


def doors(count: int) -> list[Event]:
    source = random.Random(7)
    events, time = [], 0
    for number in range(count):
        time += source.choice([0, 10_000, 10_000])
        values: dict[str, Value] = {"sensor": float(source.randrange(50)), "value": source.randrange(1000) / 10}
        events.append(primitive(source.choice(["open", "open", "shut", "shut", "alarm"]), time, time, str(number), values))
    return sorted(events, key=lambda event: event.origin)


def test_many_events(in_full: bool) -> None:
    """Stores are filled, swept and given out; at the end the state goes back to the interpreter."""
    events = doors(12_000 if in_full else 4_000)
    graph = Graph(loads(RULES, "ecco").plans("interpreter"))
    state = graph.initial()
    made = [*graph.advance(state, EventBatch(events)).events, *graph.finish(state, float("inf")).events]
    expected = [record(event) for event in made]
    assert len(expected) > len(events) * 0.4
    for size in (700, 20_000):
        assert [record(event) for event in _compiled_first(events, size)] == expected, size


def _compiled_first(events: list[Event], size: int) -> list[Event]:
    graph = Graph(loads(RULES, "ecco").plans("kernel"))
    state = graph.initial()
    made: list[Event] = []
    for start in range(0, len(events), size):
        made += graph.advance(state, EventBatch(events[start : start + size])).events
    assert all(isinstance(own, Columns) for own in state.states)
    interpreted = Graph(loads(RULES, "ecco").plans())
    state = interpreted.decode(graph.encode(state))
    assert all(isinstance(own, PlanState) for own in state.states)
    return [*made, *interpreted.finish(state, float("inf")).events]


def test_ranges_go_through_the_interpreter_and_the_kernel_goes_on() -> None:
    graph = Graph(loads("detect d = (a ; b) within 5s with recent", "ecco").plans("kernel"))
    state = graph.initial()

    def take(kind: str, lo: int, hi: int) -> type:
        graph.advance(state, EventBatch([primitive(kind, lo * SECOND, hi * SECOND, str(hi), {})]))
        return type(state.states[0])

    assert take("a", 1, 1) is Columns
    assert take("b", 2, 3) is PlanState
    assert take("b", 4, 4) is PlanState  # the range has waited for the end of its instant
    assert take("a", 5, 5) is Columns


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a ; a*{2} ; b", "has a group between operands"),
        ("a ; (b valid 3s)", "uses valid"),
        ("a || b", "uses an operator other than ; + | -"),
        ("(a + b) within 3s with cumulative", "uses cumulative, which takes all partners at once"),
        ("a - (b within 3s)", "has 'within' on what is negated"),
        ("a{space.x > 1}", "reads places"),
        ("any", "uses any or NULL"),
        ("a + a", "has operands that can be one event"),
        ("(a ; b) - b", "negates events that it looks for"),
        ("a as x ; b as y where x.v != y.v", "compares operands by more than equality"),
        ("a as x ; b as y ; c where x.k = y.k", "compares some operands only"),
        ("(a + b)^AVG(v) over 3s", "has a window over something composed"),
        ("a^FIRST over 3s every 1s", "selects the first or n-th of windows that overlap"),
        ("(a | b) ; c give a.v", "gives something of 'a', which is not a single event"),
        ("(not a over 3s) | b", "has a silence inside another operator"),
        ("a with precision(data, low)", "uses precision"),
    ],
)
def test_reasons(body: str, reason: str) -> None:
    (plan,) = loads(f"detect d = {body}", "ecco").compiled.plans
    assert plan.tier_reasons() == (f"it {reason}",)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("p - c", "'d' negates events that a detection may be made of"),
        ("(p | c)^COUNT over 3s", "'d' has a window over alternatives that are detections"),
        ("(p as x + q as y) where x.k = y.k", "'d' uses + and compares detections"),
        ("p ; p", "'d' has operands that can be one event"),
        ("r ; c", "'r' uses an iteration"),
    ],
)
def test_reasons_where_detections_are_read(body: str, reason: str) -> None:
    below = "let p = (a ; b) within 3s\nlet q = a | b\nlet r = a*{2}\n"
    (plan,) = (plan for plan in loads(f"{below}detect d = {body}", "ecco").compiled.plans if "d" in plan.definitions)
    assert plan.tier_reasons() == (reason,)


def test_detections_of_other_languages_are_rows() -> None:
    first = SourceText("r.ecl", "monitor m by k = repeat { push(p) { a } }")
    rules = SourceText("r.ecco", "detect n per k = p^COUNT over 3s  give count\ndetect s = (p ; b) within 2s with recent")
    events = [primitive("ab"[n % 3 == 2], n * SECOND, n * SECOND, str(n), {"k": float(n % 2)}) for n in range(30)]
    found = []
    for tier in ("interpreter", "kernel"):
        graph = Graph(load(first, rules).plans(tier))
        state = graph.initial()
        made = [record(event) for event in graph.advance(state, EventBatch(events)).events]
        found.append([one for one in made if one["type"] != "p"])
        assert tier == "interpreter" or all(isinstance(own, Columns) for own in state.states[1:])
    assert len(found[0]) > 20
    assert found[0] == found[1]


def test_explain_names_the_tier_and_the_reason() -> None:
    assert "kernel (compiled) from" in explanation(loads("detect d per k = a^AVG(v) over 3s", "ecco"))
    several = explanation(loads("detect d = (a ; b) within 3s\ndetect e = a*{2}\ndetect f = a || b", "ecco"))
    assert "kernel (compiled) from" in several
    assert "interpreter, because 'e' uses an iteration; 'f' uses an operator other than ; + | -" in several


def test_sums_are_rounded_once() -> None:
    source = random.Random(3)
    choices = [1e16, 1.0, -1e16, 0.1, 1e-3, -0.1, 3e200, -3e200, 2.0**-60, 1.5]
    groups = [[source.choice(choices) for _ in range(source.randrange(9))] for _ in range(2000)]
    offsets = np.concatenate(([0], np.cumsum([len(group) for group in groups])))
    values = np.array([value for group in groups for value in group])
    assert group_sums(values, offsets).tolist() == [fsum(group) for group in groups]


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_a_snapshot_of_separate_plans(tier: str) -> None:
    """Which definitions share a plan may change with the rules, or with the release: what each waits for is put together."""
    book = loads("detect counted = a^COUNT over 10ms\ndetect added = b^SUM(v) over 7ms\ndetect quiet = not a over 3ms", "ecco")
    events = [primitive("ab"[n % 2], n * 1000, n * 1000, f"e{n}", {"v": float(n)}) for n in (*range(1, 12), 19, 20, 31, 44)]
    separate = Graph([plan for detector in book.detectors for plan in book.compiled.plans_for([detector])])
    joint = Graph(book.plans(tier))
    assert len(separate.plans) == 3
    whole = joint.initial()
    expected = [*joint.advance(whole, EventBatch(events)).events, *joint.finish(whole, 60_000).events]
    for cut in range(1, len(events)):
        state = separate.initial()
        made = [*separate.advance(state, EventBatch(events[:cut])).events]
        state = joint.decode(separate.encode(state))
        made += [*joint.advance(state, EventBatch(events[cut:])).events, *joint.finish(state, 60_000).events]
        assert texts(made) == texts(expected)


def texts(events: list[Event]) -> list[str]:
    return sorted(json.dumps(record(event), sort_keys=True) for event in events)


def test_keys_that_are_whole_numbers_have_the_slots_of_other_keys() -> None:
    slots = Slots(1)
    found = slots.of_wholes(np.array([3.0, 1.0, -0.0, 3.0]))
    assert found is not None
    assert found.tolist() == slots.of([(3.0,), (1.0,), (0.0,), (3.0,)]).tolist()
    slots.keep(found[:1])
    again = slots.of_wholes(np.array([1.0, 3.0]))
    assert again is not None
    assert again.tolist() == slots.of([(1.0,), (3.0,)]).tolist() == [1, 0]


@pytest.mark.parametrize("number", [0.5, -1.0, 1e9, np.nan, np.inf])
def test_other_numbers_are_not_looked_for_in_a_table(number: float) -> None:
    assert Slots(1).of_wholes(np.array([1.0, number])) is None


@pytest.mark.parametrize("most", [1, 300, 1 << 20, 1 << 40])
def test_order_of_small_and_large_numbers(most: int) -> None:
    some = np.random.default_rng(1)
    first, second = some.integers(-most, most, 500), some.integers(0, 3, 500)
    assert stable_order(first, second).tolist() == np.lexsort((first, second)).tolist()


@pytest.mark.parametrize("step", [3, 1_000])
def test_steps_of_instants(step: int) -> None:
    instants = np.sort(np.random.default_rng(1).integers(-5_000, 5_000, 400))
    assert _steps(instants, 7, step).tolist() == [-((7 - at) // step) for at in instants.tolist()]


def test_keys_that_no_window_has_had_of_late_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come again stay, also if the next window has none of them yet: to number them anew costs more."""
    monkeypatch.setattr(windows, "LITTLE", 64)
    graph = Graph(loads("detect mean per k = a^AVG(v) over 10s", "ecco").plans("kernel"))
    state = graph.initial()
    counts = []
    for minute in range(6):
        start = minute * 10 * SECOND
        keys = [float(n % 50 if minute < 3 else minute * 1_000 + n) for n in range(200)]
        events = [primitive("a", start + n, start + n, str(n), {"k": key, "v": 1.0}) for n, key in enumerate(keys, 1)]
        graph.advance(state, EventBatch(events), bound=start + 10 * SECOND + 1)
        counts.append(len(state.states[0].memories[0].slots))
    assert counts[:4] == [50, 50, 50, 250]
    assert max(counts[4:]) <= 400


def test_changes_after_a_snapshot_of_the_interpreter() -> None:
    """It numbers what operators remember otherwise than the kernel does."""
    book = loads("detect found per k = (a^ONCE over 5s until b ; c) within 60s", "ecco")
    events = [
        primitive(kind, number * SECOND, number * SECOND, str(number), {"k": key})
        for number, (kind, key) in enumerate(["a1", "a2", "b1", "a3", "b2", "c3", "a2", "c2", "a1", "c1"])
    ]
    whole = Graph(book.plans("interpreter"))
    state = whole.initial()
    whole.advance(state, EventBatch(events[:5]))
    graph, base = Graph(book.plans("kernel")), whole.encode(state)
    told: list[bytes] = []
    for event in events[5:]:
        state = graph.with_changes(base, told)
        graph.advance(state, EventBatch([event]))
        told.append(graph.changes(state))
    graph.with_changes(base, told)
