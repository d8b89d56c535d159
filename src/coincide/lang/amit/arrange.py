"""How situations stand to one another: who feeds whom, cycles, shared lifespans, and what may be split by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coincide.graphs import components
from coincide.lang.amit.definition import Definition, Lifespan
from coincide.lang.amit.resolve import Resolved


def arranged(situations: Sequence[Resolved], definitions: Sequence[Definition]) -> list[Resolved]:
    """The situations with their places among one another filled in."""
    lifespans = [d.name for d in definitions if isinstance(d, Lifespan)]
    numbers = {name: n - len(lifespans) for n, name in enumerate(lifespans)}
    first: dict[str, str] = {}
    for s in situations:
        first.setdefault(s.lifespan.name, s.name)
    cycle_of = {name: names for names in cycles(situations) for name in names}
    return [
        replace(
            s,
            lifespan_number=numbers[s.lifespan.name],
            counts_lifespan=first[s.lifespan.name] == s.name,
            component=cycle_of.get(s.name, ()),
            cyclic=frozenset(cycle_of),
        )
        for s in situations
    ]


def cycles(situations: Sequence[Resolved], by_operands: bool = False) -> list[tuple[str, ...]]:
    """Situations that feed one another, in order of definition: through operands, initiators and terminators, or
    through operands alone."""
    readers: dict[str, list[int]] = {}
    for number, s in enumerate(situations):
        for event in {o.event for o in s.operator.operands} if by_operands else s.reads:
            readers.setdefault(event, []).append(number)
    edges = {number: sorted(readers.get(s.name, ())) for number, s in enumerate(situations)}
    found = [members for members in components(edges) if len(members) > 1 or members[0] in edges[members[0]]]
    return [tuple(situations[n].name for n in members) for members in sorted(found)]


def partitions(situations: Sequence[Resolved]) -> dict[str, tuple[str, ...] | None]:
    """The attributes on whose values each situation is independent: its global key, where all event types call it alike.
    Situations on a cycle must have one key, and hand its value on as it is (section 7, "Parallel by key")."""
    own = {s.name: _own_partition(s) for s in situations}
    by_name = {s.name: s for s in situations}
    for names in {s.component for s in situations if s.component}:
        members = [by_name[name] for name in names]
        common = own[names[0]]
        shared = common is not None and all(own[name] == common for name in names)
        if not shared or not all(m.hands_on(key) for m in members if _stays_inside(m, members) for key in common or ()):
            own.update(dict.fromkeys(names))
    return own


def _own_partition(situation: Resolved) -> tuple[str, ...] | None:
    attributes = [{attribute for _, attribute in key} for key in situation.global_keys]
    if not attributes or any(len(names) > 1 for names in attributes):
        return None
    return tuple(dict.fromkeys(name for names in attributes for name in names))


def _stays_inside(situation: Resolved, members: Sequence[Resolved]) -> bool:
    return any(situation.name in member.reads for member in members)
