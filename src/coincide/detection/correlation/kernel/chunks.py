"""Messages that wait, in chunks: a step looks at those whose keys it touches, and leaves the others where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from coincide.detection.columns.store import NOTHING, joined, picked
from coincide.detection.columns.tables import distinct, taken
from coincide.detection.correlation.kernel.rows import Messages, Numbers, appended, compacted
from coincide.model.bounds import FURTHEST
from coincide.model.column import Column
from coincide.model.event import Value
from coincide.model.table import EventTable

ENVELOPE_FIELDS = frozenset({"type", "id", "source", "space"})
NO_ROWS = np.zeros(0, np.int64)

Ends = Callable[[int, Messages], Numbers]
"""After which instants messages of a source are of no more use."""


class ByKey:
    """Messages of a source by the numbers of their keys, then by arrival."""

    def __init__(self, keys: Numbers) -> None:
        self.positions = np.argsort(keys, kind="stable")
        self.keys = keys[self.positions]

    def having(self, wanted: Numbers) -> Numbers:
        first, last = np.searchsorted(self.keys, wanted), np.searchsorted(self.keys, wanted, "right")
        return np.sort(self.positions[taken(first, last - first)])


@dataclass(eq=False)
class Chunk:
    """The envelopes of some messages, in order of arrival, and each source's messages among them. They have `numbers`, which
    ascend."""

    table: EventTable
    messages: list[Messages]
    numbers: Numbers
    _half: int | None = None
    _by_key: dict[int, ByKey] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def followed_by(self, other: Chunk) -> Chunk:
        if not len(self) or not len(other):
            return self if len(self) else other
        table = joined([self.table, other.table])
        messages = [_followed(table, len(self), *pair) for pair in zip(self.messages, other.messages, strict=True)]
        return Chunk(table, messages, np.concatenate((self.numbers, other.numbers)))

    def only(self, positions: Sequence[Numbers]) -> Chunk:
        """These messages of each source, and no others."""
        messages = [some if len(at) == len(some) else some.take(at) for some, at in zip(self.messages, positions, strict=True)]
        rows = distinct(np.concatenate([some.rows for some in messages]), len(self.table))
        table = self.table if len(rows) == len(self) else picked(self.table, rows, ENVELOPE_FIELDS)
        at = [some.rows if table is self.table else np.searchsorted(rows, some.rows) for some in messages]
        columns = [{name: compacted(column) for name, column in some.columns.items()} for some in messages]
        return Chunk(table, [*map(Messages, [table] * len(at), at, columns)], self.numbers[rows])

    def since(self, number: int) -> Chunk:
        """What has this number or a higher one."""
        first = int(np.searchsorted(self.numbers, number))
        starts = [int(np.searchsorted(some.rows, first)) for some in self.messages]
        return self.only([np.arange(start, len(some)) for start, some in zip(starts, self.messages, strict=True)])

    def index(self, source: int, name: str, keys: Keys) -> ByKey:
        """Of the messages of a source, by an attribute."""
        if source not in self._by_key:
            self._by_key[source] = ByKey(keys.numbers(self.messages[source].column(name)))
        return self._by_key[source]

    def useful(self, ends: Ends, now: int) -> Chunk:
        return self.only([np.flatnonzero(ends(source, some) >= now) for source, some in enumerate(self.messages)])

    def half(self, ends: Ends) -> int:
        """After this instant half of it is of no more use."""
        if self._half is None:
            last = np.full(max(1, len(self)), -FURTHEST)
            for source, some in enumerate(self.messages):
                last[some.rows] = np.maximum(last[some.rows], ends(source, some))
            self._half = int(np.partition(last, len(last) // 2)[len(last) // 2])
        return self._half


def nothing(sources: int) -> Chunk:
    return Chunk(NOTHING, [Messages(NOTHING, NO_ROWS) for _ in range(sources)], NO_ROWS)


def together(chunks: Iterable[Chunk]) -> Chunk:
    """One after another."""
    return reduce(Chunk.followed_by, chunks)


def _followed(table: EventTable, start: int, old: Messages, new: Messages) -> Messages:
    columns = {name: appended(old.columns.get(name), column) for name, column in new.columns.items()}
    return Messages(table, np.concatenate((old.rows, start + new.rows)), columns)


class Keys(dict[Value, int]):
    """Values by which messages are looked for, with numbers. Values of different types may have one: more is found then."""

    def numbers(self, column: Column | None) -> Numbers:
        """New ones are given to those that have none; -1: null."""
        if column is None or column.codes is None:
            return self._each([] if column is None else column.values())
        return np.append(self._each(column.texts), -1)[column.codes]

    def _each(self, values: Iterable[Value]) -> Numbers:
        return np.array([-1 if value is None else self.setdefault(value, len(self)) for value in values], np.int64)

    def known(self, columns: Iterable[Column]) -> Numbers:
        """Those that values of these columns have, each once."""
        values = (value for column in columns for value in (column.values() if column.codes is None else column.compact().texts))
        found = {self.get(value, -1) for value in values}
        return np.array(sorted(found - {-1}), np.int64)
