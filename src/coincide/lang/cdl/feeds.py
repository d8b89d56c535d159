"""Which messages descriptions read, and circles of them (CDL-26)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.graphs import shortest_way_back
from coincide.lang.cdl.definition import Description, Source, TimeEvent
from coincide.lang.cdl.shape import fail


def external_classes(cd: Description) -> frozenset[str] | None:
    """Of the external messages that it reads; None: of all."""
    found = frozenset(s.message_class for s in _sources(cd) if s.access != "internal")
    return None if "*" in found else found


def detected_classes(cd: Description) -> frozenset[str]:
    """`*` matches external messages only."""
    return frozenset(s.message_class for s in _sources(cd) if s.access != "external" and s.message_class != "*")


def _sources(cd: Description) -> Iterator[Source]:
    return (s for s in cd.sources if not isinstance(s, TimeEvent))


def check_circles(descriptions: Sequence[Description]) -> None:
    reads = {cd.id: detected_classes(cd) for cd in descriptions}
    readers: dict[str, list[str]] = {}
    for name, classes in reads.items():
        for message_class in classes:
            readers.setdefault(message_class, []).append(name)
    numbers = {name: number for number, name in enumerate(reads)}
    makes = {cd.id: {event.message_class for event in cd.events} for cd in descriptions}
    feeds = {
        name: sorted({reader for made in classes for reader in readers.get(made, ())}, key=numbers.__getitem__)
        for name, classes in makes.items()
    }
    for cd in descriptions:
        way = shortest_way_back(cd.id, feeds)
        if way is not None:
            circle = " -> ".join([cd.id, *way, cd.id])
            fail(cd.span, f"correlation descriptions feed each other in a circle: {circle}")
