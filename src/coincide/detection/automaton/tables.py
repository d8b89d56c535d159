"""An automaton as tables, filled by asking the interpreter.

What a row does to a run depends on the run's *configuration* (its state and choices), on the row's class, and on whether it
strongly follows the run. Configurations and classes get numbers when they first occur; nothing is ever renumbered. The first
classes are those of the time events, one a timing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from coincide.detection.automaton.construction import Choices, State
from coincide.detection.automaton.interpreter import Sight
from coincide.detection.automaton.pools import CELL, CLASS, CONFIGURATION, ENTRY, FAIL, STAY, TAKE, TIMING, Cells
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.state import Run
from coincide.detection.eventsets import FREE, Reading, timer_reading
from coincide.expr.classes import Classes, Classifier
from coincide.expr.tree import Compare, Literal, Reference
from coincide.expr.vector import Rows, holds
from coincide.lang.opera.definition import Timing
from coincide.lang.shared.times import Duration
from coincide.model.event import Event

Configuration = tuple[Choices, State]

NONE = -1
EARLY = -(1 << 62)
HEARTBEAT = Compare("=", Reference("type"), Literal("heartbeat"))
SOME_EVENT = Event("", 0, 0, None, {}, ())


@dataclass(frozen=True)
class Entry:
    """A transition that is made: where to (NONE: nowhere), and what comes of it. Sets are bits."""

    aliases: int
    bound: bool
    target: int
    accept: bool
    sets: int


@dataclass(frozen=True)
class Cell:
    """What a class does in a configuration: nothing, a failure that leaves `left` (NONE: nothing), or transitions."""

    kind: int = STAY
    left: int = NONE
    entries: tuple[Entry, ...] = ()


class Tables:
    """A cache for one program: states say which tables their numbers are of."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.automaton = program.root
        self.aliases = sorted(alias for alias in program.aliases if alias)
        leaves = program.leaves.leaves
        self.classifier = Classifier([leaf.test for leaf in leaves] + [HEARTBEAT] * any(leaf.external_only for leaf in leaves))
        self.configurations: list[Configuration] = []
        self._numbers: dict[Configuration, int] = {}
        self._classes: dict[tuple[int, ...], int] = {}
        self._readings = [timer_reading(SOME_EVENT, timing) for timing in range(len(program.timings))]
        self._cells: list[list[Cell]] = []  # of a configuration: two of each class, the second where the row follows
        self._starts = [self.number((start.choices, start.state)) for start in self.automaton.starts]
        self._built: Cells | None = None

    def number(self, configuration: Configuration) -> int:
        """The number of a configuration."""
        if configuration not in self._numbers:
            self._numbers[configuration] = len(self.configurations)
            self.configurations.append(configuration)
            self._cells.append([])
            self._built = None
        return self._numbers[configuration]

    # Classes.

    def classes(self, classes: Classes) -> npt.NDArray[np.int64]:
        """The number of the class of each code of a batch; NONE where no leaf holds the rows."""
        new = [n for n, key in enumerate(classes.keys) if key not in self._classes]
        if new:
            held = self._held(classes.representatives, classes.keys)
            for n in new:
                self._classes[classes.keys[n]] = self._learn(held[:, n])
        return np.array([self._classes[key] for key in classes.keys], np.int64)[classes.numbers]

    def class_of(self, leaves: int) -> int:
        """The number of the class of rows that these leaves hold, as bits."""
        if (leaves,) not in self._classes:
            held = [leaves >> number & 1 for number in range(len(self.program.leaves.leaves))]
            self._classes[leaves,] = self._learn(np.array(held, np.bool_))
        return self._classes[leaves,]

    def _held(self, rows: Rows, keys: Sequence[tuple[int, ...]]) -> npt.NDArray[np.bool_]:
        tests = [(leaf.test, leaf.external_only) for leaf in self.program.leaves.leaves]
        held = {test: holds(test, rows) for test in dict.fromkeys(test for test, _ in tests)}
        if any(external_only for _, external_only in tests):
            external = np.array([key[0] == 0 for key in keys]) & ~holds(HEARTBEAT, rows)
            found = [held[test] & external if external_only else held[test] for test, external_only in tests]
        else:
            found = [held[test] for test, _ in tests]
        return np.array(found, np.bool_).reshape(-1, len(keys))

    def _learn(self, held: npt.NDArray[np.bool_]) -> int:
        leaves = dict.fromkeys(np.flatnonzero(held).tolist(), FREE)
        if not leaves:
            return NONE
        self._readings.append(Reading(SOME_EVENT, leaves))
        self._built = None
        return len(self._readings) - 1

    # Cells.

    def cells(self) -> Cells:
        """All that is known, as arrays."""
        if self._built is None:
            self._fill()
            self._built = self._arrays()
        return self._built

    def _fill(self) -> None:
        """What every class does in every configuration; that may lead to further ones."""
        sights = [Sight(self.automaton, self.program, reading, FREE, []) for reading in self._readings]
        for number, (choices, state) in enumerate(self.configurations):  # grows meanwhile
            row = self._cells[number]
            for sight in sights[len(row) // 2 :]:
                row += [self._cell(sight, Run(choices, state, prev)) for prev in (SOME_EVENT.lo, None)]

    def _cell(self, sight: Sight, run: Run) -> Cell:
        taken = list(sight.taken(run, True))
        if taken:
            return Cell(TAKE, NONE, tuple(entry for t in taken for entry in self._entries(sight, run, t.position)))
        left = frozenset(group for group in run.state if not sight.fails(group, run.prev))
        if left == run.state and sight.reading.timing is None:
            return Cell()
        return Cell(FAIL, self.number((run.choices, left)) if left else NONE)

    def _entries(self, sight: Sight, run: Run, position: int) -> list[Entry]:
        match = sight.match(position)
        assert match is not None
        aliases = sum(1 << self.aliases.index(alias) for alias, _ in match.aliases)
        bound = bool(self.program.definition.parameters) and sight.reading.timing is None
        return [
            Entry(aliases, bound, self.number((o.choices, o.state)) if o.state else NONE, o.accept, _bits(o.sets))
            for o in self.automaton.outcomes(position, run.choices)
        ]

    def _arrays(self) -> Cells:
        timings = self.program.timings
        cells = np.zeros((len(self._cells), 2 * len(self._readings)), CELL)
        entries: list[Entry] = []
        for number, row in enumerate(self._cells):
            for letter, cell in enumerate(row):
                first = len(entries) if cell.kind == TAKE else cell.left
                entries += cell.entries
                cells[number, letter] = cell.kind, first, len(entries)
        concerned = [np.flatnonzero(cells["kind"][:, 2 * n : 2 * n + 2].any(axis=1)) for n in range(len(self._readings))]
        ends = np.cumsum([0, *map(len, concerned)]).tolist()
        domains = [_bits(self.automaton.timers_in_domain(state)) for _, state in self.configurations]
        active = [_bits(t for t in range(len(timings)) if row[2 * t + 1].kind == TAKE) for row in self._cells]
        return Cells(
            cells,
            np.array([(e.aliases, e.bound, e.target, e.accept, e.sets) for e in entries], ENTRY),
            np.array(list(zip(domains, active, strict=True)), CONFIGURATION),
            np.array(list(pairwise(ends)), CLASS),
            np.concatenate([*concerned, np.zeros(0, np.int64)]).astype(np.int64),
            np.array(self._starts, np.int64),
            np.array([_time(timing) for timing in timings], TIMING),
            1 + max((len(cell.entries) for row in self._cells for cell in row), default=0),
        )


def _time(timing: Timing) -> tuple[int, int, int]:
    """A timer is due at max(hi + duration, instant), or at the next time `of_day`, if that is not -1."""
    time = timing.time
    if isinstance(time, Duration):
        return time.microseconds, EARLY, -1
    return (0, time.due(EARLY), -1) if time.of_day is None else (0, EARLY, time.of_day)


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)
