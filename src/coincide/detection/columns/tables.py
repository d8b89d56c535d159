"""State as tables: rows of whole numbers with named fields, some of which refer to rows of other tables.

A table grows by doubling and uses the rows again that were freed. Each row says when it was last written (its epoch), and those
written in the present epoch are listed, so that what has changed is known without a look at the rest. Python sees a table as
`records` with names, compiled loops as a matrix whose columns have the numbers in `Shape.columns`."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from coincide.detection.columns import records

Numbers = records.Numbers

EPOCH, CHANGED, FREE = range(3)
"""What every row begins with: when it was written last; in row n, the n-th row written in this epoch; whether it is free."""
ADMINISTRATION = ("epoch", "changed", "free")
IN_USE = -2
"""In FREE; otherwise the next free row, or -1."""

COUNT, FIRST_FREE, CHANGES, NOW = range(4)
"""What is known of a table, in its head: rows that have ever been used, a free one (-1: none), changed ones, the epoch."""
KEYED, KEYED_DENSELY, SHARED = "keys", "dense keys", "shared"
"""Uses of tables: their values are keys, and rows of others that belong to one have nothing to do with the rest; the same, and
their numbers have no gaps; rows that all keys share."""
UNASKED = -1
"""An epoch before anybody asks for changes: new rows are of it already, and need not be listed."""


@dataclass(frozen=True)
class Field:
    """A number of a row. `into`: of which table it is a row; `optional`: -1 means that there is none. `among`: of which table it
    tells how many rows come before."""

    name: str
    into: str | None = None
    optional: bool = False
    among: str | None = None


class ShapeText(msgspec.Struct, array_like=True):
    """What is written of a shape."""

    name: str
    text: str
    parts: str
    owner: str | None
    grows: bool
    valued: bool
    raw: bool
    use: str

    @property
    def shape(self) -> Shape:
        return Shape(self.name, self.text, "", self.parts, "", self.owner, self.grows, self.valued, self.raw, self.use)


@dataclass(frozen=True)
class Shape:
    """What the rows of a table are. The fields of `text` are written and read: `key>keys` refers to a row of `keys`, `initiator?`
    may be absent, `seen<events` is a place among the events. `links` follow from these and are never written. `parts` and
    `part_links` are the same for each of several parts of a row. Rows of a table with an `owner` (a field) go with the row that
    they belong to: they are written again when it is, or, if they `grow`, only those that are new."""

    name: str
    text: str
    links: str = ""
    parts: str = ""
    part_links: str = ""
    owner: str | None = None
    grows: bool = False
    valued: bool = False  # with a value of Python's for each row, beside the numbers
    raw: bool = False  # which is still to be decoded when it has been read
    use: str = ""  # KEYED, KEYED_DENSELY or SHARED: what it is to who reads a portion (columns/portion.py)

    @property
    def described(self) -> ShapeText:
        return ShapeText(self.name, self.text, self.parts, self.owner, self.grows, self.valued, self.raw, self.use)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(map(_field, self.text.split()))

    @cached_property
    def part_fields(self) -> tuple[Field, ...]:
        return tuple(map(_field, self.parts.split()))

    @cached_property
    def columns(self) -> Any:
        """The number of each field, by name; `parts` is where the first part begins."""
        names = [*ADMINISTRATION, *(f.name for f in self.fields), *self.links.split(), "parts"]
        return namedtuple(self.name, names)(*range(len(names)))

    @cached_property
    def part(self) -> Any:
        """The same within a part; `width` is that of a part."""
        names = [*(f.name for f in self.part_fields), *self.part_links.split(), "width"]
        return namedtuple(f"{self.name}_part", names)(*range(len(names)))

    def width(self, parts: int = 0) -> int:
        return int(self.columns.parts + parts * self.part.width)

    @lru_cache(64)  # noqa: B019  shapes are constants
    def written(self, parts: int) -> list[tuple[str, Field, int]]:
        """Names, fields and columns of what is written."""
        own = [(f.name, f, getattr(self.columns, f.name)) for f in self.fields]
        for number in range(parts):
            at = self.columns.parts + number * self.part.width
            own += [(f"{f.name}.{number}", f, at + column) for column, f in enumerate(self.part_fields)]
        return own


def _field(text: str) -> Field:
    name, _, into = text.rstrip("?").partition(">")
    name, _, among = name.partition("<")
    return Field(name, into or None, text.endswith("?"), among or None)


def empty_rows(width: int, room: int = 4) -> Numbers:
    return np.zeros((room, width), np.int64)


def longer(array: Any, size: int, fill: int = 0) -> Any:
    """The array with room for so many, and for some more. Compiled loops have it, too (linked.py)."""
    if size <= len(array):
        return array
    out = np.zeros((max(size, 2 * len(array), 64), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    if fill != 0:
        out[len(array) :] = fill
    return out


def lengthened(array: Any, size: int) -> Any:
    """The array with so many rows, and not more: room for some is in what it is a view of, and takes no memory until then."""
    if size <= len(array):
        return array
    whole = array if array.base is None else array.base
    return longer(whole, size)[:size]


@dataclass
class Table:
    """Rows, and their head. `values` has one for each row of a shape that asks for them."""

    shape: Shape
    parts: int = 0
    rows: Numbers = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    head: Numbers = field(default_factory=lambda: np.array([0, -1, 0, 1], np.int64))
    values: list[Any] = field(default_factory=list)
    renewals: int = 0  # how often rows have been numbered anew

    def __post_init__(self) -> None:
        if not self.rows.size:
            self.rows = empty_rows(self.shape.width(self.parts))

    def __len__(self) -> int:
        """Rows that have ever been used."""
        return int(self.head[COUNT])

    @property
    def records(self) -> Any:
        """The rows by the names of their fields."""
        return self.rows[: len(self), : self.shape.columns.parts].view(self._kind)[:, 0] if len(self) else self._nothing

    @property
    def _kind(self) -> np.dtype[np.void]:
        return np.dtype([(name, np.int64) for name in self.shape.columns._fields[:-1]])

    @property
    def _nothing(self) -> Any:
        return np.zeros(0, self._kind)

    @property
    def _lists_values(self) -> bool:
        return self.shape.valued

    def values_at(self, numbers: Numbers) -> list[Any]:
        return [self.values[number] for number in numbers.tolist()]

    def live(self) -> Numbers:
        return np.flatnonzero(self.rows[: len(self), FREE] == IN_USE)

    def column(self, name: str) -> Numbers:
        """A field of all rows that have ever been used: changes to it are changes of the table."""
        column: Numbers = self.rows[: len(self), getattr(self.shape.columns, name)]
        return column

    def of_part(self, part: int, name: str) -> Numbers:
        column: Numbers = self.rows[: len(self), self.shape.columns.parts + part * self.shape.part.width + self._within(name)]
        return column

    def _within(self, name: str) -> int:
        number: int = getattr(self.shape.part, name)
        return number

    def add(self, count: int) -> Numbers:
        """New rows, all of whose fields are -1. Free ones are used first, as they were left."""
        taken: list[int] = []
        free, following = int(self.head[FIRST_FREE]), self.rows[:, FREE].item
        while free >= 0 and len(taken) < count:
            taken.append(free)
            free = following(free)
        self.head[FIRST_FREE] = free
        first = len(self)
        self.head[COUNT] = end = first + count - len(taken)
        self.reserve(end)
        numbers = np.concatenate((np.array(taken, np.int64), np.arange(first, end)))
        self.rows[numbers[len(taken) :]] = -1
        self.rows[numbers, FREE] = IN_USE
        if self._lists_values:
            self.values += [None] * (end - first)
        self.touch(numbers)
        return numbers

    def reserve(self, size: int) -> None:
        self.rows = longer(self.rows, size)

    def touch(self, numbers: Numbers) -> None:
        """These rows have been written."""
        new = numbers[self.rows[numbers, EPOCH] != self.head[NOW]]
        before = int(self.head[CHANGES])
        self.rows[new, EPOCH] = self.head[NOW]
        self.rows[before : before + len(new), CHANGED] = new
        self.head[CHANGES] = before + len(new)

    def free(self, numbers: Numbers) -> None:
        if not len(numbers):
            return
        self.touch(numbers)
        self.rows[numbers, FREE] = np.concatenate(([self.head[FIRST_FREE]], numbers[:-1]))
        self.head[FIRST_FREE] = numbers[-1]
        for number in numbers.tolist() if self.values else ():
            self.values[number] = None

    def changed(self) -> Numbers:
        """Rows written in this epoch, free ones among them."""
        return np.sort(self.rows[: self.head[CHANGES], CHANGED])

    def next_epoch(self) -> None:
        self.head[NOW] = max(self.head[NOW], 0) + 1
        self.head[CHANGES] = 0

    def keep(self, numbers: Numbers) -> None:
        """Only these rows, numbered anew in this order. What has changed is not known then."""
        self.rows = self.rows[numbers]
        self.renewals += 1
        self.rows[:, EPOCH], self.rows[:, FREE] = 0, IN_USE
        self.head[:] = len(numbers), -1, 0, self.head[NOW]
        if self.values:
            self.values = self.values_at(numbers)

    def place(self, size: int, numbers: Numbers) -> None:
        """Rows with these numbers, of so many, are in use; to be filled by who knows what is in them."""
        self.reserve(size)
        self.renewals += 1
        self.rows[:size] = -1
        self.rows[:size, EPOCH] = 0
        self.rows[numbers, FREE] = IN_USE
        unused = np.flatnonzero(self.rows[:size, FREE] != IN_USE)
        self.rows[unused, FREE] = np.append(unused[1:], -1)
        self.head[:] = size, unused[0] if len(unused) else -1, 0, self.head[NOW]
        if self._lists_values:
            self.values = [None] * size


def taken(ranges_from: Numbers, sizes: Numbers) -> Numbers:
    """All numbers of some ranges, one range after another."""
    ends = np.cumsum(sizes)
    return np.repeat(ranges_from - ends + sizes, sizes) + np.arange(int(ends[-1]) if len(ends) else 0)


def are_among(numbers: Numbers, some: Numbers) -> npt.NDArray[np.bool_]:
    """Which numbers are among some that ascend. `np.isin` sorts these again."""
    if not len(some):
        return np.zeros(len(numbers), np.bool_)
    found: npt.NDArray[np.bool_] = some[np.minimum(some.searchsorted(numbers), len(some) - 1)] == numbers
    return found


def distinct(numbers: Numbers, size: int | None = None) -> Numbers:
    """Numbers (below `size`), each once, in order. Where they are many, marking them is faster than sorting; `np.unique` hashes
    them before it sorts, which takes several times as long."""
    if size is None or 8 * len(numbers) < size:
        ordered: Numbers = np.sort(numbers, axis=None)
        first = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
        return ordered[first]
    marks = np.zeros(size, np.bool_)
    marks[numbers] = True
    return np.flatnonzero(marks)


def numbered(numbers: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """The same, and for each number where it is among them."""
    if 8 * len(numbers) < size:
        used, index = np.unique(numbers, return_inverse=True)
        return used, index
    used = distinct(numbers, size)
    places = np.empty(size, np.int64)
    places[used] = np.arange(len(used))
    return used, places[numbers]
