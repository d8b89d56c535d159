"""Definitions of all files together: who refers to whom, circles, and what must be evaluated together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coincide.errors import Diagnostic, RuleError
from coincide.lang.ecco.definition import Definition, DuplicatesRule, Expression, Null, Options, Place, Ref, StampRule
from coincide.lang.ecco.lasting import Names, check_linked
from coincide.model.area import Area
from coincide.syntax import walk


@dataclass(frozen=True)
class Setting:
    """What the statements of a file say about its definitions; stamps and duplicates are those of all files. `areas` are the
    shapes of the zones that a definition names."""

    options: Options = field(default_factory=Options)
    stamps: tuple[StampRule, ...] = ()
    duplicates: tuple[DuplicatesRule, ...] = ()
    spaces: tuple[tuple[str, Place], ...] = ()
    areas: tuple[Area, ...] = ()


@dataclass(frozen=True)
class Linked:
    """A definition in its setting. `uses`: the definitions below it, each after those that it refers to. `foreign`: the
    names in them that other languages make; `late`: those of them that may have ended before they come."""

    definition: Definition
    setting: Setting
    uses: tuple[Linked, ...] = ()
    foreign: frozenset[str] = frozenset()
    late: frozenset[str] = field(default=frozenset(), compare=False)
    order: int = field(default=0, compare=False)
    turn: int = field(default=0, compare=False, repr=False)  # its number, if all stood as they are evaluated

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def together(self) -> tuple[Linked, ...]:
        """It and all below it, in an order in which they can be evaluated."""
        return (*self.uses, self)


def referred(body: Expression) -> frozenset[str]:
    """The types and names that an expression reads."""
    return frozenset(node.type for node in walk(body) if isinstance(node, Ref) and node.type is not None)


def reads_any(body: Expression) -> bool:
    return any(isinstance(node, Null) or (isinstance(node, Ref) and node.type is None) for node in walk(body))


Below = Mapping[str, Sequence[str]]
"""For each definition the names of those that it refers to, in order."""


def link(items: Sequence[Linked], foreign: frozenset[str]) -> list[Linked]:
    """The definitions with what they use. RuleError for circles and for what their names cannot mean."""
    definitions = {item.name: item for item in items}
    below = {item.name: sorted(referred(item.definition.body) & definitions.keys()) for item in items}
    for item in items:
        _check_circle(item, below)
    names = Names({name: item.definition for name, item in definitions.items()}, foreign)
    for item in items:
        check_linked(item.definition, names)
    done: dict[str, Linked] = {}
    linked = [_linked(item, definitions, below, foreign, done) for item in items]
    evaluated = [item.name for item in _by_order(linked)]
    turns = dict(zip(evaluated, sorted(item.order for item in items), strict=True))
    return [replace(item, turn=turns[item.name]) for item in linked]


def _linked(
    item: Linked, definitions: Mapping[str, Linked], below: Below, foreign: frozenset[str], done: dict[str, Linked]
) -> Linked:
    if item.name not in done:
        linked = [_linked(definitions[name], definitions, below, foreign, done) for name in below[item.name]]
        uses = {used.name: used for one in linked for used in one.together}
        own = (referred(item.definition.body) & foreign).difference(below[item.name])
        done[item.name] = replace(item, uses=_by_order(uses.values()), foreign=own.union(*(u.foreign for u in linked)))
    return done[item.name]


def _by_order(items: Iterable[Linked]) -> tuple[Linked, ...]:
    """Dependency order, otherwise the order of files."""
    waiting = sorted(items, key=lambda item: item.order)
    placed: list[Linked] = []
    names: set[str] = set()
    while waiting:
        ready = next(item for item in waiting if {used.name for used in item.uses} <= names)
        waiting.remove(ready)
        placed.append(ready)
        names.add(ready.name)
    return tuple(placed)


def _check_circle(start: Linked, below: Below) -> None:
    way = _way_back(start.name, below)
    if way is not None:
        message = f"definitions refer to each other in a circle: {', '.join(way)}"
        raise RuleError(Diagnostic(message, start.definition.span))


def _way_back(start: str, below: Below) -> list[str] | None:
    """The shortest way of references from a name back to it."""
    ways = {start: [start]}
    queue = [start]
    for name in queue:
        for other in below[name]:
            if other == start:
                return [*ways[name], start]
            if other not in ways:
                ways[other] = [*ways[name], other]
                queue.append(other)
    return None


def components(items: Sequence[Linked]) -> list[list[Linked]]:
    """Definitions that are connected by references, in order of definition."""
    leader = {item.name: item.name for item in items}

    def leader_of(name: str) -> str:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    for item in items:
        for used in item.uses:
            leader[leader_of(used.name)] = leader_of(item.name)
    found: dict[str, list[Linked]] = {}
    for item in items:
        found.setdefault(leader_of(item.name), []).append(item)
    return list(found.values())
