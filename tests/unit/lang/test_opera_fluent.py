"""The fluent binding: every line of the table of section 6."""

from __future__ import annotations

import pytest

from coincide.engines.embedded import Engine
from coincide.model.event import primitive
from coincide.opera import EMPTY, Param, any_of, anything_but, detect, event

a, b, c = event("A"), event("B"), event("C")


@pytest.mark.parametrize(
    ("pattern", "core"),
    [
        (event("Temp", "temp < 15", location="FE02").named("t"), "[Temp(location = 'FE02', temp < 15) as t]"),
        (event("Opening", door=Param("x")), "[Opening(door = ?x)]"),
        (any_of(a, b), "[A, B]"),
        (anything_but(c, among=any_of(a, c)), "[!C in {A, C}]"),
        (a.before(b), "[A in {A, B}]"),
        (a.after(b.repeated(3)), "[B] [B] [B] ; [A]"),
        (a.then(b), "[A] [B]"),
        (a + b, "[A] [B]"),
        (a.followed_by(b), "[A] ; [B]"),
        (a >> b, "[A] ; [B]"),
        (a.then(b, within="1h"), "([A], [B]) T-1 = 1h"),
        (a.then(b, by="19:00"), "([A], [B]) T-1 = at '19:00'"),
        (a.followed_by(b, within="1h"), "([A], eps ; [B]) T-1 = 1h"),
        (a.then(b.then(c, within="5min"), within="1h"), "([A], ([B], [C]) T-1 = 5min) T-2 = 1h"),
        (a.not_followed_by(b, c, within="5min"), "([A], [T-1 in {T-1, B, C}]) T-1 = 5min"),
        (a.wait("5min"), "([A], [T-1]) T-1 = 5min"),
        (a >> b | c, "[A] ; [B] | [C]"),
        ((a | b) & c, "[A] | [B] || [C]"),
        ((a >> b).without(c), "[([A] ; [B]) in {C}]"),
        ((a | b).repeated(at_least=2), "([A] | [B]) ([A] | [B]) ([A] | [B])*"),
        (a.repeated(), "[A]*"),
        (a + b.optional() + c, "[A] ([B] | eps) [C]"),
        (EMPTY, "eps"),
    ],
)
def test_core(pattern, core: str) -> None:
    assert pattern.core() == core


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_a_count_is_a_whole_number_above_0(count) -> None:
    with pytest.raises(ValueError, match="a number of times is a whole number above 0"):
        a.repeated(count)


def test_detect() -> None:
    assert detect("X", a >> b, policy="guaranteed", n="1 + 2").core() == "detect X policy guaranteed = [A] ; [B] with n = 1 + 2"
    assert detect("X", a.before(b)).core() == "detect X restart = [A in {A, B}]"
    assert detect("X", a.before(b), restart=False).core() == "detect X = [A in {A, B}]"


def test_a_statement_runs() -> None:
    engine = Engine(detect("X", a.named("a").then(b), who="a.who").source)
    made = engine.process([primitive("A", 1000, 1000, "1", {"who": "Peter"}), primitive("B", 2000, 2000, "2", {})])
    assert [(d.type, d.attributes) for d in made.events] == [("X", {"who": "Peter"})]
