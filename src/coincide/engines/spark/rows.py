"""Rows of a resulting DataFrame as events again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engines.instance import IN_ORDER, StabilityPolicy
from coincide.engines.policies import PolicyRun, policies_of
from coincide.engines.spark.latecomers import LATE
from coincide.engines.spark.outputs import LATENCY, ORDER
from coincide.engines.spark.values import MOMENT
from coincide.model.batch import EventBatch
from coincide.model.compound import Several
from coincide.model.event import Event, Value, detection, primitive
from coincide.model.numbers import number_of
from coincide.model.space import Space
from coincide.model.stamp import order_key
from coincide.rulebook import Rulebook

OUT = 65_536


def ordered(table: pa.Table, names: list[str]) -> Iterator[EventBatch]:
    """The detections of the resulting frame in the order in which they were made, as far as that shows."""
    events = sorted((event for event, _ in _detections(table, names)), key=_in_time)
    for start in range(0, len(events), OUT):
        yield EventBatch(events[start : start + OUT])


def events_of(table: pa.Table, names: list[str]) -> Iterator[Event]:
    """The same in the order of the rows; what is beside them in a frame (keys, versions) are attributes."""
    return (event for event, _ in _detections(table, names))


def no_run(rules: Rulebook, policy: StabilityPolicy | None) -> PolicyRun:
    """What comes of nothing."""
    return PolicyRun(late={some: [] for some in policies_of(rules, policy or IN_ORDER).values()})


def gathered(rules: Rulebook, policy: StabilityPolicy | None, table: pa.Table, names: list[str]) -> PolicyRun:
    """The same under policies, with all that such a run gives."""
    own = policies_of(rules, policy or IN_ORDER)
    run = no_run(rules, policy)
    is_late = pc.is_valid(table.column(names.index(LATE)))
    made = _detections(table.filter(pc.invert(is_late)), names)
    for event, latency in sorted(made, key=lambda one: (one[0].hi + (one[1] or 0), *_in_time(one[0]))):
        run.add(event, event.hi + (latency or 0), own[event.type])
    for event, some in _late_events(table.filter(is_late).column(names.index(LATE))):
        for each in some:
            run.late[StabilityPolicy.parse(each)].append(event)
    return run


def _in_time(event: Event) -> tuple[Any, ...]:
    return event.hi, event.lo, event.origin[-1:], event.place[3:]


def _detections(table: pa.Table, names: list[str]) -> Iterator[tuple[Event, int | None]]:
    """With their latencies, where there is such a column."""
    there = [number for number, name in enumerate(names) if name != LATE]
    columns = [_plain(table.column(number)) for number in there]
    for row in zip(*columns, strict=True):
        values = dict(zip((names[number] for number in there), row, strict=True))
        latency = values.pop(LATENCY, None)
        yield _event(values), latency


def _late_events(column: pa.ChunkedArray) -> Iterator[tuple[Event, list[str]]]:
    fields = {f.name: pc.struct_field(column, [number]) for number, f in enumerate(column.type)}
    spaces = fields.pop("space").to_pylist() if "space" in fields else [None] * len(column)
    fields["arrival"] = fields["arrival"].cast(MOMENT).cast(pa.int64())
    values = {name: _plain(array) for name, array in fields.items()}
    for number, space in enumerate(spaces):
        row = {name: column[number] for name, column in values.items()}
        (lo, hi), kind, identifier, source = row.pop("time"), row.pop("type"), row.pop("id"), row.pop("source")
        arrival, policies = row.pop("arrival"), row.pop("policies")
        attributes = _attributes(row)
        place = None if space is None else Space(**space)
        yield primitive(kind, lo, hi, identifier, attributes, source, place, arrival), policies


def _plain(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_struct(kind) and {f.name for f in kind} == {"lo", "hi"}:
        ends = [pc.struct_field(column, end).cast(MOMENT).cast(pa.int64()).to_pylist() for end in ("lo", "hi")]
        return list(zip(*ends, strict=True))
    values: list[Any] = column.to_pylist()
    if pa.types.is_struct(kind):
        return [
            None if v is None else next((part for part in v.values() if part is not None), None) for v in map(_decoded, values)
        ]
    return values


def _decoded(value: dict[str, Any] | None) -> dict[str, Any] | None:
    if value is not None and value.get("compound") is not None:
        return {"compound": msgspec.msgpack.decode(value["compound"], type=Several | int)}
    return value


def _attributes(row: dict[str, Any]) -> dict[str, Value]:
    return {name: number_of(value) if type(value) is int else value for name, value in row.items() if value is not None}


def _event(row: dict[str, Any]) -> Event:
    lo, hi = row.pop("time")
    kind, identifiers, source, order = row.pop("type"), row.pop("from"), row.pop("source"), row.pop(ORDER, (1,))
    attributes = _attributes(row)
    origin = tuple(order_key(lo, hi, identifier) for identifier in identifiers)
    return detection(kind, (lo, hi), attributes, origin, (hi, 0, 0, *order), source)
