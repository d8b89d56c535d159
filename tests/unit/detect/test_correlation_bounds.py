"""What conditions imply about the times of messages, and what the join tier forgets because of it."""

from __future__ import annotations

from typing import Any

import pytest

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.order import sort_batch
from coincide.adapters.records import event_of
from coincide.cdl import forget_providers, register_provider
from coincide.detection.correlation.kernel import kernel
from coincide.detection.correlation.kernel import state as waiting_messages
from coincide.engines.graph import Graph
from coincide.lang.cdl.bounds import SLACK, time_bounds
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.terms import groups
from coincide.model.batch import EventBatch
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

HEAD = """\
cd: c
sources:
  A: {class: a, attributes: {k: int}}
  B: {class: b, attributes: {k: int}}
  C: {class: c, attributes: {k: int, time: {type: time_t, filter: C.k > 0 or A.k > 0}}}
computations: {gap: {double: B.time - A.time}, cut: {int: gap}, text: {string: "'x'"}}
"""


def rules(expression: str, more: str = "", head: str = HEAD, **predicates: str) -> Rulebook:
    lines = "".join(f"  {name}: {text}\n" for name, text in predicates.items())
    return load(SourceText("r.cdl.yaml", f"{head}predicates:\n{lines}expressions: {{X: {expression}}}\nevents: {{e: }}\n{more}"))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("A.time < B.time", {"AB": 0}),
        ("{before: [A, B, C]}", {"AB": 0, "BC": 0, "AC": 0}),
        ("B.time - A.time <= 5 s", {"BA": 5000}),
        ("gap >= 1 s and gap < 5 s", {"AB": -1000, "BA": 5000}),
        ("{between: [cut, 0, 1 min]}", {"AB": 0, "BA": 60000}),
        ("5000 > (B.time - A.time) * 2", {"BA": 2500}),
        ("-gap / 2 > -500", {"BA": 1000}),
        ("B.time = A.time + 10", {"BA": 10, "AB": -10}),
        ("B.time - A.time <= 5 and C.time <= B.time + 3", {"BA": 5, "CB": 3, "CA": 8}),
        ("B.time - A.time <= 5 or B.k = 1", {}),
        ("B.time + A.time <= 5", {}),
        ("B.time - 2 * A.time <= 5", {}),
        ("B.time != A.time and B.time <= A.k and text = 'x' and B.time * A.time < 3 and A.time % 2 = B.time", {}),
        ("not (B.time - A.time > 5)", {}),
    ],
)
def test_bounds(condition: str, expected: dict[str, float]) -> None:
    cd = rules("P", P=condition).detectors[0].definition
    (group,) = groups(cd)
    found = time_bounds(group, Names(cd))
    assert {"".join("ABC"[s] for s in pair): most - SLACK for pair, most in found.items()} == expected


def test_all_terms_must_imply_them() -> None:
    cd = rules("P and (Q or R)", P="A.time <= B.time", Q="gap < 5", R="gap < 9 and A.k = 1").detectors[0].definition
    (group,) = groups(cd)
    assert time_bounds(group, Names(cd)) == {(0, 1): SLACK, (1, 0): 9 + SLACK}


def test_a_time_that_is_looked_up_is_another() -> None:
    looked_up = "time: {type: time_t, lookup: {provider: times, column: t, key: k}}"
    head = HEAD.replace("class: a, attributes: {k: int}", f"class: a, attributes: {{k: int, {looked_up}}}")
    register_provider("times", lambda key, column: key)
    try:
        cd = rules("P", head=head, P="A.time < B.time").detectors[0].definition
    finally:
        forget_providers()
    assert time_bounds(groups(cd)[0], Names(cd)) == {}


def kept(book: Rulebook, records: list[dict[str, Any]]) -> dict[str, int]:
    """How many messages of each source the join tier remembers after these."""
    graph = Graph(book.plans("kernel"))
    state = graph.initial()
    graph.advance(state, sort_batch(EventBatch([event_of(record, DEFAULT, n) for n, record in enumerate(records)])))
    plans = [plan for plan in graph.plans if plan.name == "c"]
    compact = state.states[list(graph.plans).index(plans[0])].compact
    return {node.anchor: len(some) for node, some in zip(plans[0].program.cd.sources, compact.whole().messages, strict=True)}  # type: ignore[attr-defined]


STREAM = [{"type": kind, "time": 10 * n, "k": 1} for n in range(100) for kind in "abc"]


def test_what_cannot_be_joined_any_more_is_forgotten() -> None:
    """Without any `within`: B only follows A, by 50 ms at most."""
    book = rules("P and Q", P="{before: [A, B]}", Q="gap <= 50")
    assert kept(book, STREAM) == {"A": 6, "B": 1, "C": 0}
    book = rules("P", P="{before: [A, B]}")
    assert kept(book, STREAM) == {"A": 100, "B": 1, "C": 0}
    book = rules("P", P="A.k = B.k")
    assert kept(book, STREAM) == {"A": 100, "B": 100, "C": 0}


def test_a_message_is_kept_while_one_of_its_partners_may_come() -> None:
    assert kept(rules("P", P="{before: [A, B, C]}"), STREAM) == {"A": 100, "B": 100, "C": 1}
    assert kept(rules("P and Q", P="{before: [A, B]}", Q="C.time >= A.time"), STREAM) == {"A": 100, "B": 100, "C": 100}


def test_detections_may_be_older_than_the_clock() -> None:
    book = rules("P and Q", P="{before: [A, B]}", Q="gap <= 50")
    feeder = SourceText("f.ecl", "monitor m = repeat { push(b) { sequential { x, y } } }")
    fed = load(SourceText("r.cdl.yaml", book.files[0][0].text), feeder)
    assert kept(fed, STREAM) == {"A": 100, "B": 1, "C": 0}


def test_what_comes_bit_by_bit_is_forgotten_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of a second of events waits, whatever has been there before; keys are never the same."""
    monkeypatch.setattr(waiting_messages, "LEAST", 8)
    monkeypatch.setattr(kernel, "SHARE", 0)
    graph = Graph(rules("P", head=HEAD.replace("cd: c", "cd: c\nwithin: 200 ms"), P="A.k = B.k").plans("kernel"))
    state, made = graph.initial(), 0
    for n in range(800):
        kind, at = "ab"[n % 2], 5 * n
        made += len(graph.advance(state, EventBatch([event_of({"type": kind, "time": at, "k": n // 2}, DEFAULT, n)])))
        compact = state.states[0].compact
        assert len(compact) <= 2 * 41 + 2 * 8
        assert len(compact.chunks) < 8
        assert len(compact.keys) <= 4 * 100 + 8
    assert made == 400
