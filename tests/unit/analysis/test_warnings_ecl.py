"""Warnings at the load (ecl.md, section 9) and settling (section 2)."""

from __future__ import annotations

import time

import pytest

import coincide
from coincide.analysis.report import monitor_warnings
from coincide.analysis.settle import check_settles
from coincide.errors import RuleError
from coincide.lang.ecl.definition import File, Machine
from coincide.lang.ecl.parse import parse
from coincide.source import SourceText


def rules(text: str) -> File:
    return parse(SourceText("rules.ecl", text))


def warnings(text: str) -> list[str]:
    return [warning.head for definition in rules(text).detectors for warning in monitor_warnings(definition)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("monitor m = repeat { push(x) { a } }", []),
        ("monitor m by k = repeat { push(x) { sequential { a, b } } }", []),
        (
            "monitor m = repeat { push(x) { a and b } }",
            [
                "rules.ecl:1:9: warning: vacuous: monitor 'm' can never push",
                "rules.ecl:1:22: warning: push 'x' in 'm' can never happen",
            ],
        ),
        ("monitor m = a", ["rules.ecl:1:9: warning: vacuous: monitor 'm' can never push"]),
        (
            "monitor m = push(x) { a }",
            ["rules.ecl:1:9: warning: monitor 'm' can push a bounded number of times only (no repeat?)"],
        ),
        (
            "monitor m = in (v < 5) do { repeat { push(x) { a } } } in (v > 3) do { repeat { push(y) { a } } }",
            [
                "rules.ecl:1:60: warning: guards 'v < 5' and 'v > 3' in 'm' can hold together: "
                "such an event switches between the two modes"
            ],
        ),
        (
            "monitor m = in (p) do { repeat { push(x) { a } } }",
            ["rules.ecl:1:17: warning: the mode 'p' in 'm' is the only one: its guard is never watched"],
        ),
        (
            "monitor m by k, l = do { repeat { push(x) { a } } } unless { b }",
            ["rules.ecl:1:9: warning: monitor 'm' keeps a state for each value of k, l for ever"],
        ),
        (
            "machine m { initial q; t: q on a -> q push(x); u: r on a -> r push(y); }",
            ["rules.ecl:1:63: warning: push 'y' in 'm' can never happen"],
        ),
    ],
)
def test_warnings(text: str, expected: list[str]) -> None:
    assert warnings(text) == expected


def test_a_state_as_good_as_the_start_is_forgotten() -> None:
    """After the first a it is never where it began, but no one can tell."""
    assert warnings("monitor m by k = sequential { a, repeat { push(x) { a } } }") != []
    assert warnings("monitor m by k = sequential { push(x) { a }, repeat { push(x) { a } } }") == []


def machine(text: str) -> Machine:
    (definition,) = rules(text).detectors
    assert isinstance(definition, Machine)
    return definition


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("machine A { initial q; t1: q -> r; t2: r -> q; }", "the internal transitions of machine 'A' never settle"),
        ("machine A { initial q; t: q clear none -> q; }", "the internal transitions of machine 'A' never settle"),
        (
            "machine A { initial o; t: o on a -> p; u: p on b -> q; t1: q -> r; t2: r -> q; }",
            "the internal transitions of machine 'A' never settle",
        ),
        ("machine A { initial q; t: q -> r push(x); }", "machine 'A' pushes before any event"),
    ],
)
def test_machines_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(RuleError) as refused:
        check_settles(machine(text))
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.head == f"rules.ecl:1:9: error: {message}"


def counter(bits: int, endless: str) -> str:
    """As many configurations as there are sets of events seen."""
    seen = " ".join(f"t{i}: w{i} on a{i} -> s{i};" for i in range(bits))
    return f"machine A {{ initial {', '.join(f'w{i}' for i in range(bits))}, o; {seen} {endless} }}"


ENDLESS = "u: o on e -> p; v: p -> r; w: r -> p;"


def test_beyond_the_limit_only_the_start_is_tried() -> None:
    check_settles(machine(counter(12, ENDLESS.replace("w: r -> p", "w: r -> q"))))
    with pytest.raises(RuleError):
        check_settles(machine(counter(11, ENDLESS)))
    check_settles(machine(counter(13, ENDLESS)))


def test_impossible_letters_do_not_count() -> None:
    check_settles(machine("machine A { initial o; t: o on a and b -> q; t1: q -> r; t2: r -> q; }"))


def test_warnings_of_a_monitor_too_large_to_explore_take_no_longer_than_others() -> None:
    many = ", ".join(f"a{number % 11}" for number in range(2000))
    rules = coincide.loads(f"monitor m = repeat {{ push(x) {{ accumulate {{ {many} }} }} }}")
    begin = time.process_time()
    assert rules.warnings == ()
    assert time.process_time() - begin < 4
