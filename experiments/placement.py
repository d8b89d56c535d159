"""How often does placement step back? The paper's seven nodes (distribution-cordies.md, section 6), and larger networks.

The graph of the paper is not available; this one follows the rule of the reference, so the paper's figures (75 % of runs without
backsteps, at most 14) are compared with, not reproduced."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from time import process_time

from coincide.distribution.exact import exact, score
from coincide.distribution.network import Network, NodeValues
from coincide.distribution.placement import Setting, heuristic
from coincide.distribution.restrictions import RestrictionGraph, parse_graph
from coincide.source import SourceText

RAM = {
    "n1": (800, 1400),
    "n2": (300, 400),
    "n3": (400, 400),
    "n4": (400, 400),
    "n5": (200, 200),
    "n6": (400, 400),
    "n7": (100, 200),
}
LATENCY = {
    "12": 9, "13": 6, "14": 6, "15": 6, "16": 4, "17": 24, "27": 24, "23": 5, "24": 5, "25": 5, "26": 5,
    "37": 21, "47": 21, "57": 21, "34": 1, "35": 1, "36": 2, "46": 2, "56": 2, "45": 1, "67": 22,
}  # fmt: skip
MEMORY = (300, 200, 200, 200, 100)
LINKS = {"1 2": 6, "1 5": 7, "2 3": 10, "2 4": 10}
PINNED = {"3": ("publisher", 10), "4": ("publisher", 10), "5": ("publisher", 10), "1": ("subscriber", 7)}
RUNS = 1000

CD = (
    '<cd id="CD{0}"><sources><source class="raw"/></sources>'
    '<predicates><predicate name="any" anchor="P">S1</predicate></predicates>'
    '<expressions><expression anchor="X">P</expression></expressions><events><event class="e{0}" trigger="X"/></events></cd>'
)


def graph() -> RestrictionGraph:
    refers: dict[str, list[str]] = {str(n): [f"m{n}"] for n in range(1, 6)}
    restrictions = [f'<restriction id="m{n}" type="memory" min="{least}"/>' for n, least in enumerate(MEMORY, 1)]
    for pair, most in LINKS.items():
        a, b = pair.split()
        restrictions.append(f'<restriction id="l{a}{b}" type="maxDistance" max="{most}"/>')
        refers[a].append(f"l{a}{b}")
        refers[b].append(f"l{a}{b}")
    for a, (pin, most) in PINNED.items():
        restrictions.append(f'<restriction id="p{a}" type="maxDistance" max="{most}" pins="{pin}"/>')
        refers[a].append(f"p{a}")
    for a in ("3", "4"):
        restrictions.append(f'<restriction id="d{a}" type="distinct"/>')
        refers[a].append(f"d{a}")
        refers["5"].append(f"d{a}")
    return _parsed(refers, restrictions, '<pin id="publisher" device="n2"/><pin id="subscriber" device="n1"/>')


def _parsed(refers: dict[str, list[str]], restrictions: list[str], pins: str) -> RestrictionGraph:
    operators = "".join(f"<operator>{CD.format(name)}{_references(names)}</operator>" for name, names in refers.items())
    inside = f"<operators>{operators}</operators><pins>{pins}</pins><restrictions>{''.join(restrictions)}</restrictions>"
    return parse_graph(SourceText("paper.rg.xml", f'<restrictionGraph id="g" version="1">{inside}</restrictionGraph>'))


def _references(names: list[str]) -> str:
    return "".join(f'<restrictionReference ref="{name}"/>' for name in names)


def setting(rng: random.Random) -> Setting:
    nodes = {name: NodeValues(name, ram=rng.uniform(*between)) for name, between in RAM.items()}
    latency = {frozenset(f"n{n}" for n in pair): mean * rng.uniform(0.75, 1.25) for pair, mean in LATENCY.items()}
    return Setting(Network(nodes, {"latency": latency, "bandwidth": {}, "hops": {}}))


def paper_runs(runs: int = RUNS) -> Iterator[str]:
    rng, made = random.Random(0), graph()
    steps, shares = [], []
    for _ in range(runs):
        network = setting(rng)
        first, best = heuristic(made, network), exact(made, network)
        if first.assignment is not None and best.assignment is not None:
            steps.append(first.backsteps)
            shares.append(score(first, first.assignment)[0] / score(best, best.assignment)[0])
    yield "| the paper's seven nodes, five descriptions | here | the paper |"
    yield "| --- | ---: | ---: |"
    yield f"| runs solved | {len(steps):,} of {runs:,} | |"
    yield f"| without backsteps | {sum(step == 0 for step in steps) / runs:.1%} | 75% |"
    yield f"| most backsteps | {max(steps)} | 14 |"
    yield f"| scarcest resource, against the best assignment: mean | {sum(shares) / len(shares):.3f} | |"
    yield f"| least | {min(shares):.3f} | |"


Growth = tuple[RestrictionGraph, Setting]


def grown(nodes: int, descriptions: int) -> Growth:
    """A chain of descriptions over a random network in which every node knows some others."""
    rng = random.Random(nodes)
    names = [f"n{n}" for n in range(nodes)]
    near = [(name, names[(n + k) % nodes]) for n, name in enumerate(names) for k in range(1, min(9, nodes))]
    links = {"latency": {frozenset(pair): rng.uniform(1, 10) for pair in near}, "bandwidth": {}, "hops": {}}
    network = Network({name: NodeValues(name, ram=rng.uniform(100, 800)) for name in names}, links)
    refers = {str(n): [f"m{n}", *(f"l{k}" for k in (n - 1, n) if 0 < k < descriptions)] for n in range(1, descriptions + 1)}
    limits = [f'<restriction id="m{n}" type="memory" min="{rng.randrange(100, 400)}"/>' for n in range(1, descriptions + 1)]
    limits += [f'<restriction id="l{n}" type="maxDistance" max="8"/>' for n in range(1, descriptions)]
    return _parsed(refers, limits, ""), Setting(network)


SIZES = ((10, 5), (100, 5), (100, 20), (1_000, 20), (1_000, 200), (10_000, 20), (10_000, 200))
SMALL = 100
"""Up to so many pairs of node and description the best assignment is found in reasonable time."""


def growth(nodes: int, descriptions: int) -> str:
    made, given = grown(nodes, descriptions)
    began = process_time()
    found = heuristic(made, given)
    seconds = process_time() - began
    tenders = nodes * descriptions
    bids = sum(map(len, found.domains.values()))  # those that AC-3 has left
    against = _against_exact(made, given) if nodes * descriptions <= SMALL else ""
    solved = f"{found.backsteps}" if found.assignment else str(found.reason)
    return f"| {nodes:,} | {descriptions} | {solved} | {tenders:,} | {bids:,} | {seconds:.2f} | {against} |"


def _against_exact(made: RestrictionGraph, given: Setting) -> str:
    first, best = heuristic(made, given), exact(made, given)
    if first.assignment is None or best.assignment is None:
        return ""
    return f"{score(first, first.assignment)[0] / score(best, best.assignment)[0]:.3f}"


def report(pictures: object = None, sizes: Sequence[tuple[int, int]] = SIZES, runs: int = RUNS) -> Iterator[str]:
    yield from paper_runs(runs)
    yield ""
    yield "| nodes | descriptions | backsteps | tenders | bids left | CPU s | scarcest, against the best |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    yield from (growth(*size) for size in sizes)
