"""Conditions inside Numba kernels.

    condition = Condition(tree)                     # once a rule, such as `A.x = C.x and B.v > A.v + 20`
    columns = condition.hoist({"A": rows, ...})     # a batch: the parts of the tree about one alias each, by vector.py
    bound = condition.bind(columns)
    bound.function(rows, bound.columns, bound.constants) -> bool     # Numba; call it from a kernel

- `rows[i]` is the row of alias `condition.aliases[i]`, an index into the rows that its columns were hoisted from; -1 means that
  there is no such event: all its attributes are null. Any integer array will do.
- A *leaf* is a largest subtree about a single alias; `condition.leaves[i]` is (alias, tree) and `columns[i]` its values. A
  caller that keeps events longer than a batch keeps these derived columns, and binds them again when they have grown.
- Inside the kernel everything is a double with nan for null: numbers, booleans (0, 1), and texts as ranks in a dictionary that
  all columns of the condition and its constants share (sorted where the tree asks for an order).
- The source of `function` is made of the tree's nodes only; constants are passed as numbers. It depends on the tree and on the
  types found in the columns, not on constants, so rules that differ in constants only share one compilation.
- `supports(tree)` says why a tree cannot be compiled: functions of texts of *several* aliases, and `distance`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from coincide.expr.functions import Function
from coincide.expr.parts import Flag, Parts, Unsupported, truth
from coincide.expr.scalar import AliasScope, compile_scalar, single
from coincide.expr.tree import Alias, And, Expr, Literal, Or, Reference, aliases_of, without_aliases
from coincide.expr.vector import Rows, evaluate
from coincide.model.column import Column, Numbers, column_of, concatenated

KINDS = ("number", "text", "flag")


@dataclass(frozen=True)
class Leaf:
    """A subtree about one alias; in `tree` its references have none."""

    alias: str | None
    tree: Expr


@dataclass(frozen=True)
class Bound:
    """A condition and the data it reads. `python` is the function before Numba compiles it, for tests and for looking at."""

    columns: tuple[Numbers, ...]
    constants: Numbers
    source: str

    @property
    def function(self) -> Callable[..., bool]:
        return _jitted(self.source)

    @property
    def python(self) -> Callable[..., bool]:
        return _plain(self.source)


class Condition:
    """A condition about several events, split into leaves and what is left to the kernel."""

    def __init__(self, tree: Expr) -> None:
        self.tree = tree
        self.leaves: tuple[Leaf, ...]
        self.rest, self.leaves = split(tree)
        self.aliases: tuple[str | None, ...] = tuple(dict.fromkeys(leaf.alias for leaf in self.leaves))
        # The value where there is no such event, as of `A.x is null`, becomes the last row: the one at index -1.
        self._defaults = [column_of([compile_scalar(leaf.tree, AliasScope())({})]) for leaf in self.leaves]

    def hoist(self, rows: Mapping[str | None, Rows]) -> tuple[Column, ...]:
        """One column a leaf. An alias may be left out; its row is -1 then."""
        return tuple(evaluate(leaf.tree, rows[leaf.alias]) if leaf.alias in rows else Column(0) for leaf in self.leaves)

    def bind(self, columns: Sequence[Column]) -> Bound:
        columns = [concatenated([c, d]) for c, d in zip(columns, self._defaults, strict=True)]
        emitted = self._emit([_kinds(c) for c in columns])
        if emitted.reasons:
            raise Unsupported("; ".join(emitted.reasons))
        rank = _ranks(columns, emitted)
        arrays = tuple(_cells(columns[leaf], kind, rank) for leaf, kind in emitted.slots)
        constants = np.array([rank[c] if isinstance(c, str) else c for c in emitted.constants], np.float64)
        return Bound(arrays, constants, emitted.source())

    def _emit(self, kinds: Sequence[Sequence[str]]) -> _Emitter:
        emitter = _Emitter(self.leaves, self.aliases, kinds)
        operands = self.rest.operands if isinstance(self.rest, And) else (self.rest,)
        for operand in operands:  # one after another, so that the rest is not computed where one does not hold
            emitter.line(f"if not {truth(operand, emitter)}: return False")
        return emitter


def supports(tree: Expr) -> list[str]:
    """Reasons why the tree cannot be compiled; none: it can."""
    try:
        condition = Condition(tree)
        return condition._emit([KINDS] * len(condition.leaves)).reasons
    except Unsupported as unsupported:
        return [unsupported.reason]


# Splitting.


def split(tree: Expr) -> tuple[Expr, tuple[Leaf, ...]]:
    """The tree with its largest single-alias subtrees replaced: leaf i became a reference named `i`."""
    leaves: dict[Leaf, int] = {}

    def cut(node: Expr) -> Expr:
        found = aliases_of(node)
        if not found:
            return node if isinstance(node, Literal) else Literal(single(compile_scalar(node, AliasScope())({})))
        if len(found) == 1:
            (alias,) = found
            return Reference(str(leaves.setdefault(Leaf(alias, without_aliases(node)), len(leaves))), alias)
        if isinstance(node, (And, Or)):
            node = type(node)(tuple(_grouped(node)))
        return _with_children(node, cut)

    return cut(tree), tuple(leaves)


def _grouped(node: And | Or) -> Iterable[Expr]:
    """Operands about one alias become one operand, and come first: the order of `and` and `or` does not matter."""
    groups: dict[frozenset[str | None], list[Expr]] = {}
    for operand in node.operands:
        groups.setdefault(aliases_of(operand), []).append(operand)
    single = [type(node)(tuple(ops)) if len(ops) > 1 else ops[0] for found, ops in groups.items() if len(found) == 1]
    return single + [o for found, ops in groups.items() if len(found) != 1 for o in ops]


def _with_children(node: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The node with each child changed; aliases are names, not values."""
    updates: dict[str, Any] = {}
    for f in fields(node):
        value = getattr(node, f.name)
        if isinstance(value, Expr):
            updates[f.name] = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Expr):
            updates[f.name] = tuple(v if isinstance(v, Alias) else change(v) for v in value)
    return replace(node, **updates)


# Emitting: numbers, texts and conditions are names of local variables.

_Parts = Parts[str, str, str]

# Templates for every operator, so that no text but this file's gets into the source.
COMPARE = {
    "=": "{0} == {1}",
    "!=": "{0} < {1} or {0} > {1}",  # false for nan, unlike !=
    "<": "{0} < {1}",
    "<=": "{0} <= {1}",
    ">": "{0} > {1}",
    ">=": "{0} >= {1}",
}
UNARY = {"-": "-{0}"} | {name: name + "({0})" for name in ("abs", "round", "floor", "ceil", "sqrt")}
BINARY = {
    "+": "{0} + {1}",
    "-": "{0} - {1}",
    "*": "{0} * {1}",
    "/": "{0} / {1} if {1} != 0.0 else NAN",
    "%": "fmod({0}, {1}) if {1} != 0.0 else NAN",
    "power": "{0} ** {1} if {0} == {0} and {1} == {1} else NAN",
    "min": "({1} if {1} < {0} else {0}) if {0} == {0} and {1} == {1} else NAN",
    "max": "({1} if {1} > {0} else {0}) if {0} == {0} and {1} == {1} else NAN",
}


@dataclass
class _Emitter:
    """The algebra of source lines, each computing one variable. What it cannot do it notes in `reasons`."""

    leaves: Sequence[Leaf]
    aliases: Sequence[str | None]
    kinds: Sequence[Sequence[str]]  # of each leaf: the parts that its column has
    lines: list[str] = field(default_factory=list)
    slots: list[tuple[int, str]] = field(default_factory=list)  # of each column array: leaf and part
    constants: list[float | str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    ordered: bool = False  # are texts compared for order?
    _loaded: dict[int, _Parts] = field(default_factory=dict)

    def source(self) -> str:
        rows = [f"r{i} = rows[{i}]" for i in range(len(self.aliases))]
        body = "".join(f"    {line}\n" for line in [*rows, *self.lines, "return True"])
        return f"def holds(rows, columns, constants):\n{body}"

    def line(self, text: str) -> None:
        self.lines.append(text)

    def value(self, expression: str, *operands: str) -> str:
        name = f"v{len(self.lines)}"
        self.line(f"{name} = {expression.format(*operands)}")
        return name

    def constant(self, value: float | str) -> str:
        self.constants.append(value)
        return self.value(f"constants[{len(self.constants) - 1}]")

    def number(self, value: float | None) -> str:
        return "NAN" if value is None else self.constant(value)

    def text(self, value: str | None) -> str:
        return "NAN" if value is None else self.constant(value)

    def always(self, value: bool) -> str:
        return str(value)

    def reference(self, node: Reference) -> _Parts:
        leaf = int(node.name)
        if leaf not in self._loaded:
            number, text, flag = (self._load(leaf, kind) if kind in self.kinds[leaf] else None for kind in KINDS)
            tests = None if flag is None else Flag(self.value("{0} == 1.0", flag), self.value("{0} == 0.0", flag))
            self._loaded[leaf] = Parts(number, text, tests)
        return self._loaded[leaf]

    def _load(self, leaf: int, kind: str) -> str:
        self.slots.append((leaf, kind))
        row = f"r{self.aliases.index(self.leaves[leaf].alias)}"
        return self.value(f"columns[{len(self.slots) - 1}][{row}]")

    def both(self, a: str, b: str) -> str:
        return self.value("{0} and {1}", a, b)

    def either(self, a: str, b: str) -> str:
        return self.value("{0} or {1}", a, b)

    def negate(self, a: str) -> str:
        return self.value("not {0}", a)

    def choose(self, test: str, yes: str, no: str) -> str:
        return self.value("{1} if {0} else {2}", test, yes, no)

    def has_number(self, a: str) -> str:
        return self.value("{0} == {0}", a)

    def compare_numbers(self, op: str, a: str, b: str) -> str:
        return self.value(COMPARE[op], a, b)

    def number_in(self, a: str, values: Sequence[float]) -> str:
        return self.value(" or ".join(f"{a} == {self.constant(v)}" for v in values))

    def choose_number(self, test: str, yes: str, no: str) -> str:
        return self.choose(test, yes, no)

    def unary(self, name: str, a: str) -> str:
        return self.value(UNARY[name], a)

    def binary(self, name: str, a: str, b: str) -> str:
        if name not in BINARY:
            self.reasons.append(f"'{name}' to digits of values of several events")
            return "NAN"
        result = self.value(BINARY[name], a, b)
        return self.value("{0} if {0} - {0} == 0.0 else NAN", result)

    def has_text(self, a: str) -> str:
        return self.has_number(a)

    def compare_texts(self, op: str, a: str, b: str) -> str:
        self.ordered |= op not in ("=", "!=")
        return self.compare_numbers(op, a, b)

    def text_in(self, a: str, values: Sequence[str]) -> str:
        return self.value(" or ".join(f"{a} == {self.constant(v)}" for v in values))

    def choose_text(self, test: str, yes: str, no: str) -> str:
        return self.choose(test, yes, no)

    def extreme_text(self, name: str, a: str, b: str) -> str:
        self.ordered = True
        return self.binary(name, a, b)

    def spell(self, a: str) -> str:
        return "NAN"  # only for `concat`, which gives the reason

    def call(self, function: Function, texts: Sequence[str]) -> _Parts:
        self.reasons.append(f"'{function.name}' makes something of texts of several events")
        return Parts()

    def event(self, name: str, aliases: Sequence[str | None], numbers: Sequence[str]) -> _Parts:
        self.reasons.append(f"'{name}' of several events")
        return Parts()


# Data.


def _kinds(column: Column) -> tuple[str, ...]:
    parts = (column.numbers, column.codes, column.flags)
    return tuple(kind for kind, part in zip(KINDS, parts, strict=True) if part is not None)


def _ranks(columns: Sequence[Column], emitted: _Emitter) -> dict[str, float]:
    """All texts that may meet, numbered; in their order if that matters."""
    constants = [c for c in emitted.constants if isinstance(c, str)]
    texts = dict.fromkeys(t for some in (constants, *(columns[i].texts for i, k in emitted.slots if k == "text")) for t in some)
    return {text: float(rank) for rank, text in enumerate(sorted(texts) if emitted.ordered else texts)}


def _cells(column: Column, kind: str, rank: Mapping[str, float]) -> Numbers:
    if kind == "text":
        assert column.codes is not None
        return np.array([*(rank[t] for t in column.texts), np.nan], np.float64)[column.codes]
    if kind == "flag":
        assert column.flags is not None
        return np.array([0.0, 1.0, np.nan])[column.flags]
    assert column.numbers is not None
    return column.numbers


# Compilation.


def rounded(x: float) -> float:
    """As functions.rounded, but of floats throughout, as Numba wants it."""
    whole = np.trunc(x)
    return float(whole + np.copysign(1.0, x) if abs(x - whole) >= 0.5 else whole)


NAMES = {"NAN": math.nan, "fmod": np.fmod, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt, "round": rounded}


def _made(source: str, names: dict[str, Any]) -> Callable[..., bool]:
    exec(compile(source, "<condition>", "exec"), names)
    made: Callable[..., bool] = names["holds"]
    return made


@lru_cache(maxsize=1024)
def _plain(source: str) -> Callable[..., bool]:
    return _made(source, dict(NAMES))


@lru_cache(maxsize=1024)
def _jitted(source: str) -> Callable[..., bool]:
    import numba

    made = _made(source, {**NAMES, "round": numba.njit(rounded)})
    compiled: Callable[..., bool] = numba.njit(error_model="numpy")(made)
    return compiled
