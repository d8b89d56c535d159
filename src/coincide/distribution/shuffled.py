"""What dividing correlation descriptions spares Spark's one task (`coincide explain --engine spark --events FILE`): a description
whose sources have no key in common has all its events moved to one partition. Divided, the parts that have a key run spread by it
before that, and only what is left, with their intermediate events, comes together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from coincide.distribution.divided import divided_file
from coincide.distribution.division import divide
from coincide.engines.spark.groups import Cutting, Group, groups
from coincide.lang.cdl.definition import Description, File
from coincide.lang.cdl.print import print_file
from coincide.rulebook import Rulebook, loads

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Moved:
    """Events, and their bytes as JSON."""

    events: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"{self.events:,} events, {self.size:,} bytes"


Detect = Callable[[Rulebook, Sequence[Record]], list[dict[str, Any]]]


def shuffled(book: Rulebook, events: Sequence[Record], detect: Detect) -> str:
    title = f"what descriptions move through exchanges, of {len(events):,} events (`coincide divide` makes the parts)"
    return "\n".join([title, *(f"    {line}" for line in _lines(book, events, detect))])


def _lines(book: Rulebook, events: Sequence[Record], detect: Detect) -> Iterator[str]:
    """For each description that can be divided: what is moved, whole and in parts."""
    for _, file in book.files:
        for cd in file.descriptions if isinstance(file, File) else ():
            division = divide(cd, {event.message_class for other in file.descriptions for event in other.events})
            if not division.divided:
                yield f"{cd.id}: not divided: {division.reason or 'one description results'}"
                continue
            parts = print_file(divided_file(_alone(file, cd), division))
            yield f"{cd.id}: whole {_described(loads(print_file(_alone(file, cd)), 'cdl'), events)}"
            yield f"{cd.id}: divided {_described(loads(parts, 'cdl'), _with_intermediate(parts, events, detect))}"


def _alone(file: File, cd: Description) -> File:
    return replace(file, descriptions=(cd,), form="xml")


def _with_intermediate(parts: str, events: Sequence[Record], detect: Detect) -> list[Record]:
    """The events, and what parts tell one another of them."""
    internal = loads(parts.replace(' access="internal" trigger=', " trigger="), "cdl")
    return [*events, *detect(internal, events)]


def _described(book: Rulebook, every: Sequence[Record]) -> str:
    found = [(group, _moved(group, every)) for group in groups(book, cutting=Cutting())]
    spread = [f"by {', '.join(group.key)} {moved}" for group, moved in found if group.key]
    together = [f"to one task {moved}" for group, moved in found if group.key is None]
    return "; ".join(spread + together)


def _moved(group: Group, every: Sequence[Record]) -> Moved:
    own = {output for detector in group.detectors for output in detector.outputs}
    read = {name for d in group.detectors for name in (*(d.inputs.external or ()), *d.inputs.detections)} - own
    sizes = [len(msgspec.json.encode(event)) for event in every if event["type"] in read]
    return Moved(len(sizes), sum(sizes))
