"""A description divided into smaller ones by groups of conditions, layer by layer (distribution-cordies.md, section 1.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from coincide.distribution.conditions import Condition, Whole, computations_of, reason_against, whole_of
from coincide.lang.cdl.definition import Description, Source

Report = dict[str, Any]


@dataclass(eq=False)
class Unit:
    """A source, or an intermediate event: what a part subscribes to. `sources` are those that it holds."""

    name: str
    sources: frozenset[int]
    maker: Part | None = None
    attached: list[Condition] = field(default_factory=list)


@dataclass(eq=False)
class Part:
    """A description that comes of the division."""

    name: str
    units: list[Unit]
    conditions: list[Condition]
    publishes: Unit | None = None  # None: the original events
    computations: tuple[str, ...] = ()
    disjoint: bool = False

    @property
    def sources(self) -> frozenset[int]:
        return frozenset[int]().union(*(unit.sources for unit in self.units))


@dataclass(eq=False)
class Group:
    """Conditions over the same units."""

    number: int
    units: list[Unit]
    conditions: list[Condition]
    computations: tuple[str, ...]
    selectivity: int
    overhead: float

    @property
    def value(self) -> float:
        """Low where much is decided at little cost."""
        return self.overhead - self.selectivity

    def shares(self, others: Iterable[Group]) -> bool:
        return any(unit in other.units for other in others for unit in self.units)


@dataclass
class Division:
    """What came of it: parts in order, and how; or the reason why the description stays whole."""

    reason: str | None = None
    whole: Whole | None = None
    parts: list[Part] = field(default_factory=list)
    rounds: list[Report] = field(default_factory=list)

    @property
    def divided(self) -> bool:
        return self.reason is None and len(self.parts) > 1


def divide(cd: Description, detected: Collection[str] = ()) -> Division:
    """`detected`: classes that any detector publishes."""
    reason = reason_against(cd)
    if reason is not None:
        return Division(reason)
    whole = whole_of(cd)
    made = _Dividing(whole, detected)
    made.run()
    if _could_hold_one_detection(whole, made.parts, detected):
        return Division("parts could hold the same detection")
    return Division(None, whole, made.parts, made.rounds)


class _Dividing:
    def __init__(self, whole: Whole, detected: Collection[str]) -> None:
        self.whole = whole
        self.detected = detected
        self.units = [Unit(whole.cd.sources[number].anchor, frozenset({number})) for number in whole.sources]
        local = [c for c in whole.conditions if c.sources and not c.reads_node]
        self.last = [c for c in whole.conditions if c not in local]
        self.remaining = local
        self.parts: list[Part] = []
        self.rounds: list[Report] = []
        self._count = len(whole.cd.sources)

    def run(self) -> None:
        while groups := self._groups():
            self._round(groups)
        if len(self.units) > 1 or not self.parts:
            self.parts.append(self._part(self.units, []))
        final = self.parts[-1]
        final.publishes = None
        taken = [condition for unit in self.units for condition in unit.attached if condition not in final.conditions]
        final.conditions = self._ordered([*final.conditions, *taken, *self.last])
        self._share_computations()
        for part in self.parts:
            part.disjoint = self.whole.cd.disjoint or self._plays_twice(part)

    # Groups and layers.

    def _groups(self) -> list[Group]:
        """Conditions of more than one unit; those of one are attached to it."""
        found: dict[tuple[int, ...], list[Condition]] = {}
        for condition in self.remaining:
            held = tuple(n for n, unit in enumerate(self.units) if unit.sources & condition.sources)
            if len(held) == 1:
                self.units[held[0]].attached.append(condition)
            else:
                found.setdefault(held, []).append(condition)
        self.remaining = [condition for conditions in found.values() for condition in conditions]
        self.remaining = self._ordered(self.remaining)
        return [self._group(n, held, found[held]) for n, held in enumerate(sorted(found), 1)]

    def _group(self, number: int, held: tuple[int, ...], conditions: list[Condition]) -> Group:
        used = {computation for condition in conditions for computation in condition.computations}
        computations = tuple(anchor for anchor in self.whole.names.computations if anchor in used)
        overhead = sum(map(self.whole.overhead, computations))
        selectivity = max(condition.selectivity for condition in conditions)
        return Group(number, [self.units[n] for n in held], conditions, computations, selectivity, overhead)

    def _round(self, groups: list[Group]) -> None:
        layers = [[g for g in groups if g.value == value] for value in sorted({g.value for g in groups})]
        split = _split(layers)
        self.rounds.append(
            {
                "groups": [_group_report(group) for group in groups],
                "layers": [[g.number for g in layer] for layer in layers],
                "split": [[g.number for g in layer] for layer in split],
            }
        )
        made: list[Part] = []
        for layer in split:
            made += self._layer(layer, made)
        covered = {unit for part in made for unit in part.units}
        new = [part.publishes for part in made if part.publishes is not None]
        self.units = [*(unit for unit in self.units if unit not in covered), *new]

    def _layer(self, layer: list[Group], before: list[Part]) -> list[Part]:
        """Groups without a covered unit become parts; others join the part that has all their units, or wait."""
        covered = {unit for part in before for unit in part.units}
        fresh = [group for group in layer if covered.isdisjoint(group.units)]
        for group in layer:
            home = next((part for part in before if set(group.units) <= set(part.units)), None)
            if home is not None:
                self._take(home, group.conditions)
        return [self._connected(component) for component in _components(fresh, self.units)]

    def _connected(self, groups: list[Group]) -> Part:
        held = {unit for group in groups for unit in group.units}
        units = [unit for unit in self.units if unit in held]
        conditions = [condition for group in groups for condition in group.conditions]
        part = self._part(units, conditions)
        part.publishes = Unit(self._next_unit(), part.sources, part)
        self.parts.append(part)
        self.remaining = [condition for condition in self.remaining if condition not in conditions]
        return part

    def _part(self, units: list[Unit], conditions: list[Condition]) -> Part:
        attached = [condition for unit in units for condition in unit.attached]
        return Part(f"CD{len(self.parts) + 1}", list(units), self._ordered([*conditions, *attached]))

    def _take(self, part: Part, conditions: Sequence[Condition]) -> None:
        part.conditions = self._ordered([*part.conditions, *conditions])
        self.remaining = [condition for condition in self.remaining if condition not in conditions]

    def _ordered(self, conditions: Iterable[Condition]) -> list[Condition]:
        wanted = {condition.name for condition in conditions}
        return [condition for condition in self.whole.conditions if condition.name in wanted]

    def _next_unit(self) -> str:
        self._count += 1
        name = f"S{self._count}"
        while name in self.whole.names.anchors or f"{self.whole.cd.id}.{name}" in self.detected:
            name += "_"
        return name

    # Computations.

    def _share_computations(self) -> None:
        """Each belongs to the first part that needs it; what only event attributes need, to the last."""
        names, placed = self.whole.names, set[str]()
        events = [a.value for event in self.whole.cd.events for a in event.attributes if event.trigger == self.whole.trigger]
        for part in self.parts:
            needed = {anchor for condition in part.conditions for anchor in condition.computations}
            if part is self.parts[-1]:
                needed |= {anchor for tree in events for anchor in computations_of(tree, names)}
            free = {anchor for anchor in needed if not names.sources(names.computations[anchor].value)}
            part.computations = tuple(a for a in names.computations if a in free or (a in needed and a not in placed))
            placed |= needed - free

    def _plays_twice(self, part: Part) -> bool:
        """One message must not play two parts: units that hold sources of one class, one of them an intermediate event."""
        if not any(unit.maker for unit in part.units):
            return False
        classes = [{_class(self.whole, number) for number in unit.sources} for unit in part.units]
        pairs = ((a, b) for n, a in enumerate(classes) for b in classes[n + 1 :])
        return any(a & b or "*" in a | b for a, b in pairs)


def _class(whole: Whole, number: int) -> str:
    source = whole.cd.sources[number]
    assert isinstance(source, Source)
    return source.message_class


def _could_hold_one_detection(whole: Whole, parts: list[Part], detected: Collection[str]) -> bool:
    """Detections may share primitive events legitimately, which `disjoint` would forbid."""
    if len(parts) < 2 or whole.cd.disjoint or not any(part.disjoint for part in parts):
        return False
    classes = {_class(whole, number) for number in whole.sources}
    return "*" in classes or not classes.isdisjoint(detected)


def _split(layers: list[list[Group]]) -> list[list[Group]]:
    """A layer is cut where only some of its groups share a unit with the layer below."""
    found, number = list(layers), 0
    while number + 1 < len(found):
        sharing = [group for group in found[number + 1] if group.shares(found[number])]
        rest = [group for group in found[number + 1] if group not in sharing]
        if sharing and rest:
            found[number + 1 : number + 2] = [sharing, rest]
        number += 1
    return found


def _components(groups: list[Group], order: list[Unit]) -> list[list[Group]]:
    """Groups that hang together by shared units, by their first unit."""
    found: list[list[Group]] = []
    for group in groups:
        touching = [component for component in found if group.shares(component)]
        found = [component for component in found if component not in touching]
        found.append([*(member for component in touching for member in component), group])
    return sorted(found, key=lambda component: min(order.index(unit) for group in component for unit in group.units))


# The report.


def report_of(division: Division) -> Report:
    if division.reason is not None or division.whole is None:
        return {"divided": False, "reason": division.reason}
    makers = [(unit.maker.name, part.name) for part in division.parts for unit in part.units if unit.maker is not None]
    return {
        "divided": division.divided,
        "rounds": division.rounds,
        "reuse": [list(pair) for pair in makers],
        "cds": [_part_report(part, division.whole) for part in division.parts],
    }


def _group_report(group: Group) -> Report:
    return {
        "no": group.number,
        "predicates": [condition.name for condition in group.conditions],
        "sources": [unit.name for unit in group.units],
        "computations": list(group.computations),
        "selectivity": group.selectivity,
        "overhead": int(group.overhead) if group.overhead == int(group.overhead) else group.overhead,
    }


def _part_report(part: Part, whole: Whole) -> Report:
    events = [event.message_class for event in whole.cd.events if event.trigger == whole.trigger]
    return {
        "id": part.name,
        "sources": [unit.name for unit in part.units],
        "predicates": [condition.name for condition in part.conditions],
        "computations": list(part.computations),
        "publishes": list(dict.fromkeys(events)) if part.publishes is None else part.publishes.name,
        "disjoint": part.disjoint,
    }
