"""The state of a correlation as relations that are written (columns/codec.py), and from them again.

Where all units of a window count, only new ones are told, and from which on they count; where the latest ones do, these are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter

import msgspec
import numpy as np

from coincide.detection.columns.codec import Relations, Rows, decode, encode, owned_rows
from coincide.detection.columns.store import NOTHING
from coincide.detection.columns.tables import KEYED, Numbers, Shape, are_among
from coincide.detection.selection.correlating import Correlation
from coincide.detection.selection.groups import Groups, Key
from coincide.detection.selection.state import Values, key_of, unit_of
from coincide.detection.selection.units import Unit
from coincide.detection.selection.windows import Group, Row
from coincide.detection.snapshots import NEVER, damaged, reading_state
from coincide.model.bounds import FURTHEST, Count, Instant
from coincide.model.compound import StoredSingle
from coincide.model.stamp import order_key

KIND = "windows"
GROUPS = Shape("groups", "fired last first count", valued=True, use=KEYED)  # its key
COUNTED = Shape("units", "group>groups number hi", owner="group", grows=True, valued=True, raw=True)
LATEST = Shape("units", "group>groups number hi", owner="group", valued=True, raw=True)
EMPTY = np.zeros(0, np.int64)


class StoredUnit(msgspec.Struct, array_like=True):
    """What a unit is beside its time. Keys of the total order follow from stamps and ids."""

    rules: tuple[Count, ...]
    lo: Instant
    origin: tuple[tuple[Instant, Instant, str], ...]
    values: Values


def whole(correlation: Correlation, groups: Groups) -> bytes:
    """All there is. What `changes` tells next can be added to it, too: it may tell again what is here."""
    return encode(_relations(correlation, groups, _all(groups), False))


def changes(correlation: Correlation, groups: Groups, everything: bool) -> bytes:
    """What has changed since this was called last, or all."""
    touched = _all(groups) if everything else groups.touched
    relations = _relations(correlation, groups, touched, not everything)
    groups.mark_written(touched)
    relations.epoch = groups.epoch
    return encode(relations)


def _all(groups: Groups) -> dict[int, Key]:
    """But what nobody has asked for since it was read, if it can be written as it was."""
    unchanged = isinstance(groups.source, _Stored) and groups.source.is_whole
    return {group.number: key for key, group in (groups.read if unchanged else groups.by_key).items()}


def _relations(correlation: Correlation, groups: Groups, touched: Mapping[int, Key], since_last: bool) -> Relations:
    named = [(key, group) for _, key in sorted(touched.items()) if (group := groups.known(key)) is not None]
    freed = np.sort(np.array(groups.over, np.int64)) if since_last else EMPTY
    rows = {"groups": _groups(named, groups.following, freed), "units": _units(correlation, named, since_last)}
    if not since_last and isinstance(groups.source, _Stored) and (unread := groups.unread):
        rows = {name: _joined(rows[name], more) for name, more in groups.source.rows(unread).items()}
    return Relations(KIND, rows, EMPTY, NOTHING, {}, groups.epoch if since_last else 0, groups.epoch)


def _groups(named: Sequence[tuple[Key, Group]], size: int, freed: Numbers) -> Rows:
    found = [(g.number, NEVER if g.fired is None else g.fired, g.last, g.first, len(g.rows(False))) for _, g in named]
    numbers, *columns = np.array(found, np.int64).reshape(-1, 5).T
    keys = [[value for _, value in key] for key, _ in named]
    return Rows(GROUPS, numbers, dict(zip(("fired", "last", "first", "count"), columns, strict=True)), size, 0, freed, keys)


def _units(correlation: Correlation, named: Sequence[tuple[Key, Group]], since_last: bool) -> Rows:
    found = [(group.number, number, unit) for _, group in named for number, unit in group.rows(since_last)]
    flat = np.array([(group, number, unit.hi) for group, number, unit in found], np.int64).reshape(-1, 3)
    rows = owned_rows(_shape(correlation), dict(zip(("group", "number", "hi"), flat.T, strict=True)))
    rows.values = [_stored(unit) for _, _, unit in found]
    return rows


def _joined(some: Rows, others: Rows) -> Rows:
    """In the order of groups."""
    columns = {name: np.concatenate((column, others.columns[name])) for name, column in some.columns.items()}
    owners = columns.get("group")
    order = np.argsort(np.concatenate((some.numbers, others.numbers)) if owners is None else owners, kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    values = [*(some.values or []), *(others.values or [])]
    picked = [values[row] for row in order.tolist()]
    if owners is not None:
        return replace(owned_rows(some.shape, columns), values=picked)
    return replace(some, numbers=np.concatenate((some.numbers, others.numbers))[order], columns=columns, values=picked)


def _stored(unit: Unit) -> StoredUnit:
    origin = tuple((lo, hi, identifier) for hi, lo, _, _, identifier in unit.origin)
    return StoredUnit(unit.rules, unit.lo, origin, tuple(tuple(value for _, value in parts) for parts in unit.values))


def _shape(correlation: Correlation) -> Shape:
    return LATEST if correlation.window.temporal else COUNTED


# From bytes.


def read(correlation: Correlation, groups: Groups, base: bytes, later: Sequence[bytes] = ()) -> None:
    """Into groups that are at the start. What changes from then on can be told in addition. Raises ValueError."""
    relations = decode((GROUPS, _shape(correlation)), KIND, base, *later)
    rows = relations.rows["groups"]
    keys = msgspec.convert(rows.values or [], list[tuple[StoredSingle, ...]])
    stored = _Stored(correlation, rows, relations.rows["units"], not later)
    found = {key_of(correlation, key): row for row, key in enumerate(keys)}
    if len(found) < len(keys):
        damaged("two groups have one key")
    groups.restored(found, stored, rows.size, max(relations.epoch, 1))


class _Stored:
    """Groups as they were written. Each is read and checked when it is asked for: a worker that has just started reads what it
    needs of many. If it is not `is_whole`, some units were told twice, or have left."""

    def __init__(self, correlation: Correlation, groups: Rows, units: Rows, is_whole: bool) -> None:
        self.correlation = correlation
        self.is_whole = is_whole
        self.groups = groups
        self.units = units
        owners = units.columns["group"]
        self.order = np.lexsort((units.columns["number"], owners))
        self.begins, self.ends = (np.searchsorted(owners[self.order], groups.numbers, side) for side in ("left", "right"))

    def rows(self, of: Sequence[int]) -> dict[str, Rows]:
        """Some groups, which are in these rows, and their units, as they are."""
        wanted = np.zeros(len(self.groups), np.bool_)
        wanted[of] = True
        groups = self.groups.select(wanted)
        return {"groups": groups, "units": self.units.select(are_among(self.units.columns["group"], groups.numbers))}

    def group(self, row: int) -> Group:
        with reading_state():
            group = self.correlation.window.fresh()
            fired, last, first, count = (int(self.groups.columns[name][row]) for name in ("fired", "last", "first", "count"))
            group.number, group.fired, group.last = int(self.groups.numbers[row]), None if fired == NEVER else fired, last
            rows = [(number, unit) for number, unit in self._units(row) if number >= first]
            group.put(_checked(self.correlation, group, rows, (first, count)))
            return group

    def _units(self, row: int) -> list[Row]:
        """In order, each once: one that was told twice is what it was told last."""
        rows = self.order[self.begins[row] : self.ends[row]].tolist()
        numbers, hi, values = self.units.columns["number"], self.units.columns["hi"], self.units.values or []
        found = {int(numbers[each]): each for each in rows}
        return [
            (number, _unit(self.correlation, int(hi[each]), msgspec.msgpack.decode(values[each], type=StoredUnit)))
            for number, each in found.items()
        ]


def _unit(correlation: Correlation, hi: int, stored: StoredUnit) -> Unit:
    if abs(hi) > FURTHEST:
        damaged("an instant is out of range")
    origin = tuple(order_key(lo, end, identifier) for lo, end, identifier in stored.origin)
    return unit_of(correlation, hi, stored.rules, stored.lo, origin, stored.values)


def _checked(correlation: Correlation, group: Group, rows: list[Row], numbered: tuple[int, int]) -> list[Row]:
    """Rows that a group can have: numbered as it says, none too old, in order as far as they follow one another."""
    first, count = numbered
    if len(rows) != count or not all(abs(time) <= FURTHEST for time in _times(group)):
        damaged("a group does not have its units, or has no time")
    if any(not group.last - correlation.window.timespan <= unit.hi <= group.last for _, unit in rows):
        damaged("a unit is not of its window")
    if correlation.window.temporal:
        _check_places(correlation, rows)
    elif not rows or [number for number, _ in rows] != list(range(first, first + count)):
        damaged("a group does not have its units")
    elif any(a.hi > b.hi for (_, a), (_, b) in pairwise(rows)) or first < 0:
        damaged("units do not stand in order")
    return rows


def _times(group: Group) -> Iterator[int]:
    yield group.last
    if group.fired is not None:
        yield group.fired


def _check_places(correlation: Correlation, rows: list[Row]) -> None:
    """Each unit is of the rule that it stands for; of places in order, the units before it are there, too."""
    places = correlation.window.places
    if correlation.rule.kind == "temporal":
        good = all(number in unit.rules for number, unit in rows)
    else:
        chains = groupby(((*divmod(number, len(places)), unit) for number, unit in rows), key=itemgetter(0))
        good = all(0 <= n < len(places) - 1 and _is_chain(places[: n + 1], [row[1:] for row in chain]) for n, chain in chains)
    if not good:
        damaged("a unit stands for a rule that it is not of")


def _is_chain(places: Sequence[int], rows: Sequence[Row]) -> bool:
    right = all(place in unit.rules for place, (_, unit) in zip(places, rows, strict=False))
    ordered = all(a.hi <= b.hi for (_, a), (_, b) in pairwise(rows))
    return right and ordered and [number for number, _ in rows] == list(range(len(places)))
