"""The possible letters of a set of predicates (ecl.md, section 7).

Attributes are decided one after the other. What matters of the choices made so far is only what is left of each predicate,
so choices that leave the same are one; the product of all values is never formed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from coincide.analysis.domain import Atom, Change, atom, changes
from coincide.analysis.formula import FALSE, TRUE, Formula, Formulas, Truth
from coincide.expr.tree import Compare, Expr, In

LIMIT = 4096
"""Of letters, and of states: what has more is not analysed."""

PARTIAL_LIMIT = 100_000
"""Of choices that have to be told apart on the way to the letters. Which letters are possible is a satisfiability problem, so
some predicates need more than their letters are worth."""

UNFREE = frozenset({"time", "id"})
"""Their values are not free from event to event; nor are those of keys."""

Group = str | int
"""What is decided at once: an attribute, or an opaque atom by its number."""

Partial = tuple[int, frozenset[tuple[int, Formula]]]
"""The predicates that hold for certain, and what is left of those that are not decided."""


class LimitExceeded(Exception):
    """More letters or states than the limit."""


@dataclass(frozen=True)
class Alphabet:
    """Letters are bit masks: bit i is the i-th predicate. Not exact: some may be impossible, or some of their orders."""

    letters: tuple[int, ...]
    exact: bool


def alphabet(tests: Sequence[Expr], keys: Iterable[str] = ()) -> Alphabet:
    return _Letters(tests, frozenset(keys)).alphabet()


class _Letters:
    def __init__(self, tests: Sequence[Expr], keys: frozenset[str]) -> None:
        self.keys = keys
        self.formulas = Formulas()
        self.holds = [self.formulas.holds(test) for test in tests]
        self.atoms: list[Atom] = [atom(tree) for tree in self.formulas.atoms]
        self.groups: list[Group] = [n if a.attribute is None else a.attribute for n, a in enumerate(self.atoms)]
        unequal = {self.groups[number] for tree, number in self.formulas.atoms.items() if not _equality(tree)}
        self.only_equal = set(self.groups) - unequal
        self._groups_of: dict[Formula, dict[Group, int]] = {}
        self._changes: dict[tuple[Group, frozenset[int]], list[Change]] = {}

    def alphabet(self) -> Alphabet:
        unfree = self.keys | UNFREE
        exact = all(a.attribute is not None and a.attribute not in unfree for a in self.atoms)
        return Alphabet(tuple(sorted(self._letters())), exact)

    def _letters(self) -> set[int]:
        """Depth first, so that whole letters turn up at once, and too many of them are noticed early."""
        letters: set[int] = set()
        known = {self._at_first()}
        waiting = list(known)
        while waiting:
            partial = waiting.pop()
            if not partial[1]:
                letters.add(partial[0])
            else:
                new = set(self._decided(partial, self._next(partial[1]))) - known
                known |= new
                waiting += new
            if len(letters) > LIMIT or len(known) > PARTIAL_LIMIT:
                raise LimitExceeded
        return letters

    def _at_first(self) -> Partial:
        mask, remaining = 0, dict[int, Formula]()
        for label, formula in enumerate(self.holds):
            mask = _noted(label, formula, remaining, mask)
        return mask, frozenset(remaining.items())

    def _next(self, left: frozenset[tuple[int, Formula]]) -> Group:
        """What to decide next: of a predicate that is nearly decided, what most others share. Tests for equality come
        before others, since at each value all but one of them are decided; else what is written together stays together."""
        groups = [self._groups(formula) for _, formula in left]
        shared = Counter(chain.from_iterable(groups))
        nearest = min(groups, key=len)
        return max(nearest, key=lambda group: (shared[group], shared[group] > 1 and group in self.only_equal, -nearest[group]))

    def _groups(self, formula: Formula) -> dict[Group, int]:
        """What must be decided for a formula, each with the number of its first atom."""
        if formula not in self._groups_of:
            self._groups_of[formula] = {self.groups[number]: number for number in sorted(formula.atoms, reverse=True)}
        return self._groups_of[formula]

    def _decided(self, partial: Partial, group: Group) -> Iterator[Partial]:
        """What becomes of a partial choice over all values of one more attribute."""
        mask, left = partial
        touched: dict[int, list[tuple[int, Formula]]] = {}
        for label, formula in left:
            if group in self._groups(formula):
                for number in formula.atoms:
                    if self.groups[number] == group:
                        touched.setdefault(number, []).append((label, formula))
        truths: dict[int, Truth] = {}
        remaining = dict(left)
        for change in self._changes_of(group, frozenset(touched)):
            truths.update(change)
            for label, formula in {entry for number in change for entry in touched[number]}:
                mask = _noted(label, self.formulas.restricted(formula, truths), remaining, mask)
            yield mask, frozenset(remaining.items())

    def _changes_of(self, group: Group, numbers: frozenset[int]) -> list[Change]:
        if (group, numbers) not in self._changes:
            attribute = group if isinstance(group, str) else None
            found = changes(attribute, {n: self.atoms[n] for n in sorted(numbers)}, self.keys)
            self._changes[group, numbers] = list(found)
        return self._changes[group, numbers]


def _equality(tree: Expr) -> bool:
    return isinstance(tree, In) or (isinstance(tree, Compare) and tree.op == "=")


def _noted(label: int, formula: Formula, remaining: dict[int, Formula], mask: int) -> int:
    """What is left of a predicate now: the mask that it is in if it holds for certain, with the others still open."""
    if formula is TRUE or formula is FALSE:
        remaining.pop(label, None)
    else:
        remaining[label] = formula
    return mask | 1 << label if formula is TRUE else mask & ~(1 << label)
