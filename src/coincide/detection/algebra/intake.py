"""Input before detection (section 4): stamps of uncertain clocks, and copies of one instance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor

import msgspec

from coincide.errors import log_warning
from coincide.expr.scalar import event_field
from coincide.lang.ecco.definition import DuplicatesRule, StampRule
from coincide.model import bounds
from coincide.model.compound import single
from coincide.model.event import Event, Value
from coincide.model.numbers import is_number
from coincide.model.stamp import LIMIT, MILLISECOND, OrderKey, order_key

HOLD = 2**62
"""A lag without bound: stamps can come as late as they like, so nothing is evaluated before the input has ended."""

_HOPS = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:(?:\s*,\s*|\s+)[+-]?\d+(?:\.\d+)?)*\s*")


def processing_time(value: Value) -> Fraction:
    """Milliseconds on the way: a number, or a text of numbers; anything else is none (ECCO-32)."""
    if is_number(value):
        return Fraction(repr(value))
    if isinstance(value, str) and _HOPS.fullmatch(value):
        return sum((Fraction(number) for number in re.split(r"[\s,]+", value.strip())), Fraction(0))
    return Fraction(0)


@dataclass(frozen=True)
class Stamping:
    """The file's `stamp` statements; the first that names a type is the one used."""

    rules: tuple[StampRule, ...]

    @cached_property
    def lag(self) -> int:
        """How much earlier than its arrival an event's new stamp can end, in microseconds."""
        shifts = [rule for rule in self.rules if rule.hops is not None]
        if any(rule.maximum is None for rule in shifts):
            return HOLD
        return max((ceil((rule.maximum or 0.0) * MILLISECOND) for rule in shifts), default=0)

    def stamped(self, event: Event) -> Event | None:
        """The event with its new stamp; None if it was too long on the way."""
        rule = next((r for r in self.rules if event.type in r.types or None in r.types), None)
        if rule is None:
            return event
        spent = processing_time(single(event.attributes.get(rule.hops))) if rule.hops is not None else Fraction(0)
        if rule.maximum is not None and spent > Fraction(repr(rule.maximum)):
            log_warning("event %s of type '%s' was longer on the way than 'max' allows: dropped", event.id, event.type)
            return None
        lo, hi = self._bounds(event, rule, spent)
        if max(-lo, hi) > LIMIT:
            log_warning("event %s of type '%s' would get a stamp beyond all times: dropped", event.id, event.type)
            return None
        key = order_key(lo, hi, event.id or "")
        return msgspec.structs.replace(event, lo=lo, hi=hi, origin=(key,))

    def _bounds(self, event: Event, rule: StampRule, spent: Fraction) -> tuple[int, int]:
        drift = abs(spent) * Fraction(repr(rule.drift_ratio))
        error, delay = Fraction(repr(rule.error)), Fraction(repr(rule.delay))
        lo = event.lo + (-spent - drift - error - delay) * MILLISECOND
        return floor(lo), ceil(event.hi + (-spent + drift + error) * MILLISECOND)


class Latest(msgspec.Struct, array_like=True):
    """The last copy of an instance that was kept: its hi and its key."""

    hi: bounds.Instant
    key: OrderKey


Seen = dict[str, Latest]
"""By rule, type and key values."""


@dataclass(frozen=True)
class Copies:
    """The file's `duplicates` statements (ECCO-31)."""

    rules: tuple[DuplicatesRule, ...]

    def first_copies(self, events: Sequence[Event], seen: Seen) -> tuple[list[Event], frozenset[OrderKey]]:
        """The events of an instant that are no copies, and the older copies that others have replaced."""
        first: dict[OrderKey, Event] = {}
        replaced: set[OrderKey] = set()
        for event in events:
            key, rule = self._instance(event)
            before = seen.get(key) if key else None
            copy = before is not None and rule is not None and _within(rule, event.hi - before.hi)
            if copy and rule is not None and rule.keep == "first":
                continue
            if copy and before is not None:
                replaced.add(before.key)
                first.pop(before.key, None)
            first[event.origin[0]] = event
            if key:
                seen.pop(key, None)  # so that the oldest come first
                seen[key] = Latest(event.hi, event.origin[0])
        return list(first.values()), frozenset(replaced)

    def _instance(self, event: Event) -> tuple[str, DuplicatesRule | None]:
        """What copies have in common; empty if the event has none."""
        for number, rule in enumerate(self.rules):
            if event.type in rule.types or None in rule.types:
                values = [event_field(key)(event) for key in rule.keys]
                if None in values:
                    return "", rule
                return msgspec.json.encode([number, event.type, values]).decode(), rule
        return "", None

    def forget(self, seen: Seen, now: int) -> None:
        """Copies that nothing can be a copy of any more; the oldest stand first. One open horizon keeps them all."""
        horizons = [rule.horizon for rule in self.rules]
        if any(horizon is None for horizon in horizons):
            return
        longest = max((horizon or 0.0 for horizon in horizons), default=0.0) * MILLISECOND
        for key in list(seen):
            if now - seen[key].hi <= longest:
                return
            del seen[key]


def _within(rule: DuplicatesRule, age: int) -> bool:
    return rule.horizon is None or age <= rule.horizon * MILLISECOND
