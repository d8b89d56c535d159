"""Rows that no test can tell apart are tried once.

Tests mostly compare an attribute with constants. Each attribute then needs only a small code (which constant it equals, or
between which two it lies), and rows with equal codes form a *class*: every test has one truth value for all of it. So the
cost of a thousand tests over a batch is one pass an attribute, and a thousand tests over a few representative rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.expr.tree import And, Between, Compare, Expr, In, IsNull, Literal, Not, Or, Reference
from coincide.expr.vector import Rows, evaluate
from coincide.model.column import Column

Codes = npt.NDArray[np.int64]
DIRECT = 1 << 22  # up to so many combinations, classes are numbered through a table rather than by sorting


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

    def codes(self, column: Column) -> Codes:
        codes = np.zeros(len(column), np.int64)
        if column.numbers is not None:
            codes += self._number_codes(column.numbers)
        text_base = 1 + self._places(self.numbers)
        if column.codes is not None:
            table = np.array([text_base + self._text_code(t) for t in column.texts] + [0], np.int64)
            codes += table[column.codes]
        if column.flags is not None:
            flag_base = text_base + self._places(self.texts)
            codes += np.array([flag_base, flag_base + 1, 0], np.int64)[column.flags]
        return codes

    def _number_codes(self, values: npt.NDArray[np.float64]) -> Codes:
        constants = np.array(self.numbers, np.float64)
        at = np.searchsorted(constants, values)
        equal = np.append(constants, np.nan)[at] == values
        return np.where(np.isnan(values), 0, 1 + 2 * at + equal)

    def _text_code(self, text: str) -> int:
        at = bisect_left(self.texts, text)
        return 2 * at + (at < len(self.texts) and self.texts[at] == text)


class Classifier:
    """Classes of rows for a set of tests. Keys of classes are the same in every batch."""

    def __init__(self, tests: Sequence[Expr]) -> None:
        constants: dict[str, set[object]] = {}
        opaque: dict[Expr, None] = {}
        for atom in dict.fromkeys(a for test in tests for a in atoms(test)):
            found = simple(atom)
            if found is not None:
                constants.setdefault(found[0], set()).update(c.value for c in found[1] if isinstance(c, Literal))
            elif not isinstance(atom, Literal):
                opaque[atom] = None
        self._opaque = tuple(opaque)
        self._constants = {name: _sorted(values) for name, values in constants.items()}

    def classify(self, rows: Rows, extra: Sequence[tuple[Codes, int]] = ()) -> Classes:
        """`extra` are further codes (with their number of values) that tell rows apart."""
        parts = [*extra]
        for name, constants in self._constants.items():
            column = rows.column(name)
            if column is not None:
                parts.append((constants.codes(column), constants.size))
            else:
                parts.append((np.zeros(rows.length, np.int64), 1))
        for atom in self._opaque:
            flags = evaluate(atom, rows).flags
            parts.append((np.zeros(rows.length, np.int64) if flags is None else flags.astype(np.int64) + 1, 3))
        return _classes(parts, rows.length)


@dataclass(frozen=True, eq=False)
class Classes:
    """`of_row` numbers the classes of this batch; each has a representative row and a key that holds in every batch."""

    of_row: npt.NDArray[np.int32]
    representatives: Codes
    keys: list[tuple[int, ...]]


def _sorted(values: set[object]) -> Constants:
    numbers = sorted(v for v in values if isinstance(v, float))
    texts = sorted(v for v in values if isinstance(v, str))
    return Constants(tuple(numbers), tuple(texts))


def _classes(parts: Sequence[tuple[Codes, int]], length: int) -> Classes:
    combined, size = np.zeros(length, np.int64), 1
    for codes, values in parts:
        if size * values > DIRECT:
            combined, size = _dense(combined, size)
        combined, size = combined * values + codes, size * values
    combined, size = _dense(combined, size)
    representatives = np.zeros(size, np.int64)
    representatives[combined[::-1]] = np.arange(length - 1, -1, -1)
    columns = [codes[representatives].tolist() for codes, _ in parts]
    keys: list[tuple[int, ...]] = list(zip(*columns, strict=True)) if columns else [()] * size
    return Classes(combined.astype(np.int32), representatives, keys)


def _dense(codes: Codes, size: int) -> tuple[Codes, int]:
    """The same distinctions with numbers from 0 without gaps."""
    if size > max(DIRECT, 2 * len(codes)):
        distinct, inverse = np.unique(codes, return_inverse=True)
        return inverse, len(distinct)
    present = np.zeros(size, np.bool_)
    present[codes] = True
    numbers = np.cumsum(present) - 1
    return numbers[codes], int(numbers[-1]) + 1 if size else 0
