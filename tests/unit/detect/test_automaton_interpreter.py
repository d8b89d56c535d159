"""What the cases do not show: order of detections, parameters, memory, plans, limits, policies."""

from __future__ import annotations

import time
from typing import Any

import pytest

import coincide
from coincide.detection.eventsets import FREE
from coincide.engines.graph import Graph
from coincide.engines.policies import StabilityPolicy, run_with_policy
from coincide.errors import CoincideError
from coincide.expr.scalar import EventScope, condition
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.rulebook import loads
from coincide.testing.check import detections


def event(kind: str, time: int, source: str | None = None, arrival: int | None = None, **attributes: Any) -> Event:
    number = event.count = getattr(event, "count", 0) + 1  # type: ignore[attr-defined]
    values = {n: float(v) if isinstance(v, int) and not isinstance(v, bool) else v for n, v in attributes.items()}
    came = None if arrival is None else arrival * 1000
    return primitive(kind, time * 1000, time * 1000, f"e{number:06}", values, source, None, came)


def made(text: str, *events: Event, until: float | None = None) -> list[dict[str, object]]:
    return detections(loads(text, "ce"), events, until=until)


def plan(text: str) -> Any:
    return loads(text, "ce").plans()[-1]


def state_after(text: str, *events: Event) -> Any:
    graph = Graph(loads(text, "ce").plans())
    state = graph.initial()
    graph.advance(state, EventBatch(list(events)))
    return state.states[-1]


def test_detections_of_one_event_stand_by_their_events() -> None:
    some = [event("A", 1, v=3), event("A", 2, v=1), event("B", 3)]
    found = made("detect X = ([A as a] | [A as a][A])[B] with v = a.v", *some)
    first, second, last = (e.id for e in some)
    assert [d["from"] for d in found] == [[first, second, last], [first, last], [second, last]]


def test_equal_events_with_other_attributes_are_two_detections() -> None:
    found = made("detect X = [A(k = ?x)] | [A(v = ?y)]", event("A", 1, k=1, v=2))
    assert [{n: d.get(n) for n in "xy"} for d in found] == [{"x": 1, "y": None}, {"x": None, "y": 2}]


def test_values_of_parameters_compare_as_expressions_do() -> None:
    """1, '1' and true differ; null equals nothing."""
    values: list[Any] = [1, "1", True, None]
    some = [event("A", n, k=v) for n, v in enumerate(values)] + [event("B", 10 + n, k=v) for n, v in enumerate(values)]
    found = made("detect X = [A(k = ?k)] ; [B(k = ?k)]", *some)
    assert [d["k"] for d in found] == [1, "1", True]


def test_a_stopper_without_the_parameter_stops_every_value() -> None:
    text = "detect X = [A(k = ?k)] [B(k = ?k) in {B(k = ?k), Stop}]"
    found = made(text, event("A", 1, k=1), event("A", 2, k=2), event("Stop", 3), event("B", 4, k=1), event("A", 5, k=2))
    assert found == []


def test_two_parameters_that_different_events_show() -> None:
    text = "detect X = [A(x = ?x)] [B(y = ?y)] [C(x = ?x, y = ?y)]"
    some = [event("A", 1, x=1), event("A", 2, x=2), event("B", 3, y=7), event("B", 4, y=8), event("C", 5, x=2, y=8)]
    found = made(text, *some)
    assert [(d["x"], d["y"], d["from"]) for d in found] == [(2, 8, [some[1].id, some[3].id, some[4].id])]


def test_values_that_wait_for_nothing_are_forgotten() -> None:
    text = "detect X = [A(k = ?k)] ; [B(k = ?k)]"
    pairs = [e for n in range(20) for e in (event("A", 10 * n, k=n), event("B", 10 * n + 5, k=n))]
    assert set(state_after(text, *pairs).instances) == {FREE}
    assert len(state_after(text, *pairs[:-1]).instances) == 2


def test_timers_of_runs_that_have_ended_are_cancelled() -> None:
    state = state_after("detect X = ([A], [B]) T = 1h", event("A", 1), event("A", 2), event("B", 3))
    assert state.timers.pending() is None
    assert state.pending == {}


def test_alternations_in_a_row_do_not_double_the_runs() -> None:
    text = "detect X = " + " ".join(["([A] | [A])"] * 12) + " [B]"
    state = state_after(text, *(event("A", n) for n in range(12)))
    assert sum(len(runs) for runs in state.instances[FREE].runs[0].values()) <= 24


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_many_iterations_in_a_row_are_one(tier: str) -> None:
    events = [{"type": "A", "time": n, "k": n % 2} for n in range(30)] + [{"type": "B", "time": 30}]
    one, many = (coincide.loads(f"detect X = {stars} [B]", "opera") for stars in ("[A]*", " ".join(["[A]*"] * 75)))
    begin = time.process_time()
    assert coincide.detect(many, events, tier=tier) == coincide.detect(one, events, tier=tier)
    assert time.process_time() - begin < 4


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("[A(k = ?x)] ; [B(k = ?x)]", ("k",)),
        ("[A(k = ?x, j = ?y)] ; [B(k = ?x, j = ?y)]", ("j", "k")),
        ("([A(k = ?x)], [T in {T, B(k = ?x)}]) T = 5", ("k",)),
        ("[A(k = ?x)] || [B(k = ?x)]", ("k",)),
        ("[A(k = ?x)] ; [B(j = ?x)]", None),
        ("[A(k = ?x)] ; [B]", None),
        ("[A(k = ?x)] [B(k = ?x) in {B(k = ?x), Stop}]", None),
        ("[A(k = ?x) \\ A(v > 3)] [!B(k = ?x) in all(k = ?x)]", ("k",)),
    ],
)
def test_partition(text: str, keys: tuple[str, ...] | None) -> None:
    assert plan(f"detect X = {text}").partition == keys


def test_a_limit_that_looks_across_keys_forbids_partitioning() -> None:
    rule = "detect X = [A(k = ?x)] ; [B(k = ?x)]"
    assert plan(f"limit A every 1s\n{rule}").partition is None
    assert plan(f"limit A per k every 1s\n{rule}").partition == ("k",)


def test_relevant_and_columns() -> None:
    found = plan("set S = {A(v > 3)}\ndetect X = [S as a] [B(k = ?x)] with w = a.w")
    holds = condition(found.relevant, EventScope())
    assert [holds(e) for e in (event("A", 1, v=4), event("A", 1, v=2), event("B", 1, k=1), event("B", 1))] == [
        True, False, True, False,
    ]  # fmt: skip
    assert found.columns == {"v", "k", "w"}
    assert plan("detect X = [A] [!B in all]").relevant is None
    assert plan("detect X = [A] [!B in all]").inputs.external is None


def test_limits_count_only_what_passes() -> None:
    times = (0, 900, 1000, 1500, 2500)
    found = made("limit A per k every 1s\ndetect X = [A]", *(event("A", t, k=1) for t in times), event("A", 10, k=2))
    assert [d["time"] for d in found] == [0, 10, 1000, 2500]


def test_a_timer_is_one_event_for_all_runs_that_share_it() -> None:
    found = made("detect X = ([A], [T] | [T in {T, B}]) T = 5", event("A", 0), until=10_000)
    assert [d["time"] for d in found] == [[0, 5]]


def test_under_best_effort_the_queue_comes_before_a_timer_that_is_due_in_the_past() -> None:
    text = "detect P = [A]\ndetect X = ([A], [T] | [P]) T = 1"
    result = run_with_policy(loads(text, "ce"), [event("A", 0, arrival=30)], "best-effort", until=40_000)
    assert [record(d)["time"] for d in result.detections] == [0, 0, [0, 1]]


def test_late_events_are_told_by_policy() -> None:
    some = [event("A", 10, "s", 11), event("A", 20, "s", 21), event("A", 5, "s", 22), event("heartbeat", 90, "s", 91)]
    result = run_with_policy(loads("detect X = [A]", "ce"), some, "guaranteed")
    assert result.late == {StabilityPolicy("guaranteed"): [some[2]]}
    assert [latency.milliseconds for latency in result.latencies] == [11, 71]


@pytest.mark.parametrize("text", ["", "sometimes", "probabilistic", "probabilistic 0", "probabilistic 2", "guaranteed 1"])
def test_policies_that_are_none(text: str) -> None:
    with pytest.raises(CoincideError, match="unknown policy"):
        StabilityPolicy.parse(text)
