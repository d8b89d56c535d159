"""The state of correlations, and the reader of what releases before tables wrote (relations.py)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from coincide.detection.selection.correlating import Correlation
from coincide.detection.selection.groups import Groups, Key
from coincide.detection.selection.program import Program
from coincide.detection.selection.units import Root, Unit, part
from coincide.detection.selection.windows import Group
from coincide.detection.snapshots import check_stamp, damaged, decoded, key_of_order
from coincide.model.bounds import Count, Instant, Whole
from coincide.model.compound import StoredSingle
from coincide.model.numbers import is_number
from coincide.model.stamp import OrderKey

VERSION = 1
StoredPart = tuple[str, StoredSingle]


@dataclass
class SelectionState:
    """Groups by correlation."""

    groups: list[Groups]


def fresh(program: Program) -> SelectionState:
    return SelectionState([Groups(correlation.window.fresh) for correlation in program.correlations])


def key_of(correlation: Correlation, values: tuple[StoredSingle, ...]) -> Key:
    if len(values) != len(correlation.rule.group_by):
        damaged(f"a group has {len(values)} values, not {len(correlation.rule.group_by)}")
    return tuple(map(part, values))


Values = tuple[tuple[StoredSingle, ...], ...]


def unit_of(
    correlation: Correlation, hi: int, rules: tuple[int, ...], lo: int, origin: tuple[OrderKey, ...], values: Values
) -> Unit:
    """A unit that was written, if it can be one of this correlation."""
    check_stamp(lo, hi)
    if not rules or max(rules) >= len(correlation.needs) or not origin:
        damaged("a unit is one of no rule, or made of nothing")
    fields = correlation.rule.fields
    if bool(values) != bool(fields) or any(len(value) != len(fields) for value in values):
        damaged("a unit has values of other fields")
    if correlation.window.numeric and not all(is_number(number) for (number,) in values):
        damaged("a value is not a number")
    return Unit(hi, rules, (Root(lo, origin),), tuple(tuple(map(part, value)) for value in values))


class KeptUnit(msgspec.Struct, array_like=True):
    hi: Instant
    lo: Instant
    rules: tuple[Count, ...]
    origin: tuple[tuple[Whole, Whole, Whole, Whole, str], ...]
    values: tuple[tuple[StoredPart, ...], ...] = ()


class Kept(msgspec.Struct, array_like=True):
    """A correlation's groups: key, units, last firing."""

    version: int
    groups: list[tuple[tuple[StoredPart, ...], list[KeptUnit], Instant | None]]


def read_objects(correlation: Correlation, groups: Groups, data: bytes) -> None:
    """Into groups that are at the start. Raises ValueError."""
    for key, units, fired in decoded(data, Kept, VERSION).groups:
        if units:
            group = groups.at(key_of(correlation, tuple(value for _, value in key)))
            group.fired = fired
            _replay(correlation, group, units)


def _replay(correlation: Correlation, group: Group, units: list[KeptUnit]) -> None:
    for unit in units:
        if len(group) and unit.hi < group.last:
            damaged("units do not stand in order")
        values = tuple(tuple(value for _, value in parts) for parts in unit.values)
        origin = tuple(map(key_of_order, unit.origin))
        group.add(unit_of(correlation, unit.hi, unit.rules, unit.lo, origin, values), unit.hi - correlation.window.timespan)
