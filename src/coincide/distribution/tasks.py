"""What `coincide place` is asked for, and its answer as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from coincide.distribution.exact import exact
from coincide.distribution.gossip import collect
from coincide.distribution.network import Network, Topology, network_of, read_json
from coincide.distribution.placement import Algorithm, Domain, Placement, Setting, heuristic, local_graphs
from coincide.distribution.replacement import replace_description
from coincide.distribution.restrictions import RestrictionGraph, parse_graph
from coincide.errors import InputError, nearest
from coincide.source import SourceText

ALGORITHMS: dict[str, Algorithm] = {"heuristic": heuristic, "exact": exact}
Result = dict[str, Any]


def result_of(graphs: Sequence[Path], topology_file: Path, algorithm: str = "heuristic") -> Result:
    topology: Topology = read_json(_read(topology_file).encode(), Topology, str(topology_file))
    if algorithm not in ALGORITHMS:
        raise InputError(f"there is no algorithm '{algorithm}': {nearest(algorithm, ALGORITHMS) or ', '.join(ALGORITHMS)}")
    if topology.task == "rcp":
        return _gossip(topology)
    if topology.task not in TASKS:
        raise InputError(f"{topology_file}: unknown task '{topology.task}': place, replace or rcp")
    if len(graphs) != 1:
        raise InputError(f"task '{topology.task}' takes one restriction graph (.rg.xml), not {len(graphs)}")
    graph, setting = _graph(graphs[0]), _setting(topology)
    return TASKS[topology.task](graph, setting, topology, ALGORITHMS[algorithm])


def placed(graph_file: Path, topology_file: Path) -> tuple[RestrictionGraph, Network, Placement]:
    """Descriptions in a network, and where they go."""
    topology: Topology = read_json(_read(topology_file).encode(), Topology, str(topology_file))
    graph, setting = _graph(graph_file), _setting(topology)
    return graph, setting.network, heuristic(graph, setting)


def _graph(path: Path) -> RestrictionGraph:
    return parse_graph(SourceText(str(path), _read(path)))


def _setting(topology: Topology) -> Setting:
    return Setting(network_of(topology), topology.sigma, topology.tau, topology.advertisements)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file") from error


def _place(graph: RestrictionGraph, setting: Setting, topology: Topology, algorithm: Algorithm) -> Result:
    placement = algorithm(graph, setting)
    found: Result = {
        "reused": placement.reused,
        "levels": placement.levels,
        "domains": {name: _rounded(domain) for name, domain in placement.domains.items()},
        "assignment": placement.assignment,
        "backsteps": placement.backsteps,
        "tried": placement.tried,
    }
    if placement.assignment is None:
        return {**found, "reason": placement.reason}
    return {**found, "local": local_graphs(graph, placement.assignment)}


def _replace(graph: RestrictionGraph, setting: Setting, topology: Topology, algorithm: Algorithm) -> Result:
    if topology.cd is None:
        raise InputError("task 'replace' needs 'cd': the description that is to be placed again")
    found = replace_description(graph, setting, topology.cd, topology.assignment, topology.view)
    answer: Result = {"violated": found.violated, "candidates": _rounded(found.candidates), "target": found.target}
    return answer if found.reason is None else {**answer, "reason": found.reason}


def _gossip(topology: Topology) -> Result:
    benefits, view = collect(topology.messages, topology.better, topology.weights)
    messages = [
        {"node": b.node, "benefit": {name: round(value, 9) for name, value in b.benefit.items()}, "overall": round(b.overall, 9)}
        for b in benefits
    ]
    return {"messages": messages, "view": view.resources}


def _rounded(domain: Domain) -> list[list[Any]]:
    return [[node, round(weight, 9)] for node, weight in domain]


TASKS: dict[str, Callable[[RestrictionGraph, Setting, Topology, Algorithm], Result]] = {"place": _place, "replace": _replace}
