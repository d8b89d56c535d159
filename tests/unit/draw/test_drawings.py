"""Drawings of rules: what they show, in each form, and that nothing in them overlaps."""

from __future__ import annotations

from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.draw.dot import dot
from coincide.draw.ecl import machine
from coincide.draw.graph import Drawing
from coincide.draw.layout import Box, laid_out
from coincide.draw.mermaid import mermaid
from coincide.draw.opera import composition
from coincide.draw.rules import drawing
from coincide.draw.states import automata
from coincide.draw.svg import svg
from coincide.errors import CoincideError
from coincide.rulebook import loads


def definition(text: str, language: str = "ce") -> Any:
    return loads(text, language).detectors[0].definition


def shapes(drawing: Drawing) -> list[tuple[str, str]]:
    return [(node.shape, node.label) for node in drawing.nodes]


def ways(drawing: Drawing) -> set[tuple[str, str, str]]:
    labels = {node.name: node.label or node.shape for node in drawing.nodes}
    return {(labels[a.source], a.kind, labels[a.target]) for a in drawing.arrows}


def test_plumbing() -> None:
    drawn = composition(definition("detect X = ([A] ; [B] | [C], [T in {T, D}]) T = 5min"))
    assert shapes(drawn) == [
        ("tap", "A"), ("tap", "B"), ("tap", "C"), ("junction", ""), ("timer", "T = 5min"), ("tap", "T"), ("result", "X"),
    ]  # fmt: skip
    assert ways(drawn) == {
        ("A", "valve", "B"), ("B", "pipe", "junction"), ("C", "pipe", "junction"), ("junction", "pipe", "T = 5min"),
        ("T = 5min", "pipe", "T"), ("T", "pipe", "X"),
    }  # fmt: skip
    assert drawn.nodes[5].notes == ("in T, D",)


def test_plumbing_of_loops_tanks_and_nothing() -> None:
    drawn = composition(definition("detect X = [A] ([B]* || [C]) ([D] | eps)".replace("[B]*", "[B] [B]*")))
    assert ("tank", "both") in shapes(drawn)
    assert ("junction", "eps") in shapes(drawn)
    assert {("*", "pipe", "B"), ("B", "pipe", "*")} <= ways(drawn)
    assert {("*", "pipe", "both"), ("C", "pipe", "both")} <= ways(drawn)


def test_domains_of_groups_are_notes_of_every_tap_inside() -> None:
    drawn = composition(definition("detect X = [A] [[B][C] in {D, E(v > 3)}]"))
    assert [node.notes for node in drawn.nodes] == [(), ("in D, E(v > 3)",), ("in D, E(v > 3)",), ()]


def test_the_states_of_scenario_two() -> None:
    """Section 8, example 7: S0 dom {BoardOn} → S1 dom {Seen, BoardOff}, Seen → S2, same domain, and so on."""
    drawn = automata(definition("detect Meeting = [BoardOn] [[Seen][Seen]*[BoardOff] in {Seen, BoardOff}]"))
    states = [(node.label, node.shape, node.notes) for node in drawn.nodes[1:]]
    assert states == [
        ("S0", "state", ("{BoardOn}",)),
        ("S1", "state", ("{Seen, BoardOff}",)),
        ("S2", "state", ("{Seen, BoardOff}",)),
        ("S3", "final", ()),
    ]
    assert [(a.source, a.target, a.labels) for a in drawn.arrows[1:]] == [
        ("S0", "S1", ("BoardOn",)), ("S1", "S2", ("Seen",)), ("S2", "S2", ("Seen",)), ("S2", "S3", ("BoardOff",)),
    ]  # fmt: skip


def test_strong_transitions_and_timers() -> None:
    drawn = automata(definition("detect X = ([A], eps ; [B]) T = 1s"))
    assert [(a.kind, a.labels) for a in drawn.arrows] == [("begin", ()), ("weak", ("A", "sets T = 1s")), ("strong", ("B",))]


def test_sides_of_parallel_have_automata_of_their_own() -> None:
    drawn = automata(definition("detect X = [A] || [B] ; [C]"))
    assert {a.labels for a in drawn.arrows} == {
        (), ("P and Q",), ("P only",), ("Q only",), ("P",), ("Q",), ("A",), ("B",), ("C",),
    }  # fmt: skip
    assert {node.label[0] for node in drawn.nodes if node.shape == "final"} == {"S", "P", "Q"}


def test_the_smallest_machine_of_a_monitor() -> None:
    text = "monitor m by user = repeat { do { push(x) { sequential { failed, failed, ok } } } unless { reset } }"
    drawn = machine(definition(text, "ecl"))
    assert drawn.caption == "monitor m, one for each user"
    assert {(a.source, a.target, a.labels) for a in drawn.arrows} == {
        ("start", "q0", ()),
        ("q0", "q1", ("failed",)),
        ("q1", "q0", ("reset",)),
        ("q1", "q2", ("failed",)),
        ("q2", "q0", ("reset", "ok → x")),
    }


def test_conditions_of_monitors_tell_arrows_apart() -> None:
    drawn = machine(definition("monitor m = repeat { push(x) { accumulate { v > 5, w = 1 } } }", "ecl"))
    labels = {label for arrow in drawn.arrows for label in arrow.labels}
    assert {"v > 5 and w = 1 → x", "v > 5 and not w = 1", "w = 1 and not v > 5"} <= {_sorted(label) for label in labels}


def _sorted(label: str) -> str:
    """With what must hold first."""
    condition, arrow, pushed = label.partition(" → ")
    return " and ".join(sorted(condition.split(" and "), key=lambda part: (part.startswith("not "), part))) + arrow + pushed


def test_machines_nobody_can_read_are_refused() -> None:
    steps = ", ".join(f"e{n}" for n in range(11))
    with pytest.raises(CoincideError, match="'m' has"):
        machine(
            definition(f"monitor m = push(x) {{ sequential {{ accumulate {{ {steps} }}, accumulate {{ {steps} }} }} }}", "ecl")
        )


AWKWARD = definition("""detect X = [A(v = 'a"b|<c>' and w < 3)] ; [B]""")


def test_dot_text() -> None:
    text = dot([composition(AWKWARD)])
    assert text.startswith('digraph "X" {')
    assert '''label="A(v = 'a\\"b|<c>' and w < 3)"''' in text
    assert '"n0" -> "n1" [penwidth=3, color="black:invis:black"];' in text


def test_mermaid_text() -> None:
    text = mermaid([composition(AWKWARD), automata(AWKWARD)])
    assert text.startswith("flowchart LR\n  subgraph g0 [")
    assert "g0n0([\"A(v = 'a#34;b#124;#60;c#62;' and w #60; 3)\"])" in text
    assert "g0n0 ==> g0n1" in text
    assert text.count("  end\n") == 2


def test_svg_is_xml_that_names_everything() -> None:
    root = ElementTree.fromstring(svg([composition(AWKWARD), automata(AWKWARD)]))
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"X", "B", "S0", "S2", """A(v = 'a"b|<c>' and w < 3)"""} <= set(texts)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, Box], list[tuple[str, str]]]:
    names = [f"n{n}" for n in range(draw(st.integers(1, 8)))]
    ends = st.sampled_from(names)
    return {name: Box(20.0, 20.0, 30.0) for name in names}, draw(st.lists(st.tuples(ends, ends), max_size=14, unique=True))


@settings(deadline=None, max_examples=80)
@given(graphs())
def test_nothing_overlaps(graph: tuple[dict[str, Box], list[tuple[str, str]]]) -> None:
    nodes, arrows = graph
    labels = {n: Box(25.0, 18.0, 4.0) for n, (a, b) in enumerate(arrows) if a != b}
    routes, width, height = laid_out(nodes, arrows, labels)
    boxes = [*nodes.values(), *labels.values()]
    for one, other in combinations(boxes, 2):
        apart = abs(one.x - other.x) >= one.half + other.half
        assert apart or one.y + one.below <= other.y - other.above or other.y + other.below <= one.y - one.above
    assert all(box.x - box.half >= 0 and box.x + box.half <= width + 1e-6 for box in boxes)
    assert all(box.y - box.above >= -1e-6 and box.y + box.below <= height + 1e-6 for box in boxes)
    for (source, target), route in zip(arrows, routes, strict=True):
        assert (route.points[0], route.points[-1]) == (nodes[source], nodes[target])


def test_equal_arrows_are_one() -> None:
    drawn = automata(definition("detect X = [S] ([A] | [B])* [C]"))
    assert ("S1", "S1", ("A", "B")) in [(a.source, a.target, a.labels) for a in drawn.arrows]


# Trees of operators, lifespans, descriptions.


def drawn(text: str, language: str) -> Drawing:
    found = drawing(loads(text, language).detectors[0])
    assert found is not None
    return found


def told(picture: Drawing) -> set[tuple[str, str, str]]:
    """Arrows by the labels of their ends, with their words."""
    labels = {node.name: node.label or node.shape for node in picture.nodes}
    return {(labels[a.source], " ".join(a.labels), labels[a.target]) for a in picture.arrows}


def notes(picture: Drawing) -> dict[str, tuple[str, ...]]:
    return {node.label: node.notes for node in picture.nodes}


def test_algebra() -> None:
    text = "# why\ndetect storm per room = (cold{t < 0} as c ; not calm ; wind*{2,}) within 2h with recent  # so\n  give t = c.t"
    picture = drawn(text, "ecco")
    assert told(picture) == {
        ("cold", "1", "then"), ("calm", "2: none of", "then"), ("2 or more times", "3", "then"),
        ("wind", "", "2 or more times"), ("then", "", "storm"),
    }  # fmt: skip
    assert notes(picture)["cold"] == ("t < 0", "as c")
    assert notes(picture)["then"] == ("within 2h", "with recent")
    assert notes(picture)["storm"] == ("per room", "with t")
    expected = "detect storm per room = (cold{t < 0} as c ; not calm ; wind*{2,}) within 2h with recent give t = c.t"
    assert picture.caption == expected


def test_algebra_of_all_operators() -> None:
    text = "detect x = ((a | b overlaps c) - d + e || f) ; not g over 90s ; (h^AVG(v) over 30min every 10min) ; i^FIRST"
    words = {label for label, _ in ((node.label, 0) for node in drawn(text, "ecco").nodes if node.shape == "operator")}
    assert words == {"or", "overlaps", "without", "and", "at the same time", "then", "none for 90s",
                     "avg of v over 30min every\n10min", "first"}  # fmt: skip


def test_situations_in_their_lifespans() -> None:
    rules = """<amit><event name="o"/><event name="a"><eventAttribute name="v" type="number"/></event><event name="e"/>
    <lifespan name="shift"><initiator><startup/><eventInitiator event="o" correlate="add"/></initiator>
      <terminator><eventTerminator event="e" terminationType="discard"/><expirationInterval timeInterval="8 h"/></terminator>
    </lifespan>
    <situation name="s" lifespan="shift"><sequence><operandSequence event="a" as="x" threshold="v > 3"/>
      <operandSequence event="o" quantifier="last"/></sequence></situation></amit>"""
    picture = drawn(rules, "amit")
    assert told(picture) == {
        ("start", "opens at the start", "shift"), ("o", "opens, each time (add)", "shift"), ("e", "closes, discards", "shift"),
        ("shift", "while it is open", "sequence"), ("a", "1", "sequence"), ("o", "2", "sequence"), ("sequence", "", "s"),
    }  # fmt: skip
    assert notes(picture)["shift"] == ("for 8h",)
    assert notes(picture)["a"] == ("as x", "v > 3", "the first one")


def test_descriptions() -> None:
    rules = """{cd: late, within: 1 hour,
      sources: {O: {class: order, attributes: {n: {type: int, filter: n > 0}}}, P: {collection: part},
                T: {trigger: O, relative: 10 s}},
      computations: {wait: {double: T.time - O.time}},
      predicates: {long: wait > 60, heavy: {greater: [count(P), O.n]}},
      expressions: {X: long and heavy},
      events: {late: {trigger: X, attributes: {n: {int: O.n}, w: {double: wait}}}}}"""
    picture = drawn(rules, ".cdl.yaml")
    wait, long, heavy, logic = "wait = T.time - O.time", "long: wait > 60", "heavy: count(P) > O.n", "X: long and heavy"
    assert told(picture) == {
        ("O: order", "", "T: 10s after O"), ("O: order", "", wait), ("T: 10s after O", "", wait), (wait, "", long),
        ("O: order", "", heavy), ("P: part", "", heavy), (long, "", logic), (heavy, "", logic), (logic, "", "late"),
        (wait, "", "late"),
    }  # fmt: skip
    assert notes(picture)["O: order"] == ("within 1h", "n > 0")
    assert [node.shape for node in picture.nodes[:3]] == ["event", "collection", "timer"]


def test_states_are_told_by_the_way_to_them() -> None:
    picture = drawn("monitor m = repeat { push(x) { sequential { a, loop(2) { b }, c } } }", "ecl")
    assert [(n.label, n.notes) for n in picture.nodes[1:]] == [
        ("0", ()), ("1", ("after a",)), ("2", ("after a, b",)), ("3", ("after a, b ×2",))
    ]  # fmt: skip


def test_phrases_are_what_the_rule_says() -> None:
    picture = drawn('"office starts" means Door where open = true.\nReport Day when "office starts" then Badge.', "pretty")
    assert shapes(picture)[0] == ("tap", '"office starts"')
    assert "p_" not in picture.caption


def test_queries() -> None:
    picture = drawn(
        """// @name lateral
        sequence by host with maxspan=5m [login where ok == false] with runs=3 ![reset where true] ![block where ok == true]
          [start where name : "cmd*"] ![stop where true] until [leave where true] | head 2""",
        "eql",
    )
    assert picture.caption == "sequence by host within 5m"
    assert told(picture) == {
        ("start", "", "login"), ("login", "no reset no block ok == true", "start"), ("start", "no stop", "5m"),
        ("5m", "", "lateral"), ("until leave", "drops what is pending", "login"),
    }  # fmt: skip
    assert notes(picture)["login"] == ("ok == false", "3 times")
    assert notes(picture)["lateral"] == ("head 2",)
    sample = drawn("// @name s\nsample by k [a where true] [b where v > 1]", "eql")
    assert told(sample) == {(name, "", "all of them, in any order") for name in "ab"} | {("all of them, in any order", "", "s")}
    assert told(drawn("// @name f\na where true", "eql")) == {("a", "", "f")}
