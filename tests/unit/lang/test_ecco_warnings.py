"""Warnings of ECCO about memory: where something really grows, and where a bound does not do what it seems to."""

from __future__ import annotations

import pytest

from coincide.detection.algebra.nodes.iteration import RunState
from coincide.engines.graph import Graph
from coincide.lang.ecco.warnings import KEPT, TOO_LONG
from coincide.model.batch import EventBatch
from coincide.model.event import primitive
from coincide.rulebook import loads

ENDLESS = "the elements of the iteration are kept for ever; add 'within T'"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a ; b", [KEPT]),
        ("a ; not b over 5", []),
        ("a ; not b over 5 ; c", [KEPT]),
        ("a ; b within 5s", []),
        ("a ; b within 5s ; c", [KEPT]),
        ("a valid 5s ; b ; c", []),
        ("a ; b valid 5s ; c", [KEPT]),
        ("a valid 5s + b", [KEPT]),
        ("a valid 5s + b valid 5s", []),
        ("a ; x* ; b", [KEPT]),
        ("(a ; x* ; b) within 5s", []),
        ("a*", [ENDLESS]),
        ("a*{3}", []),
        ("(a | b)*{3}", [ENDLESS]),
        ("a*{3} with cumulative", []),
        ("(failed*{1,} ; accepted) within 1h", [TOO_LONG]),
        ("(failed*{2,3} ; accepted) within 1h", [TOO_LONG]),
        ("(failed*{3} ; accepted) within 1h", []),
        ("(failed*{1,} within 1h ; accepted) within 1h", []),
    ],
)
def test_what_is_kept_for_ever(body: str, expected: list[str]) -> None:
    assert [warning.message for warning in loads(f"detect found = {body}", "ecco").warnings] == expected


def test_runs_that_can_be_of_no_use_are_not_kept() -> None:
    rules = loads("detect found = (failed*{1,} ; accepted) within 1s", "ecco")
    graph = Graph(rules.plans("interpreter"))
    state = graph.initial()
    for number in range(100):
        time = number * 100_000
        graph.advance(state, EventBatch([primitive("failed", time, time, str(number), {})]))
    ((copy,),) = (copies.values() for copies in state.states[0].copies)
    (run,) = [own for own in copy.states if isinstance(own, RunState)]
    assert len(run.elements) == 1
