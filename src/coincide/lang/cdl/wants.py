"""What a description waits for: a message of each source."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.expr.tree import Literal
from coincide.lang.cdl.conditions import condition_of, filter_condition
from coincide.lang.cdl.definition import AnySource, Description, Source, TimeEvent
from coincide.lang.shared.wants import Slot, Wants, microseconds, without_prefixes
from coincide.model.numbers import is_number


def wants_of(cd: Description) -> Wants:
    names = dict(_names(cd))
    slots = tuple(_slot(source, names) for source in cd.sources if isinstance(source, Source))
    tests = tuple(without_prefixes(condition_of(predicate), names) for predicate in cd.predicates)
    return Wants(slots, tests, microseconds([cd.within, *map(_duration, cd.sources)]))


def _names(cd: Description) -> Iterator[tuple[str, str]]:
    """Anchors: those of sources, which stand before a dot, and those of attributes."""
    for source in cd.sources:
        yield source.anchor, source.anchor
        for attribute in source.attributes if isinstance(source, Source) else ():
            if attribute.anchor is not None:
                yield attribute.anchor, attribute.name


def _slot(source: Source, names: dict[str, str]) -> Slot:
    filters = [filter_condition(source.anchor, a, node) for a in source.attributes for node in a.filters]
    kind = None if source.message_class == "*" else source.message_class
    return Slot(kind, tuple(without_prefixes(tree, names) for tree in filters))


def _duration(source: AnySource) -> float | None:
    """In milliseconds."""
    if not isinstance(source, TimeEvent):
        return source.within
    value = source.value.value if isinstance(source.value, Literal) and source.relative else None
    return value if is_number(value) else None
