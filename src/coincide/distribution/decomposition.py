"""Which parts of an expression can be detected elsewhere without changing what is detected (distribution-opera.md, section 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from coincide.detection.automaton.construction import Automaton, Numbering
from coincide.distribution.canonical import canonical_text
from coincide.expr.tree import Reference
from coincide.lang.opera.check import bindings_of_items, parameters
from coincide.lang.opera.definition import (
    All,
    Alternation,
    Atom,
    Attribute,
    Bind,
    Chain,
    Concatenation,
    Element,
    EventSet,
    Expression,
    Group,
    Item,
    Iteration,
    OfType,
    OwnTimer,
    Parallel,
    Sequence,
    Timing,
    chained,
    nullable,
)
from coincide.lang.shared.eventsets import types
from coincide.syntax import walk

Path = tuple[int, ...]
"""Where a part is in its expression: 0 is the first or left part of each pair on the way, 1 the second."""


@dataclass(frozen=True)
class Composite:
    """A composite type: its expression, for what it completes on."""

    name: str
    body: Expression


def pair(expression: Expression) -> tuple[Expression, Expression] | None:
    """The two parts of an operator. A chain `a b c` is `(a b) c`."""
    if isinstance(expression, Parallel):
        return expression.left, expression.right
    if isinstance(expression, Timing):
        return expression.first, expression.second
    if isinstance(expression, Concatenation | Sequence | Alternation):
        *before, last = expression.parts
        return (before[0] if len(before) == 1 else replace(expression, parts=tuple(before))), last
    return None


def put(expression: Expression, path: Path, part: Expression) -> Expression:
    """The expression with another part at the end of a path."""
    if not path:
        return part
    parts = pair(expression)
    assert parts is not None
    side, *rest = path
    sides = [put(one, tuple(rest), part) if number == side else one for number, one in enumerate(parts)]
    if isinstance(expression, Parallel):
        return replace(expression, left=sides[0], right=sides[1])
    if isinstance(expression, Timing):
        return replace(expression, first=sides[0], second=sides[1])
    assert isinstance(expression, Concatenation | Sequence | Alternation)
    kind: type[Chain] = type(expression)
    return chained(kind, sides[0], sides[1])


@dataclass(frozen=True)
class Part:
    """A part that may be factored out. `side`: of a `||`, so that it is moved and not wrapped."""

    path: Path
    expression: Expression
    side: bool = False

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        return parameters(self.expression)

    def atom(self, *names: str) -> Atom:
        """What stands in its place where detectors of these names detect it."""
        terms = tuple(Bind(parameter, parameter) for parameter in self.parameters)
        return Atom(tuple(Item(OfType(name, terms)) for name in names))


@dataclass(frozen=True)
class Decomposition:
    """The parts of an expression, given the composite types that there are."""

    body: Expression
    attributes: tuple[Attribute, ...]
    composites: Mapping[str, Composite]
    keep: frozenset[str] = frozenset()  # canonical texts

    @cached_property
    def root(self) -> Part:
        return Part((), self.body)

    def below(self, part: Part) -> list[Part]:
        """The parts of a part that may be factored out, left to right."""
        parts = pair(part.expression)
        if parts is None:
            return []
        sides = [Part((*part.path, n), expression, isinstance(part.expression, Parallel)) for n, expression in enumerate(parts)]
        allowed = self._structure(part.expression, *parts)
        return [one for one, may in zip(sides, allowed, strict=True) if may and self._may(one)]

    def _structure(self, whole: Expression, first: Expression, second: Expression) -> tuple[bool, bool]:
        """Rules 2 to 4, as far as they speak of the place in the expression."""
        if isinstance(whole, Parallel):
            return True, True
        if isinstance(whole, Alternation):
            apart = not _meet(_matched(first), _matched(second))
            return apart, apart
        alike = _lengths(first)[0] == _lengths(first)[1]
        exact = alike or not _meet(_matched(first), _matched(second))
        return not nullable(first) and not _open_ended(first) and exact, False

    def _may(self, part: Part) -> bool:
        """What holds for all proper parts."""
        expression = part.expression
        return (
            not isinstance(expression, Atom)
            and not self._aliases & {item.alias for item in _items(expression)}
            and _always_bound(expression) >= set(part.parameters)
            and not self._tied(part)
            and canonical_text(expression) not in self.keep
        )

    @cached_property
    def _aliases(self) -> set[str | None]:
        """Used by `with`."""
        nodes = (node for attribute in self.attributes for node in walk(attribute.value))
        return {node.alias for node in nodes if isinstance(node, Reference) and node.alias is not None}

    def _tied(self, part: Part) -> bool:
        """Does the rest use a composite type that one event may complete together with the part?"""
        ends = last(part.expression, self.composites)
        rest = put(self.body, part.path, Atom(()))
        used = {name for node in walk(rest) if isinstance(node, EventSet) for name in types(node)} & set(self.composites)
        return any(_meet(last(self.composites[name].body, self.composites), ends) for name in used)


# Types.

EVERY = None
"""Events of all types (`all`)."""

Types = frozenset[str] | None


def _meet(a: Types, b: Types) -> bool:
    if a is EVERY or b is EVERY:
        return a != frozenset() and b != frozenset()
    return not a.isdisjoint(b)


def _types_of(sets: Collection[EventSet]) -> Types:
    """A timer is of no type."""
    nodes = [node for events in sets for node in walk(events)]
    if any(isinstance(node, All) for node in nodes):
        return EVERY
    timers = {node.name for node in nodes if isinstance(node, OwnTimer)}
    return frozenset(name for events in sets for name in types(events)) - timers


def _items(expression: Expression) -> Iterator[Item]:
    return (item for atom in walk(expression) if isinstance(atom, Atom) for item in atom.matched)


def _matched(expression: Expression) -> Types:
    return _types_of([item.events for item in _items(expression)])


def last(expression: Expression, composites: Mapping[str, Composite], seen: frozenset[str] = frozenset()) -> Types:
    """The external types on which it can complete."""
    found = _types_of(_completing(expression))
    if found is EVERY:
        return EVERY
    external: frozenset[str] = frozenset(name for name in found if name not in composites)
    for name in found - external - seen:
        deeper = last(composites[name].body, composites, seen | {name})
        if deeper is EVERY:
            return EVERY
        external |= deeper
    return external


def _completing(expression: Expression) -> list[EventSet]:
    """What atoms match that lead to a generative state; of a `||`, either side's may."""
    numbering = Numbering()
    Automaton(expression, numbering)
    found: list[EventSet] = []
    for automaton in numbering.automata:
        for position in automaton.positions:
            if any(outcome.accept for outcome in automaton.outcomes(position.number, frozenset())):
                found += position.matched
    return found


# Shapes of matches.


def _open_ended(expression: Expression) -> bool:
    """Has some accepting state transitions, so that a match can go on?"""
    numbering = Numbering()
    Automaton(expression, numbering)
    if len(numbering.automata) > 1:  # the other side of a `||` may complete again
        return True
    (automaton,) = numbering.automata
    outcomes = (o for p in automaton.positions for o in automaton.outcomes(p.number, frozenset()))
    return any(outcome.accept and outcome.state for outcome in outcomes)


def _lengths(expression: Expression) -> tuple[float, float]:
    """The least and the greatest number of events of a match."""
    if isinstance(expression, Atom):
        return 1, 1
    if isinstance(expression, Group):
        return _lengths(expression.body)
    if isinstance(expression, Iteration):
        return 0, inf
    inside = [_lengths(part) for part in _parts(expression)]
    if not inside:
        return 0, 0
    if isinstance(expression, Alternation):
        return min(least for least, _ in inside), max(most for _, most in inside)
    return sum(least for least, _ in inside), sum(most for _, most in inside)


def _parts(expression: Expression) -> list[Expression]:
    return [child for child in expression.children if isinstance(child, Expression)]


def _always_bound(expression: Expression) -> set[str]:
    """Parameters that every match binds."""
    if isinstance(expression, Atom):
        each = [{bind.parameter for bind in _own(item)} for item in expression.matched]
        return set.intersection(*each) if each else set()
    if isinstance(expression, Iteration):
        return set()
    inside = [_always_bound(part) for part in _parts(expression)]
    if isinstance(expression, Alternation):
        return set.intersection(*inside)
    return set().union(*inside)


def _own(item: Item) -> Iterator[Bind]:
    return bindings_of_items(Atom((item,)))


def atoms(node: Element) -> int:
    return sum(isinstance(one, Atom) for one in walk(node))
