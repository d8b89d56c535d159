"""Divided descriptions detect what the whole one does, over random descriptions and events."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import msgspec
import pytest

import coincide
from coincide.distribution.divided import divided_file
from coincide.distribution.division import Division, divide
from coincide.lang.cdl.parse import parse
from coincide.lang.cdl.print import print_file
from coincide.model.event import HEARTBEAT, Event, primitive
from coincide.network.simulation import Simulation
from coincide.source import SourceText

COMPARISONS = ("equal", "equal", "greater", "less", "notEqual")


def random_description(rng: random.Random) -> str:
    sources = [f"S{n}" for n in range(1, rng.randrange(4, 7))]
    declared = "".join(_source(rng, sources, number) for number in range(len(sources)))
    pairs = [(a, b) for n, a in enumerate(sources) for b in sources[n + 1 :]]
    chosen = rng.sample(pairs, rng.randrange(2, min(6, len(pairs) + 1)))
    computed = [(f"C{n}", f"{a}.v - {b}.k") for n, (a, b) in enumerate(chosen) if rng.random() < 0.4]
    predicates = [(f"P{n}", _predicate(rng, a, b, dict(computed).get(f"C{n}") and f"C{n}")) for n, (a, b) in enumerate(chosen)]
    predicates += [("Q", f'name="greater" anchor="Q">{rng.choice(sources)}.k, 0')] if rng.random() < 0.5 else []
    text = " and ".join(f"not {name}" if rng.random() < 0.15 else name for name, _ in predicates)
    given = "".join(f'<attribute name="x{s}" type="int">{s}.v</attribute>' for s in sources if rng.random() < 0.6)
    given += "".join(f'<attribute name="y{c}" type="int">{c}</attribute>' for c, _ in computed if rng.random() < 0.6)
    computations = "".join(f'<computation type="int" anchor="{c}">{tree}</computation>' for c, tree in computed)
    tests = "".join(f"<predicate {inside}</predicate>" for _, inside in predicates)
    within = rng.choice(('within="40"', ""))
    return (
        f'<cd id="c" version="1" {within}><sources>{declared}</sources><computations>{computations}</computations>'
        f'<predicates>{tests}</predicates><expressions><expression anchor="X">{text}</expression></expressions>'
        f'<events><event class="out" trigger="X">{given}</event></events></cd>'
    )


def _source(rng: random.Random, sources: list[str], number: int) -> str:
    optional = rng.choice(("true", "false"))
    own = f'<attribute name="v" type="int" optional="{optional}">{_filter(rng, sources, number)}</attribute>'
    return f'<source class="{rng.choice("abc")}" anchor="{sources[number]}"><attribute name="k" type="int"/>{own}</source>'


def _filter(rng: random.Random, sources: list[str], number: int) -> str:
    if number == 0 or rng.random() < 0.75:
        return ""
    return f'<filter operators="{rng.choice(("equal", "greater"))}">{sources[number - 1]}.k</filter>'


def _predicate(rng: random.Random, a: str, b: str, computation: str | None) -> str:
    number = {"equal": "k", "notEqual": "k"}
    name = rng.choice(COMPARISONS)
    anchor = "P{}"
    field = number.get(name, "v")
    values = f"{computation}, 0" if computation and rng.random() < 0.7 else f"{a}.{field}, {b}.{field}"
    return f'name="{name}" anchor="{anchor}">{values}'


def random_events(rng: random.Random) -> list[dict[str, Any]]:
    found = []
    for number in range(rng.randrange(6, 18)):
        event = {"type": rng.choice("abc"), "id": f"e{number}", "time": rng.randrange(60), "k": rng.randrange(3)}
        found.append(event | ({"v": rng.randrange(4)} if rng.random() < 0.9 else {}))
    return sorted(found, key=lambda event: event["time"])


def detected(text: str, events: list[dict[str, Any]]) -> Counter[bytes]:
    made = coincide.detect(coincide.loads(text, "cdl"), events)
    return Counter(msgspec.json.encode({n: v for n, v in d.items() if n != "id"}, order="sorted") for d in made)


def numbered(text: str) -> str:
    """Each predicate with its own anchor."""
    parts = text.split("P{}")
    return parts[0] + "".join(f"P{n}{part}" for n, part in enumerate(parts[1:]))


def made_division(text: str) -> tuple[str, Division]:
    file = parse(SourceText("c.cdl.xml", text))
    division = divide(file.descriptions[0], {"out"})
    return print_file(divided_file(file, division)), division


TIMES = int(os.environ.get("COINCIDE_EXAMPLES_TIMES", "1"))


@pytest.mark.filterwarnings("ignore::coincide.errors.DataWarning")
def test_divided_is_whole(in_full: bool) -> None:
    rng, number = random.Random(7), 120 * TIMES if in_full else 40
    divided, found = 0, 0
    for _ in range(number):
        text = numbered(random_description(rng))
        printed, division = made_division(text)
        divided += division.divided
        events = random_events(rng)
        whole = detected(text, events)
        found += whole.total()
        assert detected(printed, events) == whole, f"{text}\n{printed}\n{events}"
    assert divided > number // 3
    assert found > number // 2


NODES = {"a": {"b": 2.0}, "b": {"a": 2.0, "c": 20.0}, "c": {"b": 20.0}}


def in_a_network(parts: list[str], events: list[dict[str, Any]], rng: random.Random) -> Counter[bytes]:
    """Each part is carried by some node, and moved while events come."""
    simulation = Simulation(NODES, rng)
    for number, part in enumerate(parts):
        more = {"rules": part, "ending": "cdl", "detection": "guaranteed", "node": rng.choice("abc")}
        simulation.command("subscribe", "*", rng.choice(("minimum-latency", "minimum-load")), f"u{number}", **more)
    for kind in "abc":
        simulation.announce(kind, "s", rng.choice("abc"))
    simulation.run()
    detectors = list(simulation.nodes["a"].directory.state.detectors)
    for event in events:
        time = event["time"] * 1000
        attributes = {name: float(value) for name, value in event.items() if name in ("k", "v")}
        simulation.broker.now += 1000
        simulation.publish(primitive(event["type"], time, time, event["id"], attributes, "s"))
        if rng.random() < 0.3:
            simulation.command("migrate", rng.choice(detectors), rng.choice("abc"))
        simulation.some(rng.randrange(3))
        if rng.random() < 0.03 and len(simulation.nodes) == 3:
            simulation.kill(rng.choice("abc"))
            simulation.pass_time(4.0)
    simulation.publish(Event(HEARTBEAT, 10**9, 10**9, None, {}, (), "s"), *"abc")
    simulation.pass_time(8.0)
    made = simulation.detections(f"u{len(parts) - 1}")
    return Counter(msgspec.json.encode(each, order="sorted") for each in made)


@pytest.mark.filterwarnings("ignore::coincide.errors.DataWarning")
def test_divided_over_nodes_is_whole() -> None:
    rng = random.Random(11)
    divided, found = 0, 0
    for _ in range(8 * TIMES):
        text = numbered(random_description(rng))
        printed, division = made_division(text)
        if not division.divided:
            continue
        divided += 1
        events = random_events(rng)
        whole = detected(text, events)
        found += whole.total()
        assert in_a_network(documents(printed), events, rng) == whole, f"{text}\n{printed}\n{events}"
    assert divided > 3
    assert found > 5


def documents(text: str) -> list[str]:
    return [f"<cd {part.partition('</cd>')[0]}</cd>" for part in text.split("<cd ")[1:]]
