"""Sets and ranges stand for one value, known only to be among these (section 2.2)."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.detection.correlation.values import among, canonical, computed, matched, overlaps, ternary
from coincide.expr.parse import parse_expression
from coincide.expr.scalar import COMPARE, EventScope, compile_scalar
from coincide.model.batch import EventBatch
from coincide.model.compound import ValueRange, ValueSet, compound_of
from coincide.model.event import Event, Value, record

FAR = 1e9
numbers = st.sampled_from([0.0, 1.0, 2.0])
bounds = st.one_of(st.none(), numbers)
uncertain = st.one_of(numbers, st.lists(numbers, max_size=3).map(compound_of), st.builds(ValueRange, bounds, bounds))


def choices(value: Value) -> list[float]:
    """Enough of the values that it can be to tell all comparisons."""
    if isinstance(value, ValueSet):
        return [m for m in value.members if isinstance(m, float)]
    if not isinstance(value, ValueRange):
        return [value] if isinstance(value, float) else []
    lo, hi = (-FAR if value.lo is None else value.lo), (FAR if value.hi is None else value.hi)
    points = [lo, hi, *(n / 2 for n in range(-1, 6))]
    return sorted({float(p) for p in points if lo <= p <= hi})  # type: ignore[operator]


@given(st.sampled_from(list(COMPARE)), uncertain, uncertain)
def test_comparisons_hold_for_every_choice(op: str, a: Value, b: Value) -> None:
    found = {COMPARE[op](x, y) for x, y in product(choices(a), choices(b))}
    assert ternary(op, a, b) is (found.pop() if len(found) == 1 else None)


@given(uncertain, uncertain)
def test_among_and_overlaps(x: Value, options: Value) -> None:
    possible = {y in choices(options) for y in choices(x)}
    if not isinstance(x, ValueRange) and isinstance(options, (ValueSet, ValueRange)):
        assert among(x, options) is (possible.pop() if len(possible) == 1 else None)
    assert overlaps(x, options) is any(y in choices(options) for y in choices(x))


def test_a_range_among_ranges() -> None:
    assert among(ValueRange(1.0, 2.0), ValueRange(0.0, None)) is True
    assert among(ValueRange(1.0, None), ValueRange(0.0, 9.0)) is None
    assert among(ValueRange(1.0, 1.0), ValueSet((1.0, 5.0))) is True
    assert among(ValueRange(3.0, 4.0), ValueSet((1.0, 5.0))) is False
    assert among("a", ValueSet((1.0,))) is None
    assert among(1.0, ValueSet()) is False


@pytest.mark.parametrize(
    ("value", "kind", "as_message", "as_result"),
    [
        (1.5, "int", None, 1.0),
        (-1.5, "int", None, -1.0),
        (True, "int", None, None),
        ("1970-01-01T00:00:01Z", "time_t", 1000.0, 1000.0),
        ("soon", "time_t", None, None),
        (ValueSet((1.0, 2.0)), "int", ValueSet((1.0, 2.0)), ValueSet((1.0, 2.0))),
        (ValueSet((1.0, "x")), "string", None, None),
        (ValueRange("a", None), "string", ValueRange("a", None), ValueRange("a", None)),
        (ValueRange(), "double", ValueRange(), ValueRange()),
    ],
)
def test_declared_types(value: Value, kind: str, as_message: Value, as_result: Value) -> None:
    assert matched(value, kind) == as_message
    assert computed(value, kind) == as_result


def test_equal_content() -> None:
    assert canonical(ValueSet((1.0, 2.0))) == canonical(ValueSet((2.0, 1.0)))
    assert canonical(True) != canonical(1.0)


RECORD: dict[str, Any] = {"type": "a", "id": "x", "time": 1, "s": [3, "b", 3, None, True], "r": {"lo": 8}, "bad": [[1]], "n": 2}


def event(raw: dict[str, Any] = RECORD) -> Event:
    return event_of(raw, DEFAULT, 1)


def test_records_hold_sets_and_ranges() -> None:
    assert event().attributes == {"s": ValueSet((3.0, "b", True)), "r": ValueRange(8.0), "r.lo": 8.0, "n": 2.0}
    assert record(event()) == {"type": "a", "id": "x", "time": 1, "s": [3, "b", True], "r": {"lo": 8}, "r.lo": 8, "n": 2}


def test_events_with_sets_survive_encoding_and_columns() -> None:
    plain = event({"type": "a", "id": "y", "time": 1, "s": "text", "r": [1]})
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(event()), type=Event) == event()
    table = EventBatch([event(), plain]).table
    assert [e.attributes for e in EventBatch(table=table).events] == [event().attributes, plain.attributes]
    swapped = table.take(np.array([1, 0]))
    assert [e.attributes for e in EventBatch(table=swapped).events] == [plain.attributes, event().attributes]


def test_other_languages_see_null() -> None:
    for text, expected in (("s is null", True), ("s = s", None), ("r + 1", None), ("coalesce(r, n)", 2.0)):
        assert compile_scalar(parse_expression(text), EventScope())(event()) == expected
