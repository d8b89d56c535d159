"""Descriptions among others: which messages they read, circles of them (CDL-26), and versions, of which a higher one replaces a
lower one of the same id (CDL-01)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from coincide.graphs import shortest_way_back
from coincide.lang.cdl.definition import Description, File, Source, TimeEvent
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


def in_force(files: Sequence[File]) -> list[list[Description]]:
    """The descriptions of each file that no other replaces; each knows what it replaces."""
    best: dict[str, Description] = {}
    for cd in (cd for file in files for cd in file.descriptions):
        other = best.get(cd.id)
        if other is not None and _padded(other) == _padded(cd):
            fail(cd.span, f"cd '{cd.id}' is defined twice")
        if other is None or _padded(other) < _padded(cd):
            best[cd.id] = replace(cd, replaced=(*cd.replaced, *(() if other is None else (other, *other.replaced))))
        else:
            best[cd.id] = replace(other, replaced=(*other.replaced, cd))
    return [[best[cd.id] for cd in file.descriptions if cd == best[cd.id]] for file in files]


def _padded(cd: Description) -> tuple[int, ...]:
    """1 and 1.0 are one version."""
    version = list(cd.version)
    while len(version) > 1 and version[-1] == 0:
        version.pop()
    return tuple(version)
