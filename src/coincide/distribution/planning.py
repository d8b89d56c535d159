"""Plans for subscriptions: what is reused, what is new, and on which broker (distribution-opera.md, section 4).

Every broker computes the same plan from the same topology and request: nothing here depends on who asks or when."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import count
from zlib import crc32

from coincide.detection.automaton.starts import start_can_fail
from coincide.distribution.brokers import SPARK, Brokers, Request, Routes, Running
from coincide.distribution.canonical import canonical_text
from coincide.distribution.decomposition import Composite, Decomposition, Part, atoms, put
from coincide.errors import Diagnostic, InputError, RuleError, nearest
from coincide.expr.print import expression_text
from coincide.expr.tree import Reference
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Attribute,
    Definition,
    Empty,
    EventSet,
    Expression,
    Group,
    Iteration,
    OwnTimer,
    Parallel,
    Timing,
)
from coincide.lang.opera.parse import parse
from coincide.lang.opera.print import core_text
from coincide.lang.shared.eventsets import types
from coincide.ordering import POLICIES as STABILITY
from coincide.source import SourceText
from coincide.syntax import walk

REQUEST = "the-request"
"""The name under which the request is read among the running detectors."""


@dataclass(frozen=True)
class New:
    """A detector that is to be started. `sides`: detectors that are moved sides of its `||`."""

    name: str
    expr: str
    node: str
    restart: bool = False
    sides: tuple[str, ...] = ()
    canonical: str = ""


Naming = Callable[[str, Collection[str]], str]
"""From the canonical text of a new detector, and the names that are taken, to its name."""


@dataclass
class Plan:
    reuse: list[str] = field(default_factory=list)
    new: list[New] = field(default_factory=list)
    subscribe: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def make_plan(brokers: Brokers, request: Request, naming: Naming | None = None) -> Plan:
    """New detectors are called N1, N2, … unless there is another way of naming them."""
    if request.policy not in POLICIES:
        hint = nearest(request.policy, POLICIES) or f"there are {', '.join(POLICIES)}"
        raise InputError(f"there is no policy '{request.policy}': {hint}")
    planner = Planner(brokers, request, naming)
    POLICIES[request.policy](planner)
    return planner.plan


class Installation:
    """What runs in a network, and how much goes through it."""

    def __init__(self, brokers: Brokers, routes: Routes | None = None, request: Request | None = None) -> None:
        self.brokers = brokers
        self.routes = routes or Routes(brokers)
        self.definitions = _definitions(brokers.detectors, request)
        self.bodies = {name: known.definition.body for name, known in self.definitions.items() if name != REQUEST}
        self.places = {d.name: d.node for d in brokers.detectors}

    def rate(self, expression: Expression) -> float:
        if isinstance(expression, Atom):
            names = dict.fromkeys(name for item in expression.matched for name in _types(item.events))
            return sum(map(self.rate_of_type, names))
        if isinstance(expression, Empty):
            return 0.0
        if isinstance(expression, Group | Iteration):
            return self.rate(expression.body)
        if isinstance(expression, Timing):
            first = self.rate(expression.first)
            return first if _awaits(expression) else min(first, self.rate(expression.second))
        parts = (expression.left, expression.right) if isinstance(expression, Parallel) else expression.parts  # type: ignore[attr-defined]
        rates = [self.rate(part) for part in parts]
        return sum(rates) if isinstance(expression, Alternation) else min(rates)

    def rate_of_type(self, name: str) -> float:
        if name in self.bodies:
            return self.rate(self.bodies[name])
        return sum(p.rate for p in self.brokers.publishers if p.type == name)

    def types_heard(self, body: Expression) -> list[str]:
        """The types that it hears, primitive and composite."""
        return list(dict.fromkeys(name for node in walk(body) if isinstance(node, EventSet) for name in _types(node)))

    def inputs(self, body: Expression) -> list[tuple[str, float]]:
        """(node, rate) of each publisher and detector that it hears."""
        return [one for name in self.types_heard(body) for one in self.made(name)]

    def made(self, name: str) -> list[tuple[str, float]]:
        """Where events of a type come from: (node, rate)."""
        if name in self.places:
            return [(self.places[name], self.rate_of_type(name))]
        return [(p.node, p.rate) for p in self.brokers.publishers if p.type == name]


class Planner(Installation):
    """A request in a network, and the plan that is being made for it."""

    def __init__(self, brokers: Brokers, request: Request, naming: Naming | None = None, routes: Routes | None = None) -> None:
        super().__init__(brokers, routes, request)
        self.request = request
        if request.subscriber not in brokers.subscribers:
            raise InputError(f"the topology has no subscriber '{request.subscriber}'")
        self.here = brokers.subscribers[request.subscriber]
        if not self.routes.hosts:
            raise InputError("no node of the topology may carry detectors")
        self.plan = Plan()
        self.wanted = self.definitions[REQUEST].definition
        self.loads = dict.fromkeys(brokers.nodes, 0)
        for detector in brokers.detectors:
            self.loads[detector.node] += atoms(self.bodies[detector.name])
        self._names = (f"N{number}" for number in count(1))
        self._naming = naming or self._numbered

    @cached_property
    def decomposition(self) -> Decomposition:
        composites = {name: Composite(name, body) for name, body in self.bodies.items()}
        whole = frozenset(canonical_text(_expression(text)) for text in self.request.keep)
        return Decomposition(self.wanted.body, self.wanted.computed, composites, whole)

    def below(self, part: Part) -> Sequence[Part]:
        """The parts of a part that may be factored out. Under `probabilistic` none."""
        policy = STABILITY.get(self.request.detection.split()[0])
        return () if policy is not None and not policy.divisible else self.decomposition.below(part)

    def costs(self, body: Expression) -> Costs:
        return Costs(self.routes, self.here, self.inputs(body), self.rate(body))

    # Reuse.

    def same(self, part: Expression, attributes: Sequence[Attribute] = ()) -> list[Running]:
        """Running detectors that are the same, by distance to the subscriber and name."""
        wanted = identity(part, attributes, self.request.restart)
        if wanted is None:
            return []
        same = (d for d in self.brokers.detectors if d.detection == self.request.detection)
        found = [d for d in same if self.definitions[d.name].identity == wanted]
        return sorted(found, key=lambda d: (self.routes.dist(self.here, d.node), d.name))

    def running(self, part: Part) -> list[Running]:
        return self.same(part.expression, () if part.path else self.wanted.computed)

    def reuse(self, *detectors: Running) -> None:
        self.plan.reuse += [d.name for d in detectors if d.name not in self.plan.reuse]

    # New detectors.

    def next_name(self, canonical: str = "") -> str:
        taken = {*self.bodies, *(p.type for p in self.brokers.publishers), *(new.name for new in self.plan.new)}
        return self._naming(canonical, taken)

    def _numbered(self, canonical: str, taken: Collection[str]) -> str:
        return next(name for name in self._names if name not in taken)

    def start(self, body: Expression, node: str, sides: Iterable[str] = (), whole: bool = True, name: str | None = None) -> str:
        """A new detector; `whole`: of the request itself, so that its attributes are computed there."""
        computed = self.wanted.computed if whole else ()
        canonical = canonical_text(body, _aliases(computed)) + _with(computed)
        name = name or self.next_name(canonical)
        text = core_text(body) + _with(computed)
        self.plan.new.append(New(name, text, node, self.request.restart, tuple(sides), canonical))
        self.bodies[name] = body
        self.places[name] = node
        self.loads[node] += atoms(body)
        return name

    def hosts(self, body: Expression, state: float = 0.0) -> list[str]:
        """Who may carry it: small nodes, if any can; else clusters; all, if it is too large for everyone."""
        rate, nodes = sum(rate for _, rate in self.inputs(body)), self.brokers.nodes
        able = [name for name in self.routes.hosts if nodes[name].can_take(rate, state)]
        small = [name for name in able if nodes[name].engine != SPARK]
        if not able:
            self.plan.warnings.append(f"no node is large enough for {rate:g} events/s")
        return small or able or self.routes.hosts

    def best(self, cost: Callable[[str], tuple[float, ...]], hosts: Sequence[str]) -> str:
        return min(hosts, key=lambda node: (*cost(node), node))


@dataclass(frozen=True)
class Costs:
    """What a detector would cost on a node: it hears its inputs there, and is heard by the subscriber."""

    routes: Routes
    subscriber: str
    inputs: Sequence[tuple[str, float]]
    rate: float

    def traffic(self, node: str) -> float:
        came = sum(rate * self.routes.hops(at, node) for at, rate in self.inputs)
        return came + self.rate * self.routes.hops(self.subscriber, node)

    def distance(self, node: str) -> float:
        """To all inputs together."""
        return sum(self.routes.dist(at, node) for at, _ in self.inputs)


def replaced(body: Expression, parts: Iterable[tuple[Part, tuple[str, ...]]]) -> tuple[Expression, list[str]]:
    """The expression with detectors in the places of parts, and those of them that are sides of `||`."""
    sides = []
    for part, names in parts:
        body = put(body, part.path, part.atom(*names))
        sides += list(names) if part.side else []
    return body, sides


# The policies.


def minimum_latency(planner: Planner) -> None:
    near = [
        d
        for d in planner.running(planner.decomposition.root)
        if planner.routes.dist(planner.here, d.node) <= planner.brokers.near
    ]
    if near:
        planner.reuse(near[0])
        planner.plan.subscribe.append(near[0].name)
        return
    node = planner.best(lambda n: (planner.routes.dist(planner.here, n),), planner.hosts(planner.wanted.body))
    planner.plan.subscribe.append(planner.start(planner.wanted.body, node))


def _with_reuse(planner: Planner, cost: Callable[[Costs, str], tuple[float, ...]]) -> None:
    """Maximum reuse, and one new detector for the rest."""
    found = list(_reused(planner, planner.decomposition.root))
    for _, (detector, *_) in found:
        planner.reuse(detector)
    if found and not found[0][0].path:
        planner.plan.subscribe.append(found[0][1][0].name)
        return
    body, sides = replaced(planner.wanted.body, [(part, (detectors[0].name,)) for part, detectors in found])
    costs = planner.costs(body)
    node = planner.best(lambda n: cost(costs, n), planner.hosts(body))
    planner.plan.subscribe.append(planner.start(body, node, sides))


def _reused(planner: Planner, part: Part) -> Iterator[tuple[Part, list[Running]]]:
    """The outermost parts that run already."""
    if running := planner.running(part):
        yield part, running
        return
    for inner in planner.below(part):
        yield from _reused(planner, inner)


def minimum_bandwidth(planner: Planner) -> None:
    _with_reuse(planner, lambda costs, node: (costs.traffic(node), costs.distance(node)))


def minimum_impact(planner: Planner) -> None:
    _with_reuse(planner, lambda costs, node: (planner.loads[node], costs.traffic(node)))


def minimum_load(planner: Planner) -> None:
    """Every part that may be is a detector of its own, the innermost first."""
    planner.plan.subscribe.append(_spread(planner, planner.decomposition.root))


def _spread(planner: Planner, part: Part) -> str:
    if running := planner.running(part):
        planner.reuse(running[0])
        return running[0].name
    depth = len(part.path)
    inner = [(Part(p.path[depth:], p.expression, p.side), (_spread(planner, p),)) for p in planner.below(part)]
    body, sides = replaced(part.expression, inner)
    node = planner.best(lambda n: (planner.loads[n],), planner.hosts(body))
    return planner.start(body, node, sides, whole=not part.path)


def maximum_reliability(planner: Planner) -> None:
    found = list(_doubled(planner, planner.decomposition.root))
    for _, pair in found:
        planner.reuse(*pair)
    if found and not found[0][0].path:
        planner.plan.subscribe += [d.name for d in found[0][1]]
        return
    body, sides = replaced(planner.wanted.body, [(part, tuple(sorted(d.name for d in pair))) for part, pair in found])
    hosts = planner.hosts(body)
    if len(hosts) == 1:
        planner.plan.warnings.append("there is one host only: the detector has no second copy")
    taken = {d.node for d in planner.same(body, planner.wanted.computed)}
    for _ in range(min(2, len(hosts))):
        free = [host for host in hosts if host not in taken]
        others = [host for host in hosts if host not in {new.node for new in planner.plan.new}]
        node = planner.best(lambda n: (planner.loads[n],), free or others)
        planner.plan.subscribe.append(planner.start(body, node, sides))
        taken.add(node)


def _doubled(planner: Planner, part: Part) -> Iterator[tuple[Part, list[Running]]]:
    """The outermost parts that run on two nodes: the two nearest."""
    running = planner.running(part)
    nearest_of_node = {d.node: d for d in reversed(running)}
    pair = [d for d in running if nearest_of_node[d.node] is d][:2]
    if len(pair) == 2:
        yield part, pair
        return
    for inner in planner.below(part):
        yield from _doubled(planner, inner)


def by_hash(planner: Planner) -> None:
    name = planner.request.name or planner.next_name()
    if name in planner.places:
        planner.plan.reuse.append(name)
        planner.plan.subscribe.append(name)
        return
    hosts = planner.hosts(planner.wanted.body)
    node = hosts[crc32(name.encode()) % len(hosts)]
    planner.plan.subscribe.append(planner.start(planner.wanted.body, node, name=name))


POLICIES: dict[str, Callable[[Planner], None]] = {
    "minimum-latency": minimum_latency,
    "minimum-bandwidth": minimum_bandwidth,
    "minimum-impact": minimum_impact,
    "minimum-load": minimum_load,
    "maximum-reliability": maximum_reliability,
    "hash": by_hash,
}


# Reading.


@dataclass(frozen=True)
class Known:
    """A definition as it was read."""

    definition: Definition
    restart: bool

    @cached_property
    def identity(self) -> object:
        return identity(self.definition.body, self.definition.computed, self.restart)


def identity(body: Expression, attributes: Sequence[Attribute], restart: bool) -> tuple[str, str, bool] | None:
    """Equal for detectors that are the same. None: it is the same as no other, as its start may have failed already."""
    if not restart and start_can_fail(body):
        return None
    return canonical_text(body, _aliases(attributes)), _with(attributes), restart


def _definitions(running: Sequence[Running], request: Request | None) -> dict[str, Known]:
    """Of all running detectors and of the request, by name; a bare name of a running detector stands for its expression."""
    found: dict[str, Known] = {}
    texts = [(d.name, d.expr, d.restart) for d in running]
    texts += [] if request is None else [(REQUEST, request.expr, request.restart)]
    for number, given in enumerate(texts):
        found[given[0]] = _alone(*given) or _behind(texts[:number], *given)
    return found


Given = tuple[str, str, bool]


@lru_cache(maxsize=10_000)
def _alone(name: str, expr: str, restart: bool) -> Known | None:
    """A definition that refers to no other one; networks plan again and again over the same ones."""
    try:
        return Known(parse(SourceText(name, _text(name, expr, restart))).definitions[-1], restart)
    except RuleError:
        return None


def _behind(before: Sequence[Given], name: str, expr: str, restart: bool) -> Known:
    text = "".join(_text(*given) for given in before) + _text(name, expr, restart)
    try:
        return Known(parse(SourceText(f"expression of {name}", text)).definitions[-1], restart)
    except RuleError as error:
        (first, *_) = error.diagnostics
        raise RuleError(Diagnostic(f"the expression of '{name}': {first.message}", hint=first.hint)) from error


def _text(name: str, expr: str, restart: bool) -> str:
    return f"detect {name}{' restart' if restart else ''} = {expr}\n"


def _expression(text: str) -> Expression:
    return parse(SourceText("keep", f"detect x = {text}")).definitions[-1].body


def _types(events: EventSet) -> list[str]:
    timers = {node.name for node in walk(events) if isinstance(node, OwnTimer)}
    return [name for name in types(events) if name not in timers]


def _awaits(timing: Timing) -> bool:
    """Does the second part mention the timer in a match?"""
    items = (item for node in walk(timing.second) if isinstance(node, Atom) for item in node.matched)
    return any(isinstance(node, OwnTimer) and node.name == timing.timer for item in items for node in walk(item.events))


def _aliases(attributes: Sequence[Attribute]) -> set[str]:
    nodes = (node for attribute in attributes for node in walk(attribute.value))
    return {node.alias for node in nodes if isinstance(node, Reference) and node.alias is not None}


def _with(attributes: Sequence[Attribute]) -> str:
    pairs = ", ".join(f"{a.name} = {expression_text(a.value)}" for a in attributes)
    return f" with {pairs}" if pairs else ""
