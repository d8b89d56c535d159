"""By which attributes detection can be split (section 9)."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.lang.opera.definition import (
    All,
    Atom,
    Bind,
    Definition,
    Difference,
    EventSet,
    Group,
    Intersection,
    OfSet,
    OfType,
    OwnTimer,
    Terms,
    Union,
)
from coincide.model.event import ENVELOPE
from coincide.syntax import walk

Key = tuple[str, str]
"""An attribute and the parameter that it is compared with."""


def partition(definition: Definition) -> tuple[str, ...] | None:
    """Attributes that every item and every domain compares with one and the same parameter; None if there are none."""
    return tuple(sorted(set(parameters(definition).values()))) or None


def parameters(definition: Definition) -> dict[str, str]:
    """By parameter, the attribute that everything compares with it."""
    needed = [keys for events in _sets(definition) if (keys := _carried(events)) is not None]
    carried = sorted(set.intersection(*needed)) if needed else []
    return {parameter: attribute for attribute, parameter in carried if attribute not in ENVELOPE - {"source"}}


def _sets(definition: Definition) -> Iterator[EventSet]:
    for node in walk(definition.body):
        if isinstance(node, Atom):
            yield from (item.events for item in node.matched)
            if node.domain is not None:
                yield node.domain
        elif isinstance(node, Group):
            yield node.domain


def _carried(events: EventSet) -> set[Key] | None:
    """What an event must satisfy to be in the set; None for a set without external events, which needs nothing."""
    if isinstance(events, OfType | All):
        return _bound(events.terms)
    if isinstance(events, OwnTimer):
        return None
    if isinstance(events, OfSet):
        contents = _carried(events.contents)
        return None if contents is None else contents | _bound(events.terms)
    if isinstance(events, Difference):
        return _carried(events.left)
    if isinstance(events, Intersection):
        left, right = _carried(events.left), _carried(events.right)
        return None if left is None or right is None else left | right
    assert isinstance(events, Union)
    members = [keys for member in events.members if (keys := _carried(member)) is not None]
    return set.intersection(*members) if members else None


def _bound(terms: Terms) -> set[Key]:
    return {(term.attribute, term.parameter) for term in terms if isinstance(term, Bind)}
