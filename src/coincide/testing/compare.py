"""When two sets of detections, or two answers of an analysis, are the same: the rules of conformance cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from typing import Any

Record = Mapping[str, Any]

RELATIVE = 1e-9
"""Numbers that differ by no more are equal: engines may add up in different orders."""


def same(a: object, b: object) -> bool:
    """Equality of JSON values, in which true is not 1, null fields are absent and numbers are equal within RELATIVE."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        a, b = _filled(a), _filled(b)
        return a.keys() == b.keys() and all(same(value, b[name]) for name, value in a.items())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if _is_number(a) and _is_number(b):
        return isclose(a, b, rel_tol=RELATIVE)  # type: ignore[arg-type]
    return type(a) is type(b) and a == b


def plain_detection(record: Record) -> dict[str, Any]:
    """What counts of a detection: its own id does not, a point is a number, ids of constituents are texts."""
    out = {name: value for name, value in record.items() if name != "id" and value is not None}
    time = out.get("time")
    if isinstance(time, (list, tuple)) and len(time) == 2 and time[0] == time[1]:
        out["time"] = time[0]
    if isinstance(out.get("from"), (list, tuple)):
        out["from"] = [str(identifier) for identifier in out["from"]]
    return out


def unmatched(expected: Iterable[Record], actual: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Detections that are missing and those that are not expected, as multisets."""
    wanted, made = [plain_detection(r) for r in expected], [plain_detection(r) for r in actual]
    wanted, made = _without_equals(wanted, made)
    missing: list[Record] = []
    for record in wanted:
        found = next((n for n, other in enumerate(made) if same(record, other)), None)
        if found is None:
            missing.append(record)
        else:
            del made[found]
    return missing, list(made)


def _without_equals(
    wanted: list[dict[str, Any]], made: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Leaves out what agrees to the letter, so that only the rest is compared pair by pair."""
    spelt_wanted, spelt_made = [_spelt(r) for r in wanted], [_spelt(r) for r in made]
    common = Counter(spelt_wanted) & Counter(spelt_made)
    return _rest(wanted, spelt_wanted, common), _rest(made, spelt_made, common)


def _rest(records: Sequence[dict[str, Any]], spelt: Sequence[str], common: Counter[str]) -> list[dict[str, Any]]:
    left = Counter(common)
    rest = []
    for record, text in zip(records, spelt, strict=True):
        if left[text]:
            left[text] -= 1
        else:
            rest.append(record)
    return rest


def _spelt(record: Record) -> str:
    return repr(sorted(record.items()))


def differing_fields(expected: Record, actual: Record) -> list[str]:
    """Names of fields that are not the same in two detections."""
    names = dict.fromkeys([*expected, *actual])
    return [name for name in names if not same(expected.get(name), actual.get(name))]


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


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
