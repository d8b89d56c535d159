"""Networks, drawn: brokers with who publishes, detects and subscribes there, and what crosses the links."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from coincide.distribution.brokers import Brokers, Request, Running
from coincide.distribution.flows import Crossing, Flows, flows
from coincide.distribution.network import Network
from coincide.distribution.placement import Placement
from coincide.distribution.planning import Installation, Plan, make_plan
from coincide.distribution.restrictions import RestrictionGraph
from coincide.draw.graph import Arrow, Drawing, Node, wrapped

WIDTH = 30


def network_drawings(brokers: Brokers, title: str, request: Request | None = None) -> list[Drawing]:
    """The network as it is and, with a request, as its plan would have it."""
    before = Installation(brokers)
    drawn = [_drawing(before, title, flows(before), frozenset())]
    if request is None:
        return drawn
    plan = make_plan(brokers, request)
    started = tuple(Running(new.name, new.expr, new.node, new.restart, request.detection) for new in plan.new)
    after = Installation(msgspec.structs.replace(brokers, detectors=(*brokers.detectors, *started)))
    caption = f"{title}: {request.policy} for {request.subscriber}"
    carried = flows(after, plan, brokers.subscribers[request.subscriber])
    return [*drawn, _drawing(after, caption, carried, frozenset(new.name for new in plan.new), _summary(plan))]


def _summary(plan: Plan) -> str:
    new = ", ".join(f"{new.name} on {new.node}" for new in plan.new)
    parts = [f"new: {new}" if new else "", f"reused: {', '.join(plan.reuse)}" if plan.reuse else ""]
    return "; ".join([*filter(None, parts), f"subscribed to: {', '.join(plan.subscribe)}"])


def _drawing(installed: Installation, title: str, carried: Flows, new: Collection[str], summary: str = "") -> Drawing:
    brokers, crossings = installed.brokers, carried.crossings()
    total = sum(rate for over in crossings.values() for rate in over.values())
    caption = f"{total:g} events/s cross links" + (f"; {summary}" if summary else "")
    nodes = tuple(_node(brokers, name, new) for name in brokers.nodes)
    return Drawing(title, caption, nodes, tuple(_arrows(brokers, crossings)))


def _node(brokers: Brokers, name: str, new: Collection[str]) -> Node:
    detectors = [d for d in brokers.detectors if d.node == name]
    lines = [name if brokers.nodes[name].host else f"{name} (carries none)"]
    lines += [f"publishes {p.type}, {p.rate:g}/s" for p in brokers.publishers if p.node == name]
    for detector in detectors:
        lines += wrapped(f"{'new: ' if detector.name in new else ''}{detector.name} = {detector.expr}", WIDTH)
    lines += [f"subscriber {user}" for user, node in brokers.subscribers.items() if node == name]
    shape = "condition" if any(d.name in new for d in detectors) else "span" if detectors else "operator"
    return Node(name, shape, "\n".join(lines))  # type: ignore[arg-type]


def _arrows(brokers: Brokers, crossings: dict[Crossing, dict[str, float]]) -> Iterator[Arrow]:
    """A link over which nothing goes is a thin line; the latency stands once on each."""
    for link in brokers.links:
        a, b = link.ends
        ways = [(way, crossings[way]) for way in ((a, b), (b, a)) if way in crossings]
        latency = f"{link.latency:g} ms"
        if not ways:
            yield Arrow(a, b, "weak", (latency, "idle"))
        for number, ((source, target), over) in enumerate(ways):
            rates = tuple(f"{name} {rate:g}/s" for name, rate in over.items())
            yield Arrow(source, target, "strong", (latency, *rates) if number == 0 else rates)


def placement_drawing(graph: RestrictionGraph, network: Network, placement: Placement, title: str) -> Drawing:
    """Nodes with the descriptions that are placed on them, and the links that restrictions speak of."""
    places = {**graph.pins, **(placement.assignment or {})}
    nodes = tuple(_carrier(network, places, name) for name in network.nodes)
    arrows: dict[tuple[str, str], list[str]] = {}
    for restriction in graph.restrictions:
        first, *others = [name for name in restriction.operands if name in places]
        for other in others:
            arrows.setdefault((places[first], places[other]), []).append(f"{first} – {other}: {restriction.id}")
    shown = [Arrow(a, b, "weak", (*_latency(network, a, b), *labels)) for (a, b), labels in arrows.items() if a != b]
    return Drawing(title, placement.reason or f"{placement.backsteps} backsteps, {placement.tried} tried", nodes, tuple(shown))


def _carrier(network: Network, places: dict[str, str], name: str) -> Node:
    own = [placed for placed, node in places.items() if node == name]
    return Node(name, "span" if own else "operator", "\n".join([f"{name}, {network.node(name).ram:g} MB", *own]))


def _latency(network: Network, a: str, b: str) -> list[str]:
    value = network.link("latency", a, b)
    return [] if value is None else [f"{value:g} ms"]
