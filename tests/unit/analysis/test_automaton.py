"""Exploring, minimising and multiplying machines."""

from __future__ import annotations

import random

import pytest

from coincide.analysis.automaton import Automaton, Exploration, product, tabled
from coincide.analysis.letters import LimitExceeded, alphabet
from coincide.analysis.monitor import MonitorAnalysis, as_multiset
from coincide.analysis.partition import coarsest, depths, reaching, strong_components
from coincide.detection.machine.transducer import transducer
from coincide.lang.ecl.definition import File
from coincide.lang.ecl.parse import parse
from coincide.source import SourceText


def rules(text: str) -> File:
    return parse(SourceText("rules.ecl", text))


def analysis(text: str) -> MonitorAnalysis:
    return MonitorAnalysis(rules(text).detectors[0])


def test_exploration_steps_as_the_transducer_does() -> None:
    """Also where a step looks at some labels only: the guard that holds hides the others."""
    machine = transducer(
        rules(
            "monitor m = in (p) do { repeat { push(x) { accumulate { v > 1, w > 1 } } } } in (q) do { push(y) { a } }"
            " in (v > 3) do { sequential { push(y) { w > 1 }, push(z) { p } } }"
        ).detectors[0]
    )
    explored = Exploration(machine, alphabet([label.test for label in machine.labels]).letters)
    automaton = explored.automaton
    for state, configuration in enumerate(explored.configurations):
        for letter, column in zip(explored.letters, automaton.columns, strict=True):
            following, emitted = machine.step(configuration, letter)
            assert automaton.following[state][column] == explored.numbers[following]
            tokens = [machine.outputs[output].token for output in emitted]
            assert [symbol[0] for symbol in automaton.answers[automaton.answering[state][column]]] == tokens


def test_order_counts_for_optimisers_only() -> None:
    """Both states push x and y, in one order or the other."""
    d = analysis(
        "machine m { initial p; t1: p on a -> q push(x); t2: p on a -> push(y); t3: q on a -> p push(y); t4: q on a -> push(x); }"
    ).deterministic.automaton
    assert d.minimal(as_multiset).states < d.minimal(lambda answer: answer).states


def test_letters_that_do_the_same_share_a_column() -> None:
    d = analysis("monitor m = repeat { push(x) { a or b } }").deterministic.automaton
    assert len(set(d.columns)) == 2
    assert len(set(analysis("monitor m = repeat { push(x) { select { a, b } } }").deterministic.automaton.columns)) == 2


def test_minimal_machines_of_random_tables() -> None:
    """Against comparing the answers to all short words."""
    chance = random.Random(11)
    for _ in range(150):
        size, width = chance.randint(1, 7), chance.randint(1, 3)
        following = [[chance.randrange(size) for _ in range(width)] for _ in range(size)]
        answering = [[chance.randint(0, 1) for _ in range(width)] for _ in range(size)]
        blocks = coarsest(following, answering)
        seen = [responses(following, answering, state, size) for state in range(size)]
        assert [[a == b for a in blocks] for b in blocks] == [[a == b for a in seen] for b in seen]
        assert list(dict.fromkeys(blocks)) == list(range(max(blocks) + 1))


def responses(following: list[list[int]], answering: list[list[int]], state: int, depth: int) -> tuple[object, ...]:
    if depth == 0:
        return ()
    below = (responses(following, answering, target, depth - 1) if depth > 1 else () for target in following[state])
    return (*answering[state], *below) if depth < 4 else (*answering[state], *map(hash, below))


def test_long_chains() -> None:
    """More rounds than are refined as a whole."""
    size = 300
    following = [[min(state + 1, size - 1), state] for state in range(size)]
    answering = [[int(state == size - 2), 0] for state in range(size)]
    assert coarsest(following, answering) == list(range(size))
    two = following + [[min(size + state + 1, 2 * size - 1), size + state] for state in range(size)]
    assert coarsest(two, answering + answering) == list(range(size)) * 2


def test_product_keeps_order_and_counts_states() -> None:
    d = analysis("monitor m = repeat(70) { push(x) { a } }").deterministic.automaton
    one = product(d.tagged(0), d.tagged(1))
    assert one.states == 71
    assert max(one.answers, key=len) == ((0, ("x", ())), (1, ("x", ())))
    swapped = d.over([1 - column for column in d.columns])
    with pytest.raises(LimitExceeded):
        product(d, swapped)


def test_equal_columns_become_one() -> None:
    automaton = tabled([0, 1, 2], [[0, 1, 0], [1, 0, 1]], [[0, 0, 0], [1, 1, 1]], ((), ("x",)))
    assert automaton == Automaton((0, 1, 0), [[0, 1], [1, 0]], [[0, 0], [1, 1]], ((), ("x",)))


def test_graphs() -> None:
    successors = [[1], [2], [1, 3], [3], [0]]
    assert reaching(successors, [1]) == {0, 1, 2, 4}
    assert depths(successors[:4]) == [0, 1, 2, 3]
    component = strong_components(successors)
    assert component[1] == component[2]
    assert len(set(component)) == 4


def test_strong_components_of_random_graphs() -> None:
    chance = random.Random(5)
    for _ in range(200):
        size = chance.randint(1, 8)
        successors = [[chance.randrange(size) for _ in range(chance.randint(0, 3))] for _ in range(size)]
        component = strong_components(successors)
        to = [reaching(successors, [state]) for state in range(size)]
        for a in range(size):
            for b in range(size):
                assert (component[a] == component[b]) == (a in to[b] and b in to[a])
