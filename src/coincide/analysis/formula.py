"""When a predicate holds, as a two-valued formula.

A predicate holds when its three-valued value is true, so only two things about an atom ever matter: that it is true, and
that it is false. Over these two the formula has no negation left, and an atom that is null makes both leaves false."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coincide.expr.tree import And, Expr, Literal, Not, Or

Truth = bool | None


@dataclass(frozen=True, eq=False, slots=True)
class Formula:
    """A node. Equal nodes of one `Formulas` are the same object, so they compare by identity."""

    kind: str  # constant, leaf, and, or
    atoms: frozenset[int]
    parts: tuple[Formula, ...] = ()
    truth: bool = False  # of a constant: its value; of a leaf: what the atom must be


TRUE = Formula("constant", frozenset(), truth=True)
FALSE = Formula("constant", frozenset(), truth=False)


class Formulas:
    """Formulas that share their nodes; atoms are numbered, equal trees by one number."""

    def __init__(self) -> None:
        self.atoms: dict[Expr, int] = {}
        self._leaves: dict[tuple[int, bool], Formula] = {}
        self._nodes: dict[tuple[str, frozenset[Formula]], Formula] = {}

    def holds(self, test: Expr) -> Formula:
        return self._where(test, True)

    def restricted(self, formula: Formula, truths: Mapping[int, Truth]) -> Formula:
        """What is left of a formula when the truth of some atoms is known."""
        if truths.keys().isdisjoint(formula.atoms):
            return formula
        if formula.kind == "leaf":
            (atom,) = formula.atoms
            return TRUE if truths[atom] is formula.truth else FALSE
        return self._joined(formula.kind, (self.restricted(part, truths) for part in formula.parts))

    def _where(self, test: Expr, wanted: bool) -> Formula:
        """Where the test's value is `wanted`."""
        match test:
            case And():
                return self._joined("and" if wanted else "or", (self._where(part, wanted) for part in test.operands))
            case Or():
                return self._joined("or" if wanted else "and", (self._where(part, wanted) for part in test.operands))
            case Not():
                return self._where(test.operand, not wanted)
            case Literal():
                return TRUE if test.value is wanted else FALSE
        return self._leaf(self.atoms.setdefault(test, len(self.atoms)), wanted)

    def _leaf(self, atom: int, wanted: bool) -> Formula:
        if (atom, wanted) not in self._leaves:
            self._leaves[atom, wanted] = Formula("leaf", frozenset((atom,)), truth=wanted)
        return self._leaves[atom, wanted]

    def _joined(self, kind: str, parts: Iterable[Formula]) -> Formula:
        neutral, decisive = (TRUE, FALSE) if kind == "and" else (FALSE, TRUE)
        members: dict[Formula, None] = {}
        for part in parts:
            if part is decisive:
                return decisive
            if part.kind == kind:
                members.update(dict.fromkeys(part.parts))
            elif part is not neutral:
                members[part] = None
        if len(members) < 2:
            return next(iter(members), neutral)
        key = kind, frozenset(members)
        if key not in self._nodes:
            atoms = frozenset[int]().union(*(member.atoms for member in members))
            self._nodes[key] = Formula(kind, atoms, tuple(members))
        return self._nodes[key]
