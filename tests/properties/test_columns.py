"""Rows that are read as columns are the events that they are one by one, and the same of them are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from coincide.adapters.frames import from_arrow
from coincide.adapters.mapping import FieldMapping
from coincide.adapters.records import BadRecord, event_of
from coincide.model.event import Event

MAPPINGS = {
    "usual": FieldMapping(),
    "seconds, with ends": FieldMapping(unit="s", end="till"),
    "nanoseconds": FieldMapping(unit="ns", end="till"),
    "one type": FieldMapping(constant_type="made"),
    "untyped": FieldMapping(untyped=True),
    "of other names": FieldMapping(type="kind.name", time="at", id="key", source="place.of", space="place", arrival="came"),
}
FIELDS = (
    "type", "time", "id", "source", "space", "arrival", "till", "@timestamp", "event.category",
    "kind.name", "at", "key", "place.of", "place", "came", "v", "w.x",
)  # fmt: skip
"""None with the parts of a time or a place: only tables have those."""
WIDE = ("time", "at", "space", "place", "v", "w.x", "event.category")
"""Fields that may be structs and lists. Elsewhere one is refused."""
WORDS = st.sampled_from(["a", "b", "process", "", "no name", "7", "2020-01-01", "2020-01-01T00:00:01Z", "14"])
WHOLE = st.one_of(st.integers(-3, 40), st.sampled_from([2**53 + 1, 2**62, -(2**62)]))
DOUBLES = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.4, -7.25, 1e15, 1e300, float("inf")])
PLACES = {"x": DOUBLES, "y": DOUBLES, "lat": WHOLE, "zone": WORDS, "z": DOUBLES}
RANGES = {"lo": WHOLE, "hi": WHOLE}


@st.composite
def structs(draw: st.DrawFn, fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    names = draw(st.sets(st.sampled_from(sorted(fields)), min_size=1, max_size=3))
    return st.fixed_dictionaries({name: fields[name] for name in sorted(names)})


SINGLE = st.sampled_from([WORDS, WORDS, WHOLE, WHOLE, DOUBLES, st.booleans()])
SEVERAL = SINGLE | SINGLE.map(lambda values: st.lists(st.none() | values, max_size=3))
"""What the values of a column are: of one kind, as Arrow has it."""


def kinds(field: str) -> st.SearchStrategy[Any]:
    if field not in WIDE:
        return SINGLE
    return SEVERAL | structs(PLACES if field in ("space", "place") else RANGES)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, pa.Table]:
    name, rows = draw(st.sampled_from(sorted(MAPPINGS))), draw(st.integers(1, 5))
    mapping = MAPPINGS[name]
    usual = {mapping.type: WORDS, mapping.time: WHOLE}
    fields = draw(st.sets(st.sampled_from(FIELDS), max_size=6)) | (set(usual) if draw(st.integers(0, 5)) else set())
    columns = {}
    for field in sorted(fields):
        values = usual[field] if field in usual and draw(st.integers(0, 3)) else draw(kinds(field))
        columns[field] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)))
        if pa.types.is_string(columns[field].type) and draw(st.booleans()):
            columns[field] = columns[field].dictionary_encode()
    table = pa.table(columns) if columns else pa.table({"v": pa.nulls(rows)})
    return name, table


def told(event: Event) -> tuple[Any, ...]:
    attributes = sorted((name, type(value).__name__, value) for name, value in event.attributes.items())
    return event.type, event.lo, event.hi, event.id, event.source, event.space, event.arrival, repr(attributes)


@pytest.mark.brief(examples=60)  # each takes some milliseconds
@settings(max_examples=400, deadline=None)
@given(tables())
def test_columns_are_rows(drawn: tuple[str, pa.Table]) -> None:
    name, table = drawn
    note(f"{table.schema}\n{table.to_pylist()}")
    expected, refused = [], []
    for position, row in enumerate(table.to_pylist(), 1):
        try:
            expected.append(told(event_of(row, MAPPINGS[name], position)))
        except BadRecord:
            refused.append(str(position))
    reader = from_arrow(table, MAPPINGS[name])
    assert [told(event) for batch in reader for event in batch.events] == expected
    assert [reason.split(":")[1] for reason in reader.report.reasons] == refused
