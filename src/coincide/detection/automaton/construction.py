"""From an expression to its automaton: the construction of the specification's section 3.2.

Alternations that fork are not multiplied out into variants: a run forks when it enters one, and remembers its choice for
as long as it can enter it again (section 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from coincide.detection.eventsets import Holds, Leaves
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Concatenation,
    Empty,
    EventSet,
    Expression,
    Group,
    Iteration,
    Parallel,
    Sequence,
    Timing,
    nullable,
)
from coincide.syntax import walk

Transitions = frozenset[tuple[bool, int]]
"""P of a group: (strong?, position)."""

State = frozenset[Transitions]
"""Groups that wait side by side."""

Choices = frozenset[tuple[int, int]]
"""Which side of which alternation that forks a run has taken."""

NO_CHOICES: Choices = frozenset()


@dataclass(frozen=True)
class GroupOfTransitions:
    """A group `(P, accept, sets)`."""

    transitions: Transitions
    accept: bool = False
    sets: frozenset[int] = frozenset()


Entry = tuple[Choices, tuple[GroupOfTransitions, ...]]
"""What entering a part leads to, under one set of choices."""


@dataclass(eq=False, slots=True)
class Part:
    """An occurrence of an expression in its automaton."""

    expression: Expression
    parent: Part | None
    index: int  # among the parts of its parent
    number: int  # of the alternation, if it forks
    forks: bool
    parts: list[Part] = field(default_factory=list)
    position: int = -1
    timing: int = -1


@dataclass(frozen=True, eq=False, slots=True)
class MatchItem:
    """One item of an atom."""

    holds: Holds
    alias: str | None


@dataclass(frozen=True, eq=False, slots=True)
class Position:
    """An atom, or a `||` node in one of its forms: it awaits both sides, or the one that is missing."""

    number: int
    part: Part
    domain: tuple[Holds, ...]
    timers: frozenset[int]  # timings whose second part it is in
    items: tuple[MatchItem, ...] = ()
    matched: tuple[EventSet, ...] = ()  # as written, for messages and for `can_fail`
    written_domain: tuple[EventSet, ...] = ()
    awaits: str | None = None  # both, left, right
    node: int = -1  # number of the `||` node in its automaton
    partner_missing: tuple[int, int] = (-1, -1)  # of the form that awaits both: the positions p:R and p:L


@dataclass(frozen=True)
class Outcome:
    """Where a transition leads under some choices: the state, whether it is generative, which timers it sets."""

    choices: Choices
    state: State
    accept: bool
    sets: tuple[int, ...]


@dataclass(frozen=True)
class Awaited:
    """What a state waits for: its positions in order, each with whether it can be met weakly; the timers in their domain."""

    positions: tuple[tuple[int, bool], ...]
    timers: frozenset[int]


@dataclass(frozen=True)
class Start:
    choices: Choices
    state: State  # of one group


@dataclass(frozen=True)
class Scope:
    """What surrounds a part: domains of groups, timings by the names of their timers, whether alternations may fork."""

    domain: tuple[EventSet, ...] = ()
    timers: Mapping[str, int] = field(default_factory=dict)
    forking: bool = True

    @cached_property
    def timings(self) -> frozenset[int]:
        return frozenset(self.timers.values())


class Automaton:
    """The automaton of an expression, or of a side of `||`. `sides` are those of its nodes, by their numbers."""

    def __init__(self, expression: Expression, detector: Numbering) -> None:
        self.detector = detector
        self.positions: list[Position] = []
        self.sides: list[tuple[Automaton, Automaton]] = []
        self.forks: list[Part] = []  # alternations at which a run chooses a side
        self.root = self._part(expression, None, 0, Scope())
        self.number = detector.next_automaton(self)
        self._outcomes: dict[tuple[int, Choices], list[Outcome]] = {}
        self._awaited: dict[State, Awaited] = {}

    # Occurrences.

    def _part(self, expression: Expression, parent: Part | None, index: int, scope: Scope) -> Part:
        forks = isinstance(expression, Alternation) and scope.forking and not nullable(expression)
        part = Part(expression, parent, index, len(self.forks), forks)
        if forks:
            self.forks.append(part)
        if isinstance(expression, Atom):
            self._add_atom(part, expression, scope)
        elif isinstance(expression, Parallel):
            self._add_node(part, expression, scope)
        else:
            part.parts = [self._part(e, part, n, s) for n, (e, s) in enumerate(self._inside(part, expression, scope))]
        return part

    def _inside(self, part: Part, expression: Expression, scope: Scope) -> Iterable[tuple[Expression, Scope]]:
        if isinstance(expression, Concatenation):
            return [(e, scope) for e in _without_repeats(expression.parts)]
        if isinstance(expression, Sequence):
            return [(e, scope) for e in expression.parts]
        if isinstance(expression, Alternation):
            return [(e, replace(scope, forking=part.forks)) for e in expression.parts]
        if isinstance(expression, Iteration):
            return [(expression.body, replace(scope, forking=False))]
        if isinstance(expression, Group):
            return [(expression.body, replace(scope, domain=(*scope.domain, expression.domain)))]
        if isinstance(expression, Timing):
            part.timing = self.detector.next_timing(expression)
            timers = {**scope.timers, expression.timer: part.timing}
            return [(expression.first, scope), (expression.second, replace(scope, timers=timers))]
        assert isinstance(expression, Empty)
        return []

    def _add_atom(self, part: Part, atom: Atom, scope: Scope) -> None:
        """Without a domain the items are it, so they are asked once."""
        matched = tuple(item.events for item in atom.matched)
        tests = self._tests(matched, scope)
        items = tuple(MatchItem(test, item.alias) for test, item in zip(tests, atom.matched, strict=True))
        own, holds = (matched, tests) if atom.domain is None else ((atom.domain,), self._tests((atom.domain,), scope))
        part.position = self._add_position(part, scope, own, holds, items=items, matched=matched)

    def _add_node(self, part: Part, node: Parallel, scope: Scope) -> None:
        number = len(self.sides)
        self.sides.append((Automaton(node.left, self.detector), Automaton(node.right, self.detector)))
        right, left = (self._add_position(part, scope, awaits=a, node=number) for a in ("right", "left"))
        part.position = self._add_position(part, scope, awaits="both", node=number, partner_missing=(right, left))

    def _add_position(
        self, part: Part, scope: Scope, own: tuple[EventSet, ...] = (), holds: tuple[Holds, ...] = (), **rest: Any
    ) -> int:
        """`own` is its domain besides that of the scope, with its tests."""
        number, domain = len(self.positions), (*holds, *self._tests(scope.domain, scope))
        self.positions.append(Position(number, part, domain, scope.timings, written_domain=(*own, *scope.domain), **rest))
        return number

    def _tests(self, sets: tuple[EventSet, ...], scope: Scope) -> tuple[Holds, ...]:
        return tuple(self.detector.leaves.holds(events, scope.timers) for events in sets)

    # Groups: `enter` and `after` of section 3.2, with the choices threaded through.

    def _enter(self, part: Part, strong: bool, choices: Choices) -> list[Entry]:
        expression = part.expression
        if isinstance(expression, Atom | Parallel):
            return [(choices, (GroupOfTransitions(frozenset({(strong, part.position)})),))]
        if isinstance(expression, Empty):
            return self._after(part, strong, choices)
        if isinstance(expression, Iteration):
            return self._merged(part.parts[0], part, strong, choices)
        if isinstance(expression, Alternation):
            return self._enter_alternation(part, strong, choices)
        return self._enter(part.parts[0], strong, choices)

    def _enter_alternation(self, part: Part, strong: bool, choices: Choices) -> list[Entry]:
        if part.forks:
            chosen = [side for number, side in choices if number == part.number]
            return [
                entry
                for side in chosen or range(len(part.parts))
                for entry in self._enter(part.parts[side], strong, choices | {(part.number, side)})
            ]
        entries: list[Entry] = [(choices, ())]
        for side_part in part.parts:
            entries = [
                (later, (*groups, *more)) for before, groups in entries for later, more in self._enter(side_part, strong, before)
            ]
        return entries

    def _after(self, part: Part, strong: bool, choices: Choices) -> list[Entry]:
        parent = part.parent
        if parent is None:
            return [(choices, (GroupOfTransitions(frozenset(), True),))]
        expression, last = parent.expression, part.index == len(parent.parts) - 1
        if isinstance(expression, Concatenation | Sequence) and not last:
            return self._enter(parent.parts[part.index + 1], strong or isinstance(expression, Sequence), choices)
        if isinstance(expression, Timing) and not last:
            entries = self._enter(parent.parts[1], strong, choices)
            return [(later, tuple(replace(g, sets=g.sets | {parent.timing}) for g in groups)) for later, groups in entries]
        if isinstance(expression, Iteration):
            return self._merged(part, parent, strong, choices)
        return self._after(parent, strong, choices)

    def _merged(self, body: Part, loop: Part, strong: bool, choices: Choices) -> list[Entry]:
        """Once more, or on: one group, so that a failure of the body fails what comes after."""
        return [
            (last, tuple(_merge(x, y) for x in again for y in on))
            for later, again in self._enter(body, strong, choices)
            for last, on in self._after(loop, strong, later)
        ]

    # States.

    @cached_property
    def starts(self) -> list[Start]:
        """The distinct start groups of all variants."""
        entries = self._enter(self.root, False, NO_CHOICES)
        states = [(choices, frozenset({g.transitions})) for choices, groups in entries for g in groups if g.transitions]
        return list(dict.fromkeys(Start(self.relevant_choices(choices, state), state) for choices, state in states))

    def outcomes(self, position: int, choices: Choices) -> list[Outcome]:
        """Where the transition at a position leads."""
        key = position, choices
        if key not in self._outcomes:
            entries = self._after(self.positions[position].part, False, choices)
            self._outcomes[key] = list(dict.fromkeys(self._outcome(*entry) for entry in entries))
        return self._outcomes[key]

    def _outcome(self, choices: Choices, groups: tuple[GroupOfTransitions, ...]) -> Outcome:
        state = frozenset(g.transitions for g in groups if g.transitions)
        accept = any(g.accept for g in groups)
        sets = {timing for g in groups if g.transitions for timing in g.sets} & self.timers_in_domain(state)
        return Outcome(self.relevant_choices(choices, state), state, accept, tuple(sorted(sets)))

    def waiting(self, position: int, choices: Choices) -> tuple[Choices, State]:
        """The state of a node that has one side and awaits the other."""
        state = frozenset({frozenset({(False, position)})})
        return self.relevant_choices(choices, state), state

    def timers_in_domain(self, state: State) -> frozenset[int]:
        return self.awaited(state).timers

    def awaited(self, state: State) -> Awaited:
        """Worked out once a state: every event asks."""
        found = self._awaited.get(state)
        if found is None:
            positions = sorted({p for group in state for _, p in group})
            weak = {p for group in state for strong, p in group if not strong}
            timers = frozenset(timing for p in positions for timing in self.positions[p].timers)
            found = self._awaited[state] = Awaited(tuple((p, p in weak) for p in positions), timers)
        return found

    def relevant_choices(self, choices: Choices, state: State) -> Choices:
        """Only the choices that can still be met, so that runs with one future are one run."""
        if not choices:
            return choices
        met = {number for group in state for _, p in group for number in self._met[p]}
        return frozenset((number, side) for number, side in choices if number in met)

    @cached_property
    def _met(self) -> list[set[int]]:
        """For each position, the alternations that fork and can be entered after it, however late."""
        follow: list[set[int]] = []
        met: list[set[int]] = []
        for position in self.positions:
            entries = self._after(position.part, False, NO_CHOICES)
            met.append({number for choices, _ in entries for number, _ in choices})
            follow.append({p for _, groups in entries for g in groups for _, p in g.transitions})
        changed = True
        while changed:
            changed = False
            for number, after in enumerate(follow):
                more = set().union(*(met[p] for p in after)) - met[number]
                met[number] |= more
                changed = changed or bool(more)
        return met


def _without_repeats(parts: tuple[Expression, ...]) -> list[Expression]:
    """`[A]* [A]*` is `[A]*`: as many positions would only be as many ways to the same matches. Timings keep their own timers."""
    return [
        part
        for before, part in zip((None, *parts), parts, strict=False)
        if part != before or not isinstance(part, Iteration) or any(isinstance(node, Timing) for node in walk(part))
    ]


def _merge(x: GroupOfTransitions, y: GroupOfTransitions) -> GroupOfTransitions:
    return GroupOfTransitions(x.transitions | y.transitions, x.accept or y.accept, x.sets | y.sets)


class Numbering:
    """What all automata of a detector share: leaves of event sets, numbers of automata and timings."""

    def __init__(self) -> None:
        self.leaves = Leaves()
        self.automata: list[Automaton] = []  # sides of `||` first, inner before outer, left before right
        self.timings: list[Timing] = []  # in the order of the text

    def next_automaton(self, automaton: Automaton) -> int:
        self.automata.append(automaton)
        return len(self.automata) - 1

    def next_timing(self, timing: Timing) -> int:
        self.timings.append(timing)
        return len(self.timings) - 1
