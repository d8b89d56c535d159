"""Tables of several definitions of one form, whose keys begin with the number of the definition, as tables of each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coincide.detection.columns.codec import EVENTS, Relations, Rows
from coincide.detection.columns.tables import KEYED, SHARED, Numbers, distinct

NOBODY = -1


def split(relations: Relations, owners: Mapping[str, Numbers], count: int) -> list[Relations]:
    """By the owners of rows, which are so many. Rows keep their numbers; what they share, each has whole."""
    pieces = {name: _pieces(rows, owners.get(name), count) for name, rows in relations.rows.items()}
    found = []
    for number in range(count):
        rows = {name: parts[number] for name, parts in pieces.items()}
        refs = _references(rows, EVENTS)
        events = relations.events.take(np.searchsorted(relations.refs, refs))
        found.append(replace(relations, rows=rows, refs=refs, events=events, notes=dict(relations.notes)))
    return found


def by_number(numbers: Numbers, count: int) -> list[Numbers]:
    """Where each number below `count` stands."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(count + 1)))[1:-1]


def owners_of(relations: Relations) -> dict[str, Numbers]:
    """Of which definition each row is: that of a key, of a row that it refers to, or of one that refers to it."""
    own = {name: rows for name, rows in relations.rows.items() if rows.shape.use != SHARED}
    owners = {name: np.full(len(rows), NOBODY) for name, rows in own.items()}
    for name, rows in own.items():
        if rows.shape.use == KEYED:
            owners[name] = np.array([key[0] for key in rows.values or ()], np.int64)
    links = [link for name in own for link in _links(own, name)]
    while sum(_passed_on(owners, *link) for link in links):  # as long as one tells more
        pass
    return owners


def _links(own: dict[str, Rows], name: str) -> list[tuple[str, Numbers, str, Numbers]]:
    """Tables, and which rows of the one refer to which of the other."""
    found, rows = [], own[name]
    for label, field, _ in rows.shape.written(rows.parts):
        if field.into in own:
            here = np.flatnonzero(rows.columns[label] >= 0)
            found.append((name, here, field.into, np.searchsorted(own[field.into].numbers, rows.columns[label][here])))
    return found


def _passed_on(owners: dict[str, Numbers], one: str, here: Numbers, other: str, there: Numbers) -> bool:
    """Does it tell more than was known?"""
    mine, others = owners[one][here], owners[other][there]
    down, up = (mine < 0) & (others >= 0), (mine >= 0) & (others < 0)
    owners[one][here[down]] = others[down]
    owners[other][there[up]] = mine[up]
    return bool(down.any() or up.any())


def _pieces(rows: Rows, owners: Numbers | None, count: int) -> list[Rows]:
    if owners is None:
        return [rows] * count
    keyed = rows.shape.use == KEYED
    return [_piece(rows, mine, keyed) for mine in by_number(owners, count)]


def _piece(rows: Rows, mine: Numbers, keyed: bool) -> Rows:
    found = rows.select(mine)
    if rows.shape.owner is not None:
        found.numbers, found.size = np.arange(len(mine)), len(mine)
    if rows.values is not None:
        values: list[Any] = [rows.values[row] for row in mine.tolist()]
        found.values = [value[1:] for value in values] if keyed else values
    return found


def _references(rows: dict[str, Rows], into: str) -> Numbers:
    columns: Sequence[Numbers] = [
        some.columns[label] for some in rows.values() for label, field, _ in some.shape.written(some.parts) if field.into == into
    ]
    numbers = distinct(np.concatenate(columns))
    return numbers[numbers >= 0]
