"""Atoms of predicates, and the values that are enough to try for an attribute (ecl.md, section 7, "Letters")."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coincide.analysis.formula import Truth
from coincide.expr.scalar import Evaluate, compile_scalar
from coincide.expr.tree import Between, Compare, Expr, In, IsNull, Literal, Reference
from coincide.model.event import Event, Value
from coincide.model.numbers import is_number, neighbours

NULL, BOOLEAN, NUMBER, TEXT = "null", "boolean", "number", "text"
ENVELOPE_KINDS = {"type": (TEXT,), "time": (NUMBER,), "source": (NULL, TEXT), "id": (NULL, TEXT)}
ANY_KIND = (NULL, BOOLEAN, NUMBER, TEXT)

Change = Mapping[int, Truth]
"""The atoms whose truth is another than before, by number."""


@dataclass(frozen=True)
class Atom:
    """Simple: a test of one attribute against constants. Opaque: no attribute, it may be anything."""

    attribute: str | None
    evaluate: Callable[[Value], Truth]
    constants: tuple[Value, ...]


def atom(tree: Expr) -> Atom:
    parts = tree.children
    references = [part for part in parts if isinstance(part, Reference)]
    constants = [part for part in parts if isinstance(part, Literal)]
    comparison = isinstance(tree, (Compare, In, Between, IsNull))
    if not comparison or len(references) != 1 or len(constants) + 1 != len(parts):
        return Atom(None, _unknown, ())
    values = tuple(part.value for part in constants)  # no set: 1 and true would be one
    if isinstance(tree, In) and isinstance(tree.operand, Reference):
        return Atom(references[0].name, membership(values, tree.negated), values)
    evaluate: Any = compile_scalar(tree, _ValueScope())
    return Atom(references[0].name, evaluate, values)


def membership(options: Iterable[Value], negated: bool) -> Callable[[Value], Truth]:
    """`in` with constants, by a look-up: lists of them are long, and each is tried with all of its own members."""
    options = list(options)
    known = {(type(option), option) for option in options}
    kinds = {_kind(option) for option in options}

    def evaluate(value: Value) -> Truth:
        if value is None:
            return None
        if (type(value), value) in known:
            return not negated
        return negated if kinds == {_kind(value)} else None

    return evaluate


def _kind(value: Value) -> type:
    return float if is_number(value) else type(value)


def _unknown(value: Value) -> Truth:
    raise TypeError("an opaque atom has no value")


class _ValueScope:
    """The environment is the value of the one attribute."""

    def reference(self, node: Reference) -> Evaluate:
        return lambda value: value

    def event(self, alias: str | None) -> Callable[[Any], Event | None]:
        raise TypeError("an atom with a function is not simple")


def changes(attribute: str | None, atoms: Mapping[int, Atom], keys: Iterable[str]) -> Iterator[Change]:
    """The truth of the atoms over all values of the attribute, as changes from one value to the next. So a thousand
    comparisons of one attribute cost a few thousand evaluations, not a million."""
    if attribute is None:
        for truth in (True, False, None):
            yield dict.fromkeys(atoms, truth)
        return
    kinds = ENVELOPE_KINDS.get(attribute, ANY_KIND)
    if NULL in kinds and attribute not in keys:
        yield _all_at(None, atoms)
    if BOOLEAN in kinds:
        yield _all_at(True, atoms)
        yield _all_at(False, atoms)
    if NUMBER in kinds:
        yield from _in_order(_numbers(atoms), float, atoms)
    if TEXT in kinds:
        yield from _in_order(_texts(atoms), str, atoms)


def _all_at(value: Value, atoms: Mapping[int, Atom]) -> Change:
    return {number: atom.evaluate(value) for number, atom in atoms.items()}


def _in_order(values: Sequence[Any], kind: type, atoms: Mapping[int, Atom]) -> Iterator[Change]:
    """Along an order an atom changes only at its own constants and just after them."""
    yield _all_at(values[0], atoms)
    place = {value: index for index, value in enumerate(values)}
    due: dict[int, list[int]] = {}
    for number, atom in atoms.items():
        for constant in atom.constants:
            if _kind(constant) is kind and constant in place:
                for index in (place[constant], place[constant] + 1):
                    due.setdefault(index, []).append(number)
    for index in sorted(due):
        if index < len(values):
            yield {number: atoms[number].evaluate(values[index]) for number in due[index]}


def _numbers(atoms: Mapping[int, Atom]) -> list[float]:
    """Every constant and its neighbours among the numbers; infinities are not values."""
    constants = {c for atom in atoms.values() for c in atom.constants if is_number(c)}
    return sorted({n for c in constants for n in (c, *neighbours(c)) if math.isfinite(n)}) or [0.0]


def _texts(atoms: Mapping[int, Atom]) -> list[str]:
    """Every constant and the next text after it; the empty text is the smallest of all."""
    constants = {c for atom in atoms.values() for c in atom.constants if type(c) is str}
    return sorted({"", *constants, *(c + "\0" for c in constants)})
