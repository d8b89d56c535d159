"""Conditions that are never true: tests of one column against constants, joined by AND, that no value passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from coincide.expr.scalar import Evaluate, compile_scalar
from coincide.expr.tree import And, Between, Compare, Expr, In, IsNull, Literal, Reference
from coincide.lang.matchrecognize.functions import lowered
from coincide.model.event import Event, Value
from coincide.model.numbers import is_number, neighbours

OTHER_TEXT = "\U0010fffe"
"""Beyond all texts that people write."""


def is_never_true(test: Expr) -> bool:
    """For certain; where it cannot be told, it is not."""
    if isinstance(test, Literal):
        return test.value is not True
    by_column: dict[Reference, list[Expr]] = {}
    for part in test.operands if isinstance(test, And) else (test,):
        if isinstance(part, Literal) and part.value is not True:
            return True
        if (column := _tested(part)) is not None:
            by_column.setdefault(Reference(column.name, column.alias), []).append(lowered(part))
    return any(_contradict(tests) for tests in by_column.values())


def _tested(part: Expr) -> Reference | None:
    """The one column that a part compares with constants."""
    children = part.children
    columns = [child for child in children if isinstance(child, Reference)]
    plain = isinstance(part, (Compare, In, Between, IsNull)) and len(columns) == 1
    return columns[0] if plain and all(isinstance(child, (Reference, Literal)) for child in children) else None


def _contradict(tests: Sequence[Expr]) -> bool:
    compiled: list[Evaluate] = [compile_scalar(test, _ValueScope()) for test in tests]
    constants = [child.value for test in tests for child in test.children if isinstance(child, Literal)]
    return not any(all(evaluate(value) is True for evaluate in compiled) for value in _values(constants))


def _values(constants: Sequence[Value]) -> Iterator[Value]:
    """One of each kind that the tests can tell apart."""
    yield from (None, True, False)
    numbers = sorted({c for c in constants if is_number(c)}) or [0.0]
    yield from (*numbers, *(near for number in numbers for near in neighbours(number)))
    yield from (numbers[0] - 1, *((float(a) + float(b)) / 2 for a, b in pairwise(numbers)), numbers[-1] + 1)
    texts = sorted({c for c in constants if isinstance(c, str)})
    yield from ("", *texts, *(text + "\0" for text in texts), OTHER_TEXT)


class _ValueScope:
    """The environment is the value of the one column."""

    def reference(self, node: Reference) -> Evaluate:
        return lambda value: value

    def event(self, alias: str | None) -> Callable[[Any], Event | None]:
        raise TypeError("a test of a column with constants has no function")
