"""Deterministic machines over letters: exploring a transducer, products, and what minimal machines are made of.

Letters are known here by their columns only: letters that do the same in every state share one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

from coincide.analysis.letters import LIMIT, LimitExceeded
from coincide.analysis.partition import coarsest
from coincide.detection.machine.transducer import ENDED, Configuration, Transducer
from coincide.lang.ecl.definition import Output

Answer = tuple[Any, ...]
"""λ(q, ℓ): what is emitted, in order."""

Edge = tuple[int, int]
"""The next state, and the number of the answer."""

Moves = dict[int, dict[int, Edge]]
"""Of one state: for each set of labels that a step looked at, the edge for each choice of these."""


@dataclass(frozen=True)
class Automaton:
    """State 0 is the start. `columns` gives each letter its column of the tables of next states and of answers."""

    columns: tuple[int, ...]
    following: list[list[int]]
    answering: list[list[int]]
    answers: tuple[Answer, ...]

    @property
    def states(self) -> int:
        return len(self.following)

    def tagged(self, tag: int) -> Automaton:
        """Everything emitted as a pair with the tag: where it comes from, in a product."""
        return replace(self, answers=tuple(tuple((tag, symbol) for symbol in answer) for answer in self.answers))

    def over(self, columns: Sequence[int]) -> Automaton:
        """The same over other letters, given by the columns that they have here."""
        return replace(self, columns=tuple(columns))

    def minimal(self, observe: Callable[[Answer], Answer]) -> Automaton:
        """States that no input tells apart by what is observed become one; so do letters. D° of section 7 observes
        multisets, an optimiser must observe the order too."""
        seen = self._observed(observe)
        blocks = self.blocks(observe)
        first = {block: state for state, block in reversed(list(enumerate(blocks)))}
        states = [first[block] for block in range(len(first))]
        following = [[blocks[target] for target in self.following[state]] for state in states]
        answering = [[seen[answer] for answer in self.answering[state]] for state in states]
        answers = dict(zip(seen, map(observe, self.answers), strict=True))
        return tabled(self.columns, following, answering, tuple(answers[number] for number in range(len(answers))))

    def blocks(self, observe: Callable[[Answer], Answer]) -> list[int]:
        """For each state the one that it becomes in the minimal machine."""
        seen = self._observed(observe)
        return coarsest(self.following, [[seen[answer] for answer in row] for row in self.answering])

    def _observed(self, observe: Callable[[Answer], Answer]) -> list[int]:
        """For each answer the number of what is seen of it."""
        numbers: dict[Answer, int] = {}
        return [numbers.setdefault(observe(answer), len(numbers)) for answer in self.answers]


def tabled(
    columns: Iterable[int], following: list[list[int]], answering: list[list[int]], answers: tuple[Answer, ...]
) -> Automaton:
    """The automaton with equal columns made one."""
    numbers: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    pairs = zip(zip(*following, strict=True), zip(*answering, strict=True), strict=True)
    renamed = [numbers.setdefault(column, len(numbers)) for column in pairs]
    tables = list(numbers)
    states = range(len(following))
    return Automaton(
        tuple(renamed[column] for column in columns),
        [[table[0][state] for table in tables] for state in states],
        [[table[1][state] for table in tables] for state in states],
        answers,
    )


class LookingLetter:
    """A letter that notes which labels a step looks at: no other can change what the step does."""

    __slots__ = ("letter", "seen")

    def __init__(self, letter: int) -> None:
        self.letter = letter
        self.seen = 0

    def __and__(self, bit: int) -> int:
        self.seen |= bit
        return self.letter & bit

    __rand__ = __and__


class Exploration:
    """D: the settled configurations that letters lead to from the start, no more than the limit, and by no more steps than
    are given, if they are."""

    def __init__(self, transducer: Transducer, letters: Sequence[int], steps: float = inf) -> None:
        self._steps = steps
        self.transducer = transducer
        self.letters = letters
        self.numbers: dict[Configuration, int] = {transducer.start: 0}
        self.configurations: list[Configuration] = [transducer.start]
        self._answers: dict[tuple[int, ...], int] = {}
        self._moves: list[Moves] = []
        for configuration in self.configurations:  # grows on the way
            self._moves.append(self._explored(configuration))

    @property
    def states(self) -> int:
        return len(self._moves)

    @property
    def answers(self) -> tuple[tuple[int, ...], ...]:
        """By number: indices of the transducer's outputs."""
        return tuple(self._answers)

    @cached_property
    def edges(self) -> list[set[Edge]]:
        """The edges of each state, whatever the letter."""
        return [{edge for known in moves.values() for edge in known.values()} for moves in self._moves]

    @cached_property
    def automaton(self) -> Automaton:
        symbols = [sortable_symbol(output) for output in self.transducer.outputs]
        answers = tuple(tuple(symbols[output] for output in answer) for answer in self._answers)
        rows = [self._row(moves) for moves in self._moves]
        following = [[target for target, _ in row] for row in rows]
        return tabled(range(len(self.letters)), following, [[answer for _, answer in row] for row in rows], answers)

    def _row(self, moves: Moves) -> list[Edge]:
        """The edge of each letter."""
        if len(moves) == 1:
            ((seen, known),) = moves.items()
            return [known[letter & seen] for letter in self.letters]
        return [next(k[letter & seen] for seen, k in moves.items() if letter & seen in k) for letter in self.letters]

    def _explored(self, configuration: Configuration) -> Moves:
        moves: Moves = {}
        pending = self.letters
        while pending:
            seen = self._step(configuration, pending[0])[0]
            known = moves.setdefault(seen, {})
            for value, letter in {letter & seen: letter for letter in pending}.items():
                looked, edge = self._step(configuration, letter)
                if looked == seen:
                    known[value] = edge
            pending = [letter for letter in pending if letter & seen not in known]
        return moves

    def _step(self, configuration: Configuration, letter: int) -> tuple[int, Edge]:
        """The labels that the step looked at, and where it leads."""
        self._steps -= 1
        if self._steps < 0:
            raise LimitExceeded
        looking: Any = LookingLetter(letter)
        following, emitted = self.transducer.step(configuration, looking)
        answer = self._answers.setdefault(emitted, len(self._answers))
        return looking.seen, (self._number(following), answer)

    def _number(self, configuration: Configuration) -> int:
        number = self.numbers.setdefault(configuration, len(self.numbers))
        if number == len(self.configurations):
            self.configurations.append(configuration)
            if number >= LIMIT + (ENDED in self.numbers):  # having ended is not a settled configuration
                raise LimitExceeded
        return number


def sortable_symbol(output: Output) -> tuple[str, tuple[tuple[str, str], ...]]:
    token, attributes = output.symbol
    return token, tuple(sorted(attributes))


def product(first: Automaton, second: Automaton) -> Automaton:
    """Both at once, over the same letters: answers of the first before those of the second."""
    columns: dict[tuple[int, int], int] = {}
    letters = [columns.setdefault(pair, len(columns)) for pair in zip(first.columns, second.columns, strict=True)]
    states: dict[tuple[int, int], int] = {(0, 0): 0}
    answers: dict[tuple[int, int], int] = {}
    following: list[list[int]] = []
    answering: list[list[int]] = []
    waiting = [(0, 0)]
    for one, other in waiting:  # grows on the way
        targets = [(first.following[one][left], second.following[other][right]) for left, right in columns]
        emitted = [(first.answering[one][left], second.answering[other][right]) for left, right in columns]
        waiting += [target for target in dict.fromkeys(targets) if target not in states]
        following.append([states.setdefault(target, len(states)) for target in targets])
        answering.append([answers.setdefault(pair, len(answers)) for pair in emitted])
        if len(states) > LIMIT:
            raise LimitExceeded
    joined = tuple(first.answers[left] + second.answers[right] for left, right in answers)
    return Automaton(tuple(letters), following, answering, joined)
