"""The pattern as an automaton with counters.

A *state* is a variable of the pattern about to take a row, together with the rounds done of each quantifier around it. What may
follow when it has taken one is a list of *ways*, most preferred first: each leads to another state or to the end of the match,
past anchors that must hold on the way. States are made when they are first reached, so `A{1000}` costs no more than `A+`."""

from __future__ import annotations

from typing import NamedTuple

from coincide.lang.matchrecognize.definition import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Variable,
)
from coincide.syntax import walk

MATCH = -1
"""In place of a state: the match is complete."""

NOWHERE = -2
"""In place of a state: a way that ends in an empty round. It only matters that it asks, at `$`, whether there is another row."""

MOST_WAYS = 100_000
"""From one state; a pattern such as `(A?){1000000}` has more."""


class TooManyWays(Exception):
    pass


class Way(NamedTuple):
    anchors: str  # `^` and `$`, in the order met
    state: int


class State(NamedTuple):
    variable: int
    hidden: bool
    place: int  # the instruction
    counters: tuple[int, ...]


class Instruction(NamedTuple):
    """`targets` are instructions. `number` is that of a variable, quantifier or permutation."""

    kind: str
    targets: tuple[int, ...]
    number: int = 0
    member: int = 0
    hidden: bool = False


class Loop(NamedTuple):
    least: int
    most: int | None
    reluctant: bool
    may_be_empty: bool  # can a round take no row?


class Automaton:
    """Counters hold, of a quantifier, the rounds done (capped at the minimum where there is no maximum) and in the lowest bit
    whether the open round has taken a row; of a permutation, the set of members done."""

    def __init__(self, pattern: Pattern, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self.loops: list[Loop] = []
        self.instructions: list[Instruction] = [Instruction("match", ())]
        self._numbers = {name: n for n, name in enumerate(variables)}
        self._around: dict[int, tuple[int, ...]] = {}  # quantifiers around a variable, by instruction
        self._counters = sum(isinstance(node, (Repetition, Permutation)) for node in walk(pattern))
        self._loop_of: dict[int, Loop] = {}
        self._members: dict[int, int] = {}
        self._next_counter = 0
        entry = self._compile(pattern, 0, (), False)
        self.states: list[State] = []
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._after: list[tuple[Way, ...] | None] = []
        self._reach = self._reachable()
        self.first = self._ways(entry, (0,) * self._counters)

    def after(self, state: int) -> tuple[Way, ...]:
        """The ways from a state that has taken a row."""
        found = self._after[state]
        if found is None:
            _, _, place, counters = self.states[state]
            taken = list(counters)
            for loop in self._around[place]:
                taken[loop] |= 1
            found = self._after[state] = self._ways(self.instructions[place].targets[0], tuple(taken))
        return found

    def variables_from(self, state: int) -> frozenset[int]:
        """The variables that can still take rows: that of the state, and those that may follow."""
        return self._reach[self.states[state].place]

    # From the pattern to instructions, last part first

    def _compile(self, node: Pattern, following: int, around: tuple[int, ...], hidden: bool) -> int:
        match node:
            case Variable(name):
                place = self._add(Instruction("take", (following,), self._numbers[name], hidden=hidden))
                self._around[place] = around
                return place
            case Empty():
                return following
            case Anchor(end):
                return self._add(Instruction("$" if end else "^", (following,)))
            case Concatenation(parts):
                for part in reversed(parts):
                    following = self._compile(part, following, around, hidden)
                return following
            case Alternation(options):
                targets = tuple(self._compile(option, following, around, hidden) for option in options)
                return self._add(Instruction("split", targets))
            case Exclusion(body):
                return self._compile(body, following, around, True)
            case Repetition():
                return self._repetition(node, following, around, hidden)
            case Permutation():
                return self._permutation(node, following, around, hidden)
        raise TypeError(node)

    def _repetition(self, node: Repetition, following: int, around: tuple[int, ...], hidden: bool) -> int:
        counter = self._counter()
        self._loop_of[counter] = Loop(node.least, node.most, node.reluctant, _may_be_empty(node.body))
        loop = self._add(Instruction("loop", (), counter))
        end_of_round = self._add(Instruction("round", (loop,), counter))
        body = self._compile(node.body, end_of_round, (*around, counter), hidden)
        self.instructions[loop] = Instruction("loop", (body, following), counter)
        return loop

    def _permutation(self, node: Permutation, following: int, around: tuple[int, ...], hidden: bool) -> int:
        counter = self._counter()
        choice = self._add(Instruction("choice", (), counter))
        entries = []
        for number, member in enumerate(node.members):
            done = self._add(Instruction("done", (choice,), counter, number))
            entries.append(self._compile(member, done, around, hidden))
        self._members[counter] = len(entries)
        self.instructions[choice] = Instruction("choice", (*entries, following), counter)
        return choice

    def _counter(self) -> int:
        self._next_counter += 1
        return self._next_counter - 1

    def _add(self, instruction: Instruction) -> int:
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    # From instructions to ways

    def _ways(self, entry: int, counters: tuple[int, ...]) -> tuple[Way, ...]:
        found: dict[Way, None] = {}
        seen: set[tuple[int, tuple[int, ...], str]] = set()
        waiting = [(entry, counters, "")]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            if len(seen) > MOST_WAYS:
                raise TooManyWays
            place, counters, anchors = at
            kind, targets, number, member, _ = self.instructions[place]
            if kind == "match":
                found[Way(anchors, MATCH)] = None
            elif kind == "take":
                found[Way(anchors, self._state(place, counters))] = None
            elif kind in "^$":
                waiting.append((targets[0], counters, anchors + kind))
            elif kind == "split":
                waiting += [(target, counters, anchors) for target in reversed(targets)]
            elif kind == "loop":
                waiting += [(t, c, anchors) for t, c in reversed(self._rounds(targets, number, counters))]
            elif kind == "round":
                if counters[number] & 1:
                    waiting.append((targets[0], self._counted(number, counters), anchors))
                elif "$" in anchors:
                    found[Way(anchors, NOWHERE)] = None
            elif kind == "done":
                waiting.append((targets[0], _with(counters, number, counters[number] | 1 << member), anchors))
            else:
                waiting += [(t, c, anchors) for t, c in reversed(self._choices(targets, number, counters))]
        return tuple(found)

    def _rounds(self, targets: tuple[int, ...], number: int, counters: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """Another round, and to stop; the preferred one first. A round beyond the minimum must take a row."""
        least, most, reluctant, may_be_empty = self._loop_of[number]
        count = counters[number] >> 1
        ways = []
        if most is None or count < most:
            ways.append((targets[0], _with(counters, number, count << 1 | (count < least or not may_be_empty))))
        if count >= least:
            ways.append((targets[1], _with(counters, number, 0)))
        return ways[::-1] if reluctant else ways

    def _counted(self, number: int, counters: tuple[int, ...]) -> tuple[int, ...]:
        least, most, _, _ = self._loop_of[number]
        return _with(counters, number, min((counters[number] >> 1) + 1, least if most is None else most) << 1)

    def _choices(self, targets: tuple[int, ...], number: int, counters: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        done, members = counters[number], targets[:-1]
        if done == (1 << len(members)) - 1:
            return [(targets[-1], _with(counters, number, 0))]
        return [(entry, counters) for n, entry in enumerate(members) if not done >> n & 1]

    def _state(self, place: int, counters: tuple[int, ...]) -> int:
        key = place, counters
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.states)
            instruction = self.instructions[place]
            self.states.append(State(instruction.number, instruction.hidden, place, counters))
            self._after.append(None)
        return number

    def _reachable(self) -> list[frozenset[int]]:
        """By instruction: the variables that may take rows from there on."""
        reach = [
            frozenset({i.number}) if i.kind == "take" else frozenset() for i in self.instructions
        ]  # grows until nothing changes
        changed = True
        while changed:
            changed = False
            for place, instruction in enumerate(self.instructions):
                more = reach[place].union(*(reach[target] for target in instruction.targets))
                if more != reach[place]:
                    reach[place], changed = more, True
        return reach


def _with(counters: tuple[int, ...], number: int, value: int) -> tuple[int, ...]:
    return (*counters[:number], int(value), *counters[number + 1 :])


def _may_be_empty(node: Pattern) -> bool:
    match node:
        case Variable():
            return False
        case Empty() | Anchor():
            return True
        case Concatenation(parts) | Permutation(parts):
            return all(map(_may_be_empty, parts))
        case Repetition(body, least):
            return least == 0 or _may_be_empty(body)
    return any(map(_may_be_empty, node.children))
