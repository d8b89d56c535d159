"""Warnings (AMIT-64): memory that nothing bounds, and definitions that can never work (section 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.errors import Diagnostic
from coincide.lang.amit.arrange import cycles
from coincide.lang.amit.definition import Placed
from coincide.lang.amit.operators import OPERATORS, always_is
from coincide.lang.amit.resolve import KeyTable, Resolved


def warnings_of(situations: Sequence[Resolved]) -> list[Diagnostic]:
    lifespans = {s.lifespan.name: s for s in reversed(situations)}
    found = [w for s in lifespans.values() for w in _lifespan(s)]
    by_name = {s.name: s for s in situations}
    for s in situations:
        found += [*_endless(s), *_too_late(s, by_name)]
    for names in cycles(situations, by_operands=True):
        message = f"situations feed each other: {', '.join(names)}"
        found.append(_warning(by_name[names[0]].situation, message))
    return found


def _warning(placed: Placed, message: str) -> Diagnostic:
    return Diagnostic(message, placed.span, "warning")


def _lifespan(s: Resolved) -> Iterator[Diagnostic]:
    lifespan = s.lifespan
    piles = f"instances of lifespan '{lifespan.name}' may pile up"
    if lifespan.expiration is None and any(i.correlate == "add" for i in lifespan.initiators):
        yield _warning(lifespan, f"{piles}: 'add' without 'expirationInterval'")
    if lifespan.endless and _many(s, s.global_keys):
        yield _warning(lifespan, f"{piles}: one a key value, and none ends")


def _many(s: Resolved, keys: Sequence[KeyTable]) -> bool:
    """Has the key more than a few values?"""
    types = {event: dict(attributes) for event, attributes in s.types}
    return any(types[event][attribute] != "boolean" for key in keys for event, attribute in key)


def _endless(s: Resolved) -> Iterator[Diagnostic]:
    if not s.lifespan.endless:
        return
    never = f"lifespan '{s.lifespan.name}' never ends"
    operator = s.operator
    kind = OPERATORS[operator.kind]
    for number, operand in enumerate(operator.operands):
        if not (always_is(operand.override, True) or kind.bounded(operator, number)):
            yield _warning(operand, f"candidates of '{operand.label}' may pile up: {never}")
    if kind.lasting and _many(s, s.local_keys):
        yield _warning(operator, f"partitions of situation '{s.name}' may pile up: {never}")
    if operator.mode != "immediate":
        yield _warning(operator, f"situation '{s.name}' is {operator.mode}, but {never}")


def _too_late(s: Resolved, by_name: dict[str, Resolved]) -> Iterator[Diagnostic]:
    for operand in s.operator.operands:
        inner = by_name.get(operand.event)
        if inner and inner.lifespan.name == s.lifespan.name and inner.operator.mode != "immediate":
            ends = f"is reported when lifespan '{s.lifespan.name}' ends, too late to be a candidate in it"
            yield _warning(operand, f"'{inner.name}' {ends}")
