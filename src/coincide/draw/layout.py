"""Where nodes and arrows go: layers from left to right (Sugiyama, Tagawa and Toda 1981), in its simplest form.

Nodes stand in even layers. An arrow passes through every layer between; in one of the odd ones it has its label, so that
labels have room of their own. Arrows against the stream are turned round for the layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 12
GAP = 22.0  # between neighbours in a layer
LAYER_GAP = 16.0
CLOSE = -8.0  # of the gap to either side, what an arrow without words gives to its neighbours


@dataclass(eq=False)
class Box:
    """Something that takes room: half its width, and what it needs above and below its middle."""

    half: float
    above: float
    below: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    across: float = 0.0  # where an arrow only passes: half the width of the layer, through which it goes straight
    before: list[Box] = field(default_factory=list)
    after: list[Box] = field(default_factory=list)


@dataclass
class Route:
    """An arrow's way, from its source to its target; `label` is the box in which its words stand."""

    points: list[Box]
    label: Box | None


def laid_out(
    nodes: Mapping[str, Box], arrows: Sequence[tuple[str, str]], labels: Mapping[int, Box]
) -> tuple[list[Route], float, float]:
    """Places all boxes; gives the routes of the arrows (none of a loop on one node: two equal ends), width and height."""
    routes: dict[int, Route] = {}
    top = width = 0.0
    for part in _components(nodes, arrows):
        own = {n: ends for n, ends in enumerate(arrows) if ends[0] in part}
        boxes, found = _layered({name: nodes[name] for name in part}, own, labels)
        routes |= found
        shift = top - min(box.y - box.above for box in boxes)
        for box in boxes:
            box.y += shift
        top = max(box.y + box.below for box in boxes) + 2 * GAP
        width = max(width, *(box.x + box.half for box in boxes))
    return [routes[n] for n in range(len(arrows))], width, max(0.0, top - 2 * GAP)


def _components(nodes: Iterable[str], arrows: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Nodes that arrows connect, in the order of their first."""
    part = {name: {name} for name in nodes}
    for source, target in arrows:
        if part[source] is not part[target]:
            part[source] |= part[target]
            for name in part[target]:
                part[name] = part[source]
    seen: dict[int, list[str]] = {}
    for name, members in part.items():
        seen.setdefault(id(members), []).append(name)
    return list(seen.values())


def _layered(
    nodes: Mapping[str, Box], arrows: Mapping[int, tuple[str, str]], labels: Mapping[int, Box]
) -> tuple[list[Box], dict[int, Route]]:
    forward = {n: ends for n, ends in arrows.items() if ends[0] != ends[1]}
    turned = _against_the_stream(list(nodes), forward)
    downstream = {n: (b, a) if n in turned else (a, b) for n, (a, b) in forward.items()}
    for name, layer in _longest_ways(nodes, downstream.values()).items():
        nodes[name].layer = 2 * layer
    boxes = list(nodes.values())
    routes: dict[int, Route] = {}
    for number, (source, target) in downstream.items():
        way = _way(nodes[source], nodes[target], labels.get(number))
        boxes += way[1:-1]
        routes[number] = Route(way[::-1] if number in turned else way, labels.get(number))
    routes |= {n: Route([nodes[a], nodes[a]], labels.get(n)) for n, (a, b) in arrows.items() if a == b}
    layers = _ordered(boxes)
    _place(layers)
    return boxes, routes


def _against_the_stream(names: Sequence[str], arrows: Mapping[int, tuple[str, str]]) -> set[int]:
    """Arrows that a walk from the first node finds to lead back to where it is on its way from."""
    leaving: dict[str, list[tuple[int, str]]] = {}
    for number, (source, target) in arrows.items():
        leaving.setdefault(source, []).append((number, target))
    back: set[int] = set()
    done: set[str] = set()
    path: dict[str, None] = {}

    def visit(name: str) -> None:
        path[name] = None
        for number, target in leaving.get(name, ()):
            if target in path:
                back.add(number)
            elif target not in done:
                visit(target)
        del path[name]
        done.add(name)

    entered = {target for _, target in arrows.values()}
    for name in sorted(names, key=lambda name: name in entered):  # from where nothing leads to
        if name not in done:
            visit(name)
    return back


def _longest_ways(names: Iterable[str], arrows: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The layer of each node; one that nothing leads to stands right before the first that it leads to."""
    edges = list(arrows)
    layer = dict.fromkeys(names, 0)
    for _ in layer:
        for source, target in edges:
            layer[target] = max(layer[target], layer[source] + 1)
    entered = {target for _, target in edges}
    for name in layer:
        following = [layer[target] for source, target in edges if source == name]
        if name not in entered and following:
            layer[name] = min(following) - 1
    return layer


def _way(source: Box, target: Box, label: Box | None) -> list[Box]:
    """One box a layer; the label is in the middle one."""
    between = range(source.layer + 1, target.layer)
    middle = (source.layer + target.layer) // 2
    middle += 1 - middle % 2
    way = [source]
    for layer in between:
        room = CLOSE if label is not None and label.above == CLOSE else 5.0
        box = label if label is not None and layer == middle else Box(0.0, room, room)
        box.layer = layer
        way.append(box)
    way.append(target)
    for one, other in pairwise(way):
        one.after.append(other)
        other.before.append(one)
    return way


def _ordered(boxes: Sequence[Box]) -> list[list[Box]]:
    """Layers, each ordered by where its neighbours stand, to and fro."""
    layers: list[list[Box]] = [[] for _ in range(max(box.layer for box in boxes) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            place = {id(box): n for some in layers for n, box in enumerate(some)}
            layer.sort(key=lambda box: _mean([place[id(o)] for o in (box.before if down else box.after)], place[id(box)]))
    return layers


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _place(layers: Sequence[list[Box]]) -> None:
    x = 0.0
    for layer in layers:
        half = max(box.half for box in layer)
        for box in layer:
            box.x = x + half
            box.across = box.half or half
        x += 2 * half + LAYER_GAP
        _spread(layer, [0.0] * len(layer))
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            wanted = [_mean([o.y for o in (box.before if down else box.after)], box.y) for box in layer]
            _spread(layer, wanted)


def _spread(layer: Sequence[Box], wanted: Sequence[float]) -> None:
    """As near to where they want to be as their order and their room allow: pools of neighbours that are in each
    other's way share the mean of their wishes."""
    offset, offsets = 0.0, []
    for n, box in enumerate(layer):
        offset += layer[n - 1].below + GAP + box.above if n else 0.0
        offsets.append(offset)
    pools: list[tuple[float, int]] = []
    for wish, own in zip(wanted, offsets, strict=True):
        pools.append((wish - own, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m), (b, n) = pools[-2:]
            pools[-2:] = [((a * m + b * n) / (m + n), m + n)]
    places = [mean for mean, count in pools for _ in range(count)]
    for box, place, own in zip(layer, places, offsets, strict=True):
        box.y = place + own
