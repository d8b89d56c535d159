"""When two sets of detections, or two answers of an analysis, are the same: the rules of conformance cases."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from typing import Any

from coincide.graphs import largest_matching
from coincide.model.numbers import EXACT

Record = Mapping[str, Any]

PARTIAL = "..."
"""The field of an expectation that stands for whatever else a detection has."""

RELATIVE = 1e-9
"""Numbers that differ by no more are equal: engines may add up in different orders."""


def same(a: object, b: object) -> bool:
    """Equality of JSON values, in which true is not 1, null fields are absent and numbers are equal within RELATIVE; whole
    numbers of more digits than a double has, wholly."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        a, b = _filled(a), _filled(b)
        return a.keys() == b.keys() and all(same(value, b[name]) for name, value in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if _is_number(a) and _is_number(b):
        if _has_many_digits(a) or _has_many_digits(b):
            return a == b
        return isclose(a, b, rel_tol=RELATIVE)  # type: ignore[arg-type]
    return type(a) is type(b) and a == b


def plain_detection(record: Record) -> dict[str, Any]:
    """What counts of a detection: its own id does not, a point is a number, ids of constituents are texts. A null is the
    same as nothing, except where it is all that is said of a field: in a partial expectation."""
    out = {name: value for name, value in record.items() if name != "id" and (value is not None or PARTIAL in record)}
    time = out.get("time")
    if isinstance(time, (list, tuple)) and len(time) == 2 and time[0] == time[1]:
        out["time"] = time[0]
    if isinstance(out.get("from"), (list, tuple)):
        out["from"] = [str(identifier) for identifier in out["from"]]
    return out


def meets(expected: Record, actual: Record) -> bool:
    """Is a plain detection as expected? Of a partial expectation only the fields that it names count."""
    return not differing_fields(expected, actual)


def unmatched(expected: Iterable[Record], actual: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Detections that are missing and those that are not expected, as multisets."""
    wanted, made = [plain_detection(r) for r in expected], [plain_detection(r) for r in actual]
    met = matching(wanted, made)
    used = set(met.values())
    return [r for n, r in enumerate(wanted) if n not in met], [r for n, r in enumerate(made) if n not in used]


def matching(wanted: Sequence[Record], made: Sequence[Record]) -> dict[int, int]:
    """Which expectation is met by which detection, each by its number. As many as can be: those that say all first, then
    those that say a part, which make room for each other."""
    met, free = _equal_to_the_letter(wanted, made)
    partial = [n for n, record in enumerate(wanted) if PARTIAL in record]
    for n in sorted(set(range(len(wanted))) - met.keys() - set(partial)):
        found = next((m for m in free if same(wanted[n], made[m])), None)
        if found is not None:
            met[n] = found
            free.remove(found)
    return met | largest_matching({n: [m for m in free if meets(wanted[n], made[m])] for n in partial})


def _equal_to_the_letter(wanted: Sequence[Record], made: Sequence[Record]) -> tuple[dict[int, int], list[int]]:
    """What agrees as it is spelt, so that only the rest is compared pair by pair; and the numbers of that rest."""
    spelt: dict[str, deque[int]] = {}
    for m, record in enumerate(made):
        spelt.setdefault(_spelling(record), deque()).append(m)
    met = {n: numbers.popleft() for n, record in enumerate(wanted) if (numbers := spelt.get(_spelling(record)))}
    return met, sorted(m for numbers in spelt.values() for m in numbers)


def _spelling(record: Record) -> str:
    return repr(sorted(record.items()))


def differing_fields(expected: Record, actual: Record) -> list[str]:
    """Names of fields that are not the same in two detections; of a partial expectation only those that it names."""
    names = dict.fromkeys(expected if PARTIAL in expected else [*expected, *actual])
    return [name for name in names if name != PARTIAL and not same(expected.get(name), actual.get(name))]


def answers(expected: object, actual: object, place: str = "") -> list[str]:
    """Where an answer differs from what is expected of it: only keys that `expected` names count, at any depth."""
    if isinstance(expected, Mapping) and (isinstance(actual, Mapping) or actual is None):
        given: Mapping[str, Any] = actual or {}
        if actual is None and _filled(expected):
            return [f"{place or 'the answer'}: expected {expected!r}, found none"]
        return [line for name, value in expected.items() for line in answers(value, given.get(name), _below(place, name))]
    return [] if same(expected, actual) else [f"{place or 'the answer'}: expected {expected!r}, found {actual!r}"]


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _filled(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}


def _has_many_digits(value: object) -> bool:
    return isinstance(value, int) and abs(value) > EXACT


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
