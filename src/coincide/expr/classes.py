"""Rows that no test can tell apart are tried once.

Tests mostly compare an attribute with constants. Each attribute then needs only a small code (which constant it equals, or
between which two it lies), and rows with equal codes form a *class*: every test has one truth value for all of it. So the
cost of a thousand tests over a batch is one pass an attribute, and a thousand tests over a few representative rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from coincide.expr.guards import Guarded
from coincide.expr.tree import And, Between, Compare, Expr, In, IsNull, Literal, Not, Or, Reference
from coincide.expr.vector import Rows, Table, evaluate
from coincide.model.column import Column, Numbers, Rests
from coincide.model.numbers import EXACT, is_number, rest_of
from coincide.model.sorting import first_rows, without_gaps

Codes = npt.NDArray[np.int32]
DIRECT = 1 << 22  # up to so many combinations are numbered in one go
MANY = 16
"""With so many contexts, classes are told apart in each by itself: the product of all constants would be too many."""
BOUNDS = 1 << 20  # in all contexts together


def atoms(test: Expr) -> Iterator[Expr]:
    """A test split at and, or, not."""
    if isinstance(test, (And, Or)):
        for operand in test.operands:
            yield from atoms(operand)
    elif isinstance(test, Not):
        yield from atoms(test.operand)
    else:
        yield test


def simple(atom: Expr) -> tuple[str, tuple[Expr, ...]] | None:
    """The attribute and the constants, if the atom compares one attribute with constants only."""
    match atom:
        case Compare(left=Reference(alias=None) as ref, right=Literal() as constant):
            return ref.name, (constant,)
        case Compare(left=Literal() as constant, right=Reference(alias=None) as ref):
            return ref.name, (constant,)
        case In(operand=Reference(alias=None) as ref) if all(isinstance(o, Literal) for o in atom.options):
            return ref.name, atom.options
        case Between(operand=Reference(alias=None) as ref, low=Literal() as low, high=Literal() as high):
            return ref.name, (low, high)
        case IsNull(operand=Reference(alias=None) as ref):
            return ref.name, ()
    return None


@dataclass(frozen=True)
class Constants:
    """What an attribute is compared with, sorted. Codes: 0 null; then the numbers, the texts, false and true."""

    numbers: tuple[float, ...]
    texts: tuple[str, ...]

    @property
    def size(self) -> int:
        return 1 + self._places(self.numbers) + self._places(self.texts) + 2

    @staticmethod
    def _places(constants: Sequence[Any]) -> int:
        return 2 * len(constants) + 1  # each constant, and each gap

    def bounds(self, values: Sequence[object]) -> set[int]:
        """Where codes begin that tests with these constants tell from those before."""
        texts = 1 + self._places(self.numbers)
        found = {1, texts, self.size - 2, self.size - 1}
        for value in values:
            if is_number(value):
                found |= {2 + 2 * self._numbers[value], 3 + 2 * self._numbers[value]}
            elif isinstance(value, str):
                found |= {texts + 2 * self._texts[value] + 1, texts + 2 * self._texts[value] + 2}
        return found

    @cached_property
    def _numbers(self) -> dict[object, int]:
        return {number: n for n, number in enumerate(self.numbers)}

    @cached_property
    def _texts(self) -> dict[str, int]:
        return {text: n for n, text in enumerate(self.texts)}

    def codes(self, column: Column) -> Codes:
        """What each row is to the tests; null is 0."""
        parts = []
        if column.numbers is not None:
            parts.append(self._number_codes(column.numbers, column.rests))
        if column.codes is not None:
            parts.append(self.text_codes(column.texts)[column.codes])
        if column.flags is not None:
            flag_base = self.size - 2
            parts.append(np.array([flag_base, flag_base + 1, 0], np.int32)[column.flags])
        return sum(parts[1:], parts[0]) if parts else np.zeros(len(column), np.int32)

    def text_codes(self, texts: Sequence[str]) -> Codes:
        """The code of each text of a dictionary, and at the end that of null."""
        base = 1 + self._places(self.numbers)
        if not self.texts:  # all are the same to it
            return np.append(np.full(len(texts), base, np.int32), np.int32(0))
        return np.array([base + self._text_code(t) for t in texts] + [0], np.int32)

    def _number_codes(self, values: Numbers, rests: Rests | None) -> Codes:
        constants = np.array(self.numbers, np.float64)
        at = np.searchsorted(constants, values)
        equal = np.append(constants, np.nan)[at] == values
        large = [c for c in self.numbers if abs(c) >= EXACT]
        if large and (rests is not None or any(type(c) is int for c in large)):
            self._tell_apart(large, values, rests, at, equal)
        return np.where(np.isnan(values), 0, 1 + 2 * at + equal).astype(np.int32)

    def _tell_apart(self, large: Sequence[float], values: Numbers, rests: Rests | None, at: Any, equal: Any) -> None:
        """Where a constant has the same double, the rests decide."""
        own = np.zeros(len(values), np.int16) if rests is None else rests
        equal &= np.abs(values) < EXACT
        for constant in large:
            tied, rest = values == float(constant), rest_of(constant)
            at += tied & (own > rest)
            equal |= tied & (own == rest)

    def _text_code(self, text: str) -> int:
        at = bisect_left(self.texts, text)
        return 2 * at + (at < len(self.texts) and self.texts[at] == text)


class RowsToTake(Rows, Protocol):
    """Rows of which some can be picked."""

    def take(self, rows: npt.NDArray[np.int64]) -> Rows: ...


def _constants(tests: Iterator[Expr]) -> dict[str, list[object]]:
    """What each attribute is compared with."""
    constants: dict[str, list[object]] = {}
    for found in map(simple, dict.fromkeys(a for test in tests for a in atoms(test))):
        if found is not None:
            constants.setdefault(found[0], []).extend(c.value for c in found[1] if isinstance(c, Literal))
    return constants


class Contexts:
    """Where many tests ask for a text of one attribute first, a row with that text is told apart by the constants of its own
    tests, and of those that ask for none. Context 0 is that of all other texts."""

    def __init__(self, name: str, tests: Mapping[str, Sequence[Expr]], others: Sequence[Expr]) -> None:
        self.name = name
        self._numbers = {text: n for n, text in enumerate(tests, 1)}
        self._own = [_constants(iter((*own, *others))) for own in ((), *tests.values())]
        self._bounds: dict[str, npt.NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self._own)

    def size(self) -> int:
        return sum(2 * len(values) + 4 for own in self._own for values in own.values())

    def of(self, column: Column | None, length: int) -> npt.NDArray[np.int64]:
        """The context of each row."""
        if column is None or column.codes is None:
            return np.zeros(length, np.int64)
        return np.array([*(self._numbers.get(text, 0) for text in column.texts), 0], np.int64)[column.codes]

    def narrowed(self, name: str, constants: Constants, codes: Codes, contexts: npt.NDArray[np.int64]) -> tuple[Codes, int]:
        """Codes of an attribute as far as they make a difference, and how many there can be."""
        if name not in self._bounds:
            starts = [
                n * constants.size + bound for n, own in enumerate(self._own) for bound in constants.bounds(own.get(name, ()))
            ]
            self._bounds[name] = np.sort(np.array(starts, np.int64))
        bounds = self._bounds[name]
        return np.searchsorted(bounds, contexts * constants.size + codes, "right").astype(np.int32), len(bounds) + 1


def _contexts(tests: Sequence[Expr]) -> Contexts | None:
    """By the attribute whose texts most tests ask for, if that makes many contexts."""
    guarded = Guarded(tests)
    name = max(guarded.by_text, key=lambda name: len(guarded.by_text[name]), default=None)
    if name is None or len(guarded.by_text[name]) < MANY:
        return None
    inside = {number for some in guarded.by_text[name].values() for number in some}
    others = [test for number, test in enumerate(tests) if number not in inside]
    found = Contexts(name, {text: [tests[n] for n in some] for text, some in guarded.by_text[name].items()}, others)
    return found if found.size() <= BOUNDS else None


class Classifier:
    """Classes of rows for a set of tests. Keys of classes are the same in every batch."""

    def __init__(self, tests: Sequence[Expr]) -> None:
        found = dict.fromkeys(a for test in tests for a in atoms(test))
        self._opaque = tuple(atom for atom in found if simple(atom) is None and not isinstance(atom, Literal))
        self._constants = {name: _sorted(values) for name, values in _constants(iter(tests)).items()}
        self._contexts = _contexts(tests) if len(self._constants) > 1 else None

    def classify(self, rows: RowsToTake, detections: Codes | None = None) -> Classes:
        """`detections` tells which rows are detections (1) rather than external events (0); None: no row is one."""
        dictionary = self._dictionary(rows) if detections is None else None
        if dictionary is not None:
            return self._by_dictionary(*dictionary)
        parts: list[tuple[Codes, int]] = [] if detections is None else [(detections, 2)]
        contexts = None if self._contexts is None else self._contexts.of(rows.column(self._contexts.name), rows.length)
        for name, constants in self._constants.items():
            column = rows.column(name)
            if column is None:
                parts.append((np.zeros(rows.length, np.int32), 1))
            elif self._contexts is None or contexts is None or name == self._contexts.name:
                parts.append((constants.codes(column), constants.size))
            else:
                parts.append(self._contexts.narrowed(name, constants, constants.codes(column), contexts))
        for atom in self._opaque:
            flags = evaluate(atom, rows).flags
            parts.append((np.zeros(rows.length, np.int32) if flags is None else flags + np.int32(1), 3))
        return _classes(parts, rows, detections is None)

    def _dictionary(self, rows: Rows) -> tuple[str, Constants, Column] | None:
        """The one column that all tests are about, if it holds texts only: its dictionary tells the classes at once."""
        if self._opaque or len(self._constants) != 1:
            return None
        [(name, constants)] = self._constants.items()
        column = rows.column(name)
        only_texts = column is not None and column.codes is not None and column.numbers is None and column.flags is None
        return (name, constants, column) if column is not None and only_texts else None

    def _by_dictionary(self, name: str, constants: Constants, column: Column) -> Classes:
        assert column.codes is not None
        distinct, first, numbers = np.unique(constants.text_codes(column.texts), return_index=True, return_inverse=True)
        texts = Column(len(first), codes=np.where(first < len(column.texts), first, -1).astype(np.int32), texts=column.texts)
        nothing = np.zeros(len(first), np.int64)
        rows = Table(len(first), {name: texts}, nothing, nothing)
        return Classes(column.codes, numbers, lambda: rows, [(0, int(code)) for code in distinct])


@dataclass(frozen=True, eq=False)
class Classes:
    """Row i is of class numbers[of_row[i]]. Each class has a representative row and a key that holds in every batch; a key
    begins with 1 for detections, 0 for external events."""

    of_row: Codes
    numbers: npt.NDArray[np.int64]
    represent: Callable[[], Rows]
    keys: list[tuple[int, ...]]

    @cached_property
    def representatives(self) -> Rows:
        """Made if somebody asks: classes that have been met before need no trying."""
        return self.represent()


def _sorted(values: list[object]) -> Constants:
    """Sorted by type before equal ones are merged: to Python true and 1 are equal, to a test they are not."""
    numbers = sorted({v for v in values if is_number(v)})
    texts = sorted({v for v in values if isinstance(v, str)})
    return Constants(tuple(numbers), tuple(texts))


def _classes(parts: Sequence[tuple[Codes, int]], rows: RowsToTake, external: bool) -> Classes:
    combined: npt.NDArray[Any] = np.zeros(rows.length, np.int32)
    size = 1
    for codes, values in parts:
        if values == 1:
            continue
        if size * values > DIRECT:
            combined, size = without_gaps(combined, size)
        wide = combined if size * values < 1 << 31 else combined.astype(np.int64)
        combined, size = (wide * wide.dtype.type(values) + codes if size > 1 else codes), size * values
    combined, size = without_gaps(combined, size)
    first = first_rows(combined, size)
    columns = [[0] * size] if external else []
    columns += [codes[first].tolist() for codes, _ in parts]
    keys: list[tuple[int, ...]] = list(zip(*columns, strict=True))
    return Classes(combined.astype(np.int32, copy=False), np.arange(size), lambda: rows.take(first), keys)
