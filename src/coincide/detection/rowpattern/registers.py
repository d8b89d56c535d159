"""Conditions that read rows of the match before their own, for the compiled loop (section 11).

What such a condition can read of its path stands in *slots*, one array of numbers for each row of the path: the first or last
rows of some variables, or what an aggregate has taken in. The condition itself is a short program for a stack of numbers. What
depends on the row under test alone is computed beforehand, for all rows, as a column. Texts are numbers too: their ranks among
all that the conditions can meet; null is NaN."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coincide.detection.columns import operations as ops
from coincide.detection.columns.operations import OF_TWO
from coincide.detection.rowpattern import instructions as own
from coincide.detection.rowpattern.conditions import Condition, FoldRegister, Register, RowRegister
from coincide.detection.rowpattern.expressions import Folded, Lookup, reads_labels
from coincide.detection.rowpattern.instructions import DEPTH, FOLDED, FOLDS, JOINING, OF_ONE
from coincide.detection.rowpattern.partition import Program
from coincide.expr.tree import And, Arithmetic, Between, Call, Compare, Expr, In, IsNull, Literal, Negate, Not, Or
from coincide.lang.matchrecognize.definition import Classifier, MatchFact
from coincide.model.column import Column
from coincide.syntax import walk

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NUMBER, TEXT, FLAG, NULL = "number", "text", "flag", "null"


class Unfit(Exception):
    """Values of several types in one column: the objects' evaluation does those."""


class Code(NamedTuple):
    """All conditions of a query as arrays. The program of variable v stands from spans[v] to spans[v + 1]; where it is empty, the
    condition is known beforehand."""

    program: Numbers  # operation and three arguments
    spans: Numbers
    columns: Floats  # by number and row
    constants: Floats
    labels: Floats  # the rank of each variable's name
    groups: Numbers  # of slots: kind, first slot, how many, with labels?, column
    members: Flags  # by group and variable: does it take the rows?
    start: Floats  # the slots at the start of a path
    relevant: Flags  # by state and slot: may it still be read?
    asks: Numbers  # NEXT from a row of the path: variable, slot, shift


def unfit_reasons(program: Program) -> Iterator[str]:
    """Why conditions are not for the loop; nothing: they are."""
    for name, test in zip(program.clause.variables, program.conditions.tests, strict=True):
        if test is not None and needs_code(test):
            found = next(_faults(test, test.tree), None)
            if found is not None:
                yield f"the condition of {name} {found}"


def needs_code(test: Condition) -> bool:
    """Does it depend on more than the row under test?"""
    return bool(test.registers) or test.uses_number


def _is_free(test: Condition, tree: Expr) -> bool:
    """Is it known from the row under test?"""
    if isinstance(tree, Lookup):
        return test.is_local(tree) and not (reads_labels(tree.operand) and tree.shift)
    if isinstance(tree, Folded) or (isinstance(tree, MatchFact) and tree.function == "MATCH_NUMBER"):
        return False
    return all(_is_free(test, child) for child in tree.children)


def _faults(test: Condition, tree: Expr) -> Iterator[str]:
    if _is_free(test, tree):
        return
    match tree:
        case Lookup(operand):
            yield from _operand_faults(operand, isinstance(operand, Classifier) and tree.shift == 0)
        case Folded(function, operands):
            if function not in FOLDS:
                yield f"keeps {function.upper()} of rows of the match"
            for operand in operands:
                yield from _operand_faults(operand, function == "count" and isinstance(operand, Classifier))
        case Call(name) if name not in JOINING and name not in OF_ONE:
            yield f"uses {name.upper()}() of rows of the match"
        case And() | Or() | Not() | Compare() | In() | Between() | IsNull() | Arithmetic() | Negate() | Call() | MatchFact():
            for child in tree.children:
                yield from _faults(test, child)
        case _:
            yield f"has {type(tree).__name__.upper()} of rows of the match"


def _operand_faults(operand: Expr, labels_fit: bool) -> Iterator[str]:
    if reads_labels(operand) and not labels_fit:
        yield "reads labels of the match"
    elif any(isinstance(node, MatchFact) for node in walk(operand)):
        yield "reads facts of the match at another row"


Values = Callable[[Expr, int], Column]
"""The values of an operand at all rows; of what a condition's row under test has, with the number of its variable."""


class Coder:
    """From conditions to code, for one batch of rows."""

    def __init__(self, program: Program, values: Values, rows: int) -> None:
        self.clause = program.clause
        self.conditions = program.conditions
        self.searching = program.searching
        self.rows = rows
        self._values = values
        self._columns: list[tuple[Column, str]] = []
        self._known: dict[tuple[Expr, int], int] = {}
        self._constants: list[float | str] = []
        self._program: list[tuple[int, int, int, int]] = []
        self._variable = 0
        self._offsets, self._size = _slots(self.conditions.registers)

    def code(self) -> Code:
        spans, asks = [0], []
        for variable, test in enumerate(self.conditions.tests):
            if test is not None and needs_code(test):
                self._variable = variable
                if self._add(test, test.tree) not in (FLAG, NULL):
                    self._emit(own.OP_NULL)
                asks += [(variable, slot, leaf.shift) for leaf, slot in self._asking(test)]
            spans.append(len(self._program))
            if _depth(self._program[spans[-2] :]) > DEPTH:
                raise Unfit
        groups = [self._group(register, number) for number, register in enumerate(self.conditions.registers)]
        rank = self._ranks()
        columns = [self._numbers(column, kind, rank) for column, kind in self._columns]
        names = self.clause.variables
        return Code(
            np.array(self._program, np.int64).reshape(-1, 4),
            np.array(spans, np.int64),
            np.array(columns, np.float64).reshape(len(columns), self.rows),
            np.array([rank[c] if isinstance(c, str) else c for c in self._constants], np.float64),
            np.array([rank.get(name, -1.0) for name in names], np.float64),
            np.array(groups, np.int64).reshape(-1, 5),
            np.array([[v in _members(r) for v in range(len(names))] for r in self.conditions.registers], np.bool_).reshape(
                -1, len(names)
            ),
            np.concatenate([np.zeros(0), *(_initial(r) for r in self.conditions.registers)]),
            self._relevant(),
            np.array(asks, np.int64).reshape(-1, 3),
        )

    def _relevant(self) -> Flags:
        known: dict[int, tuple[int, ...]] = {}
        states = self.searching.automaton.states
        relevant = np.zeros((len(states), self._size), np.bool_)
        for state in range(len(states)):
            for number in self.searching.relevant(state, known):
                relevant[state, self._offsets[number] : self._offsets[number + 1]] = True
        return relevant

    def _asking(self, test: Condition) -> Iterator[tuple[Lookup, int]]:
        for leaf in test.leaves:
            if isinstance(leaf, Lookup) and leaf.shift > 0 and not test.is_local(leaf):
                yield leaf, self._slot(leaf)

    # Programs

    def _add(self, test: Condition, tree: Expr) -> str:
        """Put what computes a tree at the end of the program; returns the kind of its values."""
        if isinstance(tree, Literal):
            return self._constant(tree.value)
        if _is_free(test, tree):
            return self._column(tree, self._variable)
        match tree:
            case Lookup():
                return self._lookup(tree)
            case Folded():
                return self._folded(tree)
            case MatchFact():
                self._emit(own.OP_MATCH_NUMBER)
                return NUMBER
            case And(operands) | Or(operands):
                return self._joined(ops.OP_AND if isinstance(tree, And) else ops.OP_OR, test, operands)
            case In(operand, options, negated):
                tests: Expr = Or(tuple(Compare("=", operand, option) for option in options))
                return self._add(test, Not(tests) if negated else tests)
            case Between(operand, low, high, negated):
                both: Expr = And((Compare(">=", operand, low), Compare("<=", operand, high)))
                return self._add(test, Not(both) if negated else both)
            case Not(operand):
                return self._of_one(ops.OP_NOT, test, operand, FLAG, FLAG)
            case Negate(operand):
                return self._of_one(ops.OP_NEGATE, test, operand, NUMBER, NUMBER)
            case IsNull(operand, negated):
                self._add(test, operand)
                self._emit(ops.OP_IS_NOT_NULL if negated else ops.OP_IS_NULL)
                return FLAG
            case Compare(op, left, right):
                return self._compare(op, self._add(test, left), self._add(test, right))
            case Arithmetic(op, left, right):
                return self._arithmetic(op, self._add(test, left), self._add(test, right))
            case Call(name, arguments) if name in OF_ONE:
                return self._of_one(OF_ONE[name], test, arguments[0], NUMBER, NUMBER)
            case Call("if", (condition, yes, no)):
                return self._choice(test, condition, yes, no)
            case Call(name, arguments):
                return self._best(name, test, arguments)
        raise TypeError(tree)  # `unfit_reasons` has said so

    def _emit(self, op: int, *arguments: int) -> None:
        a, b, c = (*arguments, 0, 0, 0)[:3]
        self._program.append((op, a, b, c))

    def _constant(self, value: object) -> str:
        if value is None:
            self._emit(own.OP_NULL)
            return NULL
        if type(value) is int:
            raise Unfit  # no double is equal to it
        self._emit(own.OP_CONSTANT, len(self._constants))
        self._constants.append(value if isinstance(value, str) else float(value))  # type: ignore[arg-type]
        return TEXT if isinstance(value, str) else FLAG if isinstance(value, bool) else NUMBER

    def _column(self, tree: Expr, variable: int) -> str:
        number = self._operand(tree, variable)
        self._emit(own.OP_COLUMN, number)
        return self._columns[number][1]

    def _operand(self, tree: Expr, variable: int = -1) -> int:
        key = tree, variable
        if key not in self._known:
            column = self._values(tree, variable)
            self._known[key] = len(self._columns)
            self._columns.append((column, _kind(column)))
        return self._known[key]

    def _slot(self, leaf: Lookup) -> int:
        """Of the row that it comes to."""
        labelled = reads_labels(leaf.operand) and leaf.shift == 0
        register = RowRegister(leaf.members, leaf.first, leaf.back, labelled)
        number = self.conditions.register(register)
        return self._offsets[number] + leaf.back

    def _lookup(self, leaf: Lookup) -> str:
        slot = self._slot(leaf)
        if isinstance(leaf.operand, Classifier):
            self._emit(own.OP_LABEL, slot + leaf.back + 1)
            return TEXT
        number = self._operand(leaf.operand)
        self._emit(own.OP_AT, slot, leaf.shift, number)
        return self._columns[number][1]

    def _folded(self, leaf: Folded) -> str:
        register = self.conditions.register(FoldRegister(leaf, self.conditions.names))
        self._emit(FOLDED[leaf.function], self._offsets[register])
        if leaf.function in ("min", "max"):
            return self._columns[self._operand(leaf.operands[0])][1]
        return FLAG if leaf.function.startswith("bool") else NUMBER

    def _joined(self, op: int, test: Condition, operands: Sequence[Expr]) -> str:
        for number, operand in enumerate(operands):
            if self._add(test, operand) not in (FLAG, NULL):
                self._drop()
            if number:
                self._emit(op)
        return FLAG

    def _drop(self) -> None:
        """In place of what is on the stack, null: it is of a kind that does not belong here."""
        self._emit(ops.OP_IN_PLACE)

    def _of_one(self, op: int, test: Condition, operand: Expr, wanted: str, kind: str) -> str:
        if self._add(test, operand) not in (wanted, NULL):
            self._drop()
        self._emit(op)
        return kind

    def _compare(self, op: str, left: str, right: str) -> str:
        fits = left == right or NULL in (left, right)
        self._emit(OF_TWO[op] if fits else ops.OP_NEITHER)
        return FLAG

    def _arithmetic(self, op: str, left: str, right: str) -> str:
        fits = {left, right} <= {NUMBER, NULL}
        self._emit(OF_TWO[op] if fits else ops.OP_NEITHER)
        return NUMBER

    def _choice(self, test: Condition, condition: Expr, yes: Expr, no: Expr) -> str:
        if self._add(test, condition) not in (FLAG, NULL):
            self._drop()
        kind = _common([self._add(test, yes), self._add(test, no)])
        self._emit(ops.OP_IF)
        return kind

    def _best(self, name: str, test: Condition, arguments: Sequence[Expr]) -> str:
        kinds = []
        for number, argument in enumerate(arguments):
            kinds.append(self._add(test, argument))
            if number:
                self._emit(JOINING[name])
        return _common(kinds)

    # Values

    def _group(self, register: Register, number: int) -> tuple[int, int, int, int, int]:
        offset = self._offsets[number]
        if isinstance(register, RowRegister):
            return int(register.first), offset, register.back + 1, int(register.labelled), 0
        assert isinstance(register, FoldRegister)
        node = register.node
        if node.function == "rows" or any(reads_labels(o) for o in node.operands):
            return FOLDS["rows"], offset, 2, 0, 0
        column = self._operand(node.operands[0])
        kind = self._columns[column][1]
        if node.function not in ("count", "min", "max") and kind not in (NULL, FLAG if "bool" in node.function else NUMBER):
            raise Unfit  # values of the wrong kind are left out
        return FOLDS[node.function], offset, 2, 0, column

    def _ranks(self) -> dict[str, float]:
        """All texts that conditions can meet, in order."""
        texts = {c for c in self._constants if isinstance(c, str)} | set(self.clause.variables)
        for column, kind in self._columns:
            if kind == TEXT:
                texts.update(column.texts)
        return {text: float(rank) for rank, text in enumerate(sorted(texts))}

    def _numbers(self, column: Column, kind: str, rank: dict[str, float]) -> Floats:
        if kind == NULL:
            return np.full(self.rows, np.nan)
        if kind == NUMBER:
            assert column.numbers is not None
            return np.asarray(column.numbers, np.float64) + 0.0
        if kind == FLAG:
            assert column.flags is not None
            return np.where(column.flags < 0, np.nan, column.flags.astype(np.float64))
        assert column.codes is not None
        ranks = np.array([*(rank[text] for text in column.texts), np.nan], np.float64)
        return ranks[column.codes]


def _kind(column: Column) -> str:
    parts = {NUMBER: column.numbers, TEXT: column.codes, FLAG: column.flags}
    kinds = [kind for kind, part in parts.items() if part is not None and _has_values(kind, part)]
    if column.compounds is not None or column.rests is not None or len(kinds) > 1:
        raise Unfit
    return kinds[0] if kinds else NULL


def _has_values(kind: str, part: Any) -> bool:
    return bool((~np.isnan(part)).any() if kind == NUMBER else (part >= 0).any())


def _common(kinds: Sequence[str]) -> str:
    found = set(kinds) - {NULL}
    if len(found) > 1:
        raise Unfit
    return found.pop() if found else NULL


def _slots(registers: Sequence[Register]) -> tuple[list[int], int]:
    """Where the slots of each register begin, and how many there are."""
    offsets = [0]
    for register in registers:
        offsets.append(offsets[-1] + len(_initial(register)))
    return offsets, offsets[-1]


def _initial(register: Register) -> Floats:
    if isinstance(register, RowRegister):
        return np.full((register.back + 1) * (2 if register.labelled else 1), -1.0)
    return np.zeros(2)


def _members(register: Register) -> frozenset[int]:
    if isinstance(register, RowRegister):
        return register.members
    assert isinstance(register, FoldRegister)
    return register.node.members


def _depth(program: Sequence[tuple[int, int, int, int]]) -> int:
    """Of the stack that it needs."""
    now = most = 0
    for op, *_ in program:
        now += -1 if op >= ops.OP_AND else -2 if op == ops.OP_IF else 0 if op >= ops.OP_NOT else 1
        most = max(most, now)
    return most


def local_look_ahead(test: Condition | None) -> int:
    """How many rows after the one under test it asks for."""
    if test is None:
        return 0
    return max((leaf.shift for leaf in test.leaves if isinstance(leaf, Lookup) and test.is_local(leaf)), default=0)
