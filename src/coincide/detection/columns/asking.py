"""Which rows many definitions read: each distinct test is tried once, and only on rows of the type that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.keys import Codes
from coincide.detection.columns.known import KnownKeys
from coincide.detection.columns.tables import distinct, taken
from coincide.detection.keys import Key
from coincide.model.column import Column
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Question = tuple[str, Hashable]
"""A type, and what else has to hold of a row; None: nothing. Those of a definition become bits."""


AT_ONCE = 1 << 22
"""Rows as definitions read them."""


class Answer(NamedTuple):
    """A row as a definition reads it, in order of rows and then of definitions: a bit for each of its questions that holds."""

    rows: Numbers
    whose: Numbers
    bits: Numbers

    def keyed(self, codes: Codes, keys: Sequence[Key], opens: Mask, known: KnownKeys) -> tuple[Numbers, list[Key]]:
        """Keys of definitions, which begin with the number of the definition; and which of them is that of each row as a
        definition reads it. None (-1) where a part is null, and of rows that do not open anything if none of the key does and it
        is not known. `codes` are the numbers of keys of all rows."""
        found = np.full(len(self.rows), -1, np.int64)
        of_row = codes[self.rows].astype(np.int64)
        there = np.flatnonzero(of_row >= 0)
        used, index = np.unique(self.whose[there] * len(keys) + of_row[there], return_inverse=True)
        chosen = np.zeros(len(used), np.bool_)
        chosen[index[opens[there]]] = True
        whose, which = (numbers.tolist() for numbers in np.divmod(used, max(len(keys), 1)))
        wanted = [(float(number), *keys[key]) for number, key in zip(whose, which, strict=True)]
        chosen |= known.of(wanted) >= 0
        found[there] = np.where(chosen, np.cumsum(chosen) - 1, -1)[index]
        return found, [wanted[number] for number in np.flatnonzero(chosen).tolist()]


class Asking:
    """The questions of several definitions, by number."""

    def __init__(self, questions: Sequence[Sequence[Question]]) -> None:
        asked: dict[str, dict[tuple[int, int], int]] = {}  # by type; by definition and test: the bits
        tests: dict[Hashable, int] = {None: 0}
        for whose, own in enumerate(questions):
            for number, (kind, rest) in enumerate(own):
                entries = asked.setdefault(kind, {})
                entry = whose, tests.setdefault(rest, len(tests))
                entries[entry] = entries.get(entry, 0) | 1 << number
        self._kinds = {kind: number for number, kind in enumerate(asked)}
        sizes = np.array([*map(len, asked.values()), 0], np.int64)
        self._sizes, self._starts = sizes, np.cumsum(sizes) - sizes
        found = [(*entry, bits) for entries in asked.values() for entry, bits in entries.items()]
        self._whose, self._test, self._bits = np.array(found, np.int64).reshape(-1, 3).T.copy()
        self._tests = [*tests]

    def cut(self, table: EventTable) -> Iterator[EventTable]:
        """Rows one after another, of which not too many are asked at once."""
        ends = np.cumsum(self._sizes[self._numbered(table.column("type"))])
        cuts = np.searchsorted(ends, np.arange(AT_ONCE, int(ends[-1]), AT_ONCE))
        if not len(cuts):
            yield table
            return
        for first, end in pairwise(distinct(np.concatenate(([0], cuts, [len(table)]))).tolist()):
            yield table.rows(first, end)

    def _numbered(self, kinds: Column) -> Numbers:
        """Types by their numbers here."""
        nobody = len(self._kinds)
        known = np.array([*(self._kinds.get(text, nobody) for text in kinds.texts), nobody], np.int64)
        return known[kinds.codes] if kinds.codes is not None else np.full(len(kinds), nobody)

    def of(self, kinds: Column, holds: Callable[[Any, Numbers], Mask]) -> Answer:
        """`kinds` are the types of all rows; `holds` tells of which rows a test holds."""
        kind = self._numbered(kinds)
        sizes = self._sizes[kind]
        entries, rows = taken(self._starts[kind], sizes), np.repeat(np.arange(len(kind)), sizes)
        held = self._held(entries, rows, holds)
        if not held.all():
            entries, rows = entries[held], rows[held]
        return _united(rows, self._whose[entries], self._bits[entries])

    def _held(self, entries: Numbers, rows: Numbers, holds: Callable[[Any, Numbers], Mask]) -> Mask:
        asked = self._test[entries]
        held: Mask = asked == 0
        order = np.argsort(asked, kind="stable")[np.count_nonzero(held) :]
        starts = np.flatnonzero(np.diff(asked[order], prepend=0))
        for number, mine in zip(asked[order[starts]].tolist(), np.split(order, starts)[1:], strict=True):
            some = rows[mine]  # several definitions may ask the same of a row
            new = np.diff(some, prepend=-1) != 0
            held[mine] = holds(self._tests[number], some[new])[np.cumsum(new) - 1]
        return held


def _united(rows: Numbers, whose: Numbers, bits: Numbers) -> Answer:
    """What different tests of a definition say of a row is one answer."""
    new = (rows[1:] != rows[:-1]) | (whose[1:] != whose[:-1])
    if new.all():
        return Answer(rows, whose, bits)
    first = np.flatnonzero(np.concatenate(([True], new)))
    return Answer(rows[first], whose[first], np.bitwise_or.reduceat(bits, first))
