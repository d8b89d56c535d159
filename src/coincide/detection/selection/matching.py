"""Does an event match a detection rule? Event by event (sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coincide.adapters.mapping import CATEGORY
from coincide.adapters.records import untyped
from coincide.detection.selection.tests import compared, members, tester, values_of
from coincide.lang.sigma.definition import (
    Absent,
    All,
    DetectionRule,
    Exists,
    Formula,
    Item,
    LogSource,
    Looked,
    Not,
    SameAs,
    Test,
)  # fmt: skip
from coincide.model.compound import Single
from coincide.model.event import OWN_TYPE, Event

Matcher = Callable[[Event], bool]
OWN = ("logsource.category", "logsource.product", "logsource.service")
NO_KEYWORDS = frozenset({"@timestamp", OWN_TYPE})


def matcher(rule: DetectionRule) -> Matcher:
    looks, holds = looked_at(rule.looked), formula(rule.condition)
    return lambda event: looks(event) and holds(event)


def looked_at(looked: Looked) -> Matcher:
    where = None if looked.where is None else formula(looked.where)
    types = looked.types

    def by_mapping(event: Event) -> bool:
        if types is None:
            return not event.is_detection and (where is None or where(event))
        return event.type in types and (where is None or where(event))

    def by_event(event: Event) -> bool:
        if event.is_detection:
            return False
        own = [set(values_of(event, name)) for name in OWN]
        if any(own):
            return all(value in own[_PLACE[part]] for part, value in looked.source.values)
        if OWN_TYPE not in event.attributes and is_untyped(event.type, values_of(event, CATEGORY)):
            return True
        return of_type(looked.source, event.type)

    return by_mapping if looked.mapped else by_event


_PLACE = {"category": 0, "product": 1, "service": 2}


def is_untyped(kind: str, categories: Sequence[Single]) -> bool:
    """Is its type the one that a record without a type gets? One that has it of its own is marked."""
    return kind == untyped(list(categories))


def of_type(source: LogSource, kind: str) -> bool:
    """Section 3: what a type says of the log source."""
    if "." in kind:
        words = set(kind.split("."))
        return all(value in words for _, value in source.values)
    return kind == (source.service or source.category or source.product)


def formula(node: Formula) -> Matcher:
    if isinstance(node, Item):
        return _item(node)
    if isinstance(node, Not):
        inner = formula(node.member)
        return lambda event: not inner(event)
    parts = [formula(member) for member in node.members]
    if isinstance(node, All):
        return lambda event: all(part(event) for part in parts)
    return lambda event: any(part(event) for part in parts)


def _item(item: Item) -> Matcher:
    values = [[_test(test) for test in alternatives] for alternatives in item.values]
    several = all if item.every else any
    read = keywords_of if item.attribute is None else _reader(item.attribute)

    def holds(event: Event) -> bool:
        found = read(event)
        return several(any(test(event, found) for test in alternatives) for alternatives in values) != item.negated

    return holds


def _reader(attribute: str) -> Callable[[Event], tuple[Single, ...]]:
    return lambda event: values_of(event, attribute)


def keywords_of(event: Event) -> tuple[Single, ...]:
    """All values of all attributes."""
    return tuple(v for name, value in event.attributes.items() if name not in NO_KEYWORDS for v in members(value))


def _test(test: Test) -> Callable[[Event, tuple[Single, ...]], bool]:
    if isinstance(test, Absent):
        return lambda event, found: not found
    if isinstance(test, Exists):
        return lambda event, found: bool(found) == test.value
    if isinstance(test, SameAs):
        return lambda event, found: any(
            compared(a, b, test.how, test.cased) for b in values_of(event, test.attribute) for a in found
        )
    holds = tester(test)
    return lambda event, found: any(map(holds, found))
