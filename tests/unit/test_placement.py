"""Algorithms of placement side by side, on random networks; errors of restriction graphs."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from coincide.distribution.exact import exact, score
from coincide.distribution.network import Network, NodeValues
from coincide.distribution.placement import Placement, Setting, fits, heuristic
from coincide.distribution.restrictions import RestrictionGraph, parse_graph
from coincide.errors import RuleError
from coincide.source import SourceText

CD = (
    '<cd id="{}"><sources><source class="in"/></sources><predicates><predicate name="any" anchor="P">S1</predicate></predicates>'
    '<expressions><expression anchor="X">P</expression></expressions><events><event class="{}" trigger="X"/></events></cd>'
)


def graph(operators: dict[str, str], restrictions: str, pins: str = "") -> RestrictionGraph:
    """Names of descriptions with the restrictions that they refer to."""
    texts = []
    for name, references in operators.items():
        refers = "".join(f'<restrictionReference ref="{reference}"/>' for reference in references.split())
        texts.append(f"<operator>{CD.format(name, name)}{refers}</operator>")
    text = f"<operators>{''.join(texts)}</operators><pins>{pins}</pins><restrictions>{restrictions}</restrictions>"
    return parse_graph(SourceText("rules.rg.xml", f'<restrictionGraph id="g" version="1">{text}</restrictionGraph>'))


def random_setting(rng: random.Random) -> Setting:
    names = [f"n{n}" for n in range(rng.randrange(2, 5))]
    nodes = {name: NodeValues(name, ram=rng.randrange(50, 400), bids=rng.random() < 0.9) for name in names}
    latency = {frozenset(pair): float(rng.randrange(1, 12)) for pair in itertools.combinations(names, 2) if rng.random() < 0.9}
    return Setting(Network(nodes, {"latency": latency, "bandwidth": {}, "hops": {}}))


def random_graph(rng: random.Random) -> RestrictionGraph:
    links = [f'<restriction id="l{n}" type="maxDistance" max="{rng.randrange(1, 9)}"/>' for n in range(3)]
    memory = [f'<restriction id="m{n}" type="memory" min="{rng.randrange(50, 250)}"/>' for n in range(2)]
    operators = {"A": "l0 l1 m0", "B": "l0 l2 d", "C": "l1 l2 m1", "D": "d"}
    return graph(operators, "".join([*links, *memory, '<restriction id="d" type="distinct"/>']))


def all_assignments(made: RestrictionGraph, setting: Setting, placement: Placement) -> list[dict[str, str]]:
    """By trying everything."""
    found = []
    for nodes in itertools.product(*([node for node, _ in placement.domains[name]] for name in made.names)):
        places: dict[str, str] = {}
        for name, node in zip(made.names, nodes, strict=True):
            if not fits(made, setting.network, name, node, places):
                break
            places[name] = node
        else:
            found.append(places)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_heuristic_finds_one_and_the_exact_algorithm_the_best(seed: int) -> None:
    rng = random.Random(seed)
    made, setting = random_graph(rng), random_setting(rng)
    first, best = heuristic(made, setting), exact(made, setting)
    every = all_assignments(made, setting, first)
    if not every:
        assert first.assignment is None
        assert best.assignment is None
        return
    assert first.assignment in every
    assert best.assignment is not None
    assert score(best, best.assignment) == max(score(best, one) for one in every)


@pytest.mark.parametrize(
    ("restriction", "reference", "message"),
    [
        ('<restriction id="r" type="memry" min="1"/>', "r", "unknown restriction type 'memry'"),
        ('<restriction id="r" type="memory" min="1"/>', "x", "unknown restriction 'x'"),
        ('<restriction id="r" type="memory" min="1" pins="p"/>', "r", "unknown pin 'p'"),
        ('<restriction id="r" type="maxDistance" max="1"/>', "r", "restriction 'r' needs two operands, it has 1"),
        ('<restriction id="r" type="maxDistance" max="1e999"/>', "r", "'max' is not a number"),
        ('<restriction id="r" type="maxDistance"/>', "r", "needs 'max'"),
        ('<restriction id="r" type="memory" min="1" kind="rom"/>', "r", "unknown kind 'rom'"),
    ],
)
def test_errors(restriction: str, reference: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        graph({"A": reference}, restriction)


def test_what_is_wrong_with_a_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from coincide.cli.main import main

    path = tmp_path / "t.json"
    for text, message in [
        ('{"nodes": 1}', "Expected `array`"),
        ('{"task": "plaice"}', "unknown task 'plaice'"),
        ('{"nodes": []}', "takes one restriction graph"),
    ]:
        path.write_text(text)
        assert main(["place", str(path)]) == 2
        assert message in capsys.readouterr().err
