"""Questions as people ask them: a rule by its name or by what it makes, a key in any form, an instant or a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from coincide.detection.base import Detector
from coincide.engines.choice import until_microseconds
from coincide.errors import Diagnostic, InputError, nearest
from coincide.misses.proposals import Hints, value_of
from coincide.misses.trial import Question
from coincide.model.event import Event, Value, as_value, plain
from coincide.model.stamp import LIMIT
from coincide.rulebook import Rulebook

Key = Mapping[str, Any] | Sequence[Any] | str | float | None
"""Names with values; or the values of a rule's own key, or the only one."""


def question(book: Rulebook, events: Sequence[Event], rule: str | None, key: Key, at: Any) -> Question:
    """Raises InputError for what these rules do not have."""
    detector = detector_named(book, rule)
    kind = rule if rule in detector.outputs and rule != detector.name else None
    lo, hi = _time(book, detector, at)
    return Question(detector, _key(detector, key, events), lo, hi, kind)


def detector_named(book: Rulebook, rule: str | None) -> Detector:
    """By its name, or by a type that it makes. The only one needs no name."""
    detectors = book.detectors
    if rule is None and len(detectors) == 1:
        return detectors[0]
    found = [d for d in detectors if d.name == rule] or [d for d in detectors if rule in d.outputs]
    if found:
        return found[0]
    names = list(dict.fromkeys(name for d in detectors for name in (d.name, *d.outputs)))
    hint = (None if rule is None else nearest(rule, names)) or f"there are {', '.join(names[:20])}"
    raise InputError(Diagnostic("which rule is meant?" if rule is None else f"there is no rule '{rule}'", hint=hint))


def _key(detector: Detector, key: Key, events: Sequence[Event]) -> dict[str, Value]:
    if key is None:
        return {}
    given = dict(key) if isinstance(key, Mapping) else dict(zip(_names(detector, values := _values(key)), values, strict=True))
    return {name: _as_in_events(name, value, events) for name, value in given.items()}


def _values(key: Any) -> list[Any]:
    return [key] if isinstance(key, str | float | int) else list(key)


def _names(detector: Detector, values: Sequence[Any]) -> tuple[str, ...]:
    own = detector.partition or ()
    if len(own) == len(values):
        return own
    has = f"has the key {', '.join(own)}" if own else "has no key of its own"
    raise InputError(Diagnostic(f"'{detector.name}' {has}", hint="name what is meant: user=eve"))


def _as_in_events(name: str, given: Any, events: Sequence[Event]) -> Value:
    """The value as events have it: on the command line all is text."""
    values = (value_of(event, name) for event in events)
    return next((value for value in values if value is not None and str(plain(value)) == str(given)), as_value(given))


def _time(book: Rulebook, detector: Detector, at: Any) -> tuple[int, int]:
    """An instant stands for the time around it, as far as the rule's longest duration; without one, for all up to it."""
    if at is None:
        return -LIMIT, LIMIT
    if isinstance(at, Sequence) and not isinstance(at, str):
        lo, hi = (_instant(each) for each in at)
        return (-LIMIT if lo is None else lo), (LIMIT if hi is None else hi)
    reach = Hints(book.needed_for({detector.order})).reach
    instant = _instant(at)
    if instant is None:
        return -LIMIT, LIMIT
    return (-LIMIT, instant) if reach is None else (instant - reach // 2, instant + reach // 2)


def _instant(time: Any) -> int | None:
    bound = until_microseconds(time)
    return None if bound is None or bound == inf else int(bound)
