"""The search from one row (section 4): the ways through the pattern in order of preferment, first to last.

Ways that are still to be tried stand on a stack, the preferred one on top. One that asks for a row which is not there yet leaves
the search undecided: it goes on when there are more rows. A state that was tried at a row before, by a path that no condition
can tell from this one, was tried in vain, and is not tried again."""

from __future__ import annotations

from typing import Any, NamedTuple

from coincide.detection.rowpattern.automaton import MATCH, NOWHERE, Automaton, TooManyWays, Way
from coincide.detection.rowpattern.conditions import Conditions, Registers, Rows, Trial
from coincide.detection.rowpattern.layout import REMEMBERED
from coincide.errors import Diagnostic, RunError
from coincide.lang.matchrecognize.definition import Clause
from coincide.model.event import Event

STEPS = 10_000_000
"""So many times a variable may be tried on a row, from one start."""

NO_TIME = 2**62
"""In place of the time of a row that has none: no event is so late."""

Path = tuple[Any, int] | None
"""The path before, and the state that took the row."""

Failed = set[Any]
"""States and rows that lead nowhere."""


class Thread(NamedTuple):
    way: Way
    position: int
    path: Path
    registers: Registers


class Found(NamedTuple):
    """The outcome of a search. `states` are those that took rows; None: there is no match. `cut` is the first path that ran out
    of time."""

    states: list[int] | None
    cut: list[int] | None = None


class Searching(NamedTuple):
    """What all searches of a query have in common."""

    clause: Clause
    automaton: Automaton
    conditions: Conditions
    steps: int

    @property
    def shares_failures(self) -> bool:
        """Does what failed from one start fail from every other?"""
        return not self.conditions.registers and self.clause.within is None and not self.conditions.uses_number

    def relevant(self, state: int, known: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        """The registers that a path from this state may still read."""
        place = self.automaton.states[state].place
        if place not in known:
            known[place] = self.conditions.read_by(self.automaton.variables_from(state))
        return known[place]


class Search:
    """From row `start`, if it would be match `number`."""

    def __init__(self, program: Searching, start: int, number: int, failed: Failed) -> None:
        self.program = program
        self.start = start
        self.number = number
        self.tried = failed
        self.steps = 0
        self.cut: Path = None
        self._relevant: dict[int, tuple[int, ...]] = {}
        self._stack: list[Thread] = []
        self._push(program.automaton.first, start, None, program.conditions.start)

    def go_on(self, rows: Rows, expired: bool) -> Found | None:
        """The outcome, or None if it is undecided. `expired`: no row after those that are there can be within the bound."""
        stack, within = self._stack, self.program.clause.within
        bound = None if within is None else rows.row(self.start).hi + within
        trial = Trial(rows, self.number)
        while stack:
            thread = stack[-1]
            passed = self._passes(thread, rows)
            if passed is None:
                return None
            if passed and thread.way.state == MATCH:
                return Found(states_of(thread.path))
            if thread.way.state == NOWHERE:
                passed = False
            if passed and thread.position >= rows.count:
                if not (rows.closed or expired):
                    return None
                if expired:
                    self.cut = self.cut or thread.path
                passed = False
            if not passed:
                stack.pop()
                continue
            event = rows.row(thread.position)
            if bound is not None and (event.hi > bound or event.hi >= NO_TIME):
                self.cut = self.cut or thread.path
                stack.pop()
            elif self._try(thread, event, trial) is None:
                return None
        return Found(None, None if self.cut is None else states_of(self.cut))

    def waiting(self, position: int) -> set[int]:
        """The states that would take the row at a position, which is not there yet."""
        return {thread.way.state for thread in self._stack if thread.position >= position and thread.way.state >= 0}

    def _passes(self, thread: Thread, rows: Rows) -> bool | None:
        """Do the anchors on the way hold? None: that cannot be told yet."""
        for anchor in thread.way.anchors:
            if anchor == "^":
                if thread.position != 0:
                    return False
            elif thread.position < rows.count:
                return False
            elif not rows.closed:
                return None
        return True

    def _try(self, thread: Thread, event: Event, trial: Trial) -> bool | None:
        """Try the top of the stack on its row. None: its condition asks for a row that is not there."""
        (_, state), position, path, registers = thread
        key = self._key(thread)
        if key in self.tried:
            self._stack.pop()
            return False
        automaton, conditions = self.program.automaton, self.program.conditions
        trial.position, trial.variable, trial.rowtime = position, automaton.states[state].variable, event.hi
        test = conditions.tests[trial.variable]
        after = conditions.taken(registers, trial, event) if conditions.registers else registers
        trial.registers = after
        if test is not None and not test.is_decidable(trial):
            return None
        self.steps += 1
        if self.steps > self.program.steps:
            raise self._too_many(trial.rows)
        if not registers or len(self.tried) < REMEMBERED:
            self.tried.add(key)
        self._stack.pop()
        if test is not None and not test.holds(trial):
            return False
        try:
            self._push(automaton.after(state), position + 1, (path, state), after)
        except TooManyWays:
            raise self._too_many(trial.rows) from None
        return True

    def _key(self, thread: Thread) -> Any:
        state = thread.way.state
        if not thread.registers:
            return state, thread.position
        relevant = self.program.relevant(state, self._relevant)
        return (state, thread.position, *(thread.registers[number] for number in relevant))

    def _push(self, ways: tuple[Way, ...], position: int, path: Path, registers: Registers) -> None:
        self._stack += [Thread(way, position, path, registers) for way in reversed(ways)]

    def _too_many(self, rows: Rows) -> RunError:
        return too_many_steps(self.program, rows.row(self.start))


def too_many_steps(program: Searching, row: Event) -> RunError:
    name = row.id if row.id is not None else "of " + row.type
    message = f"the pattern needs more than {program.steps:,} steps from row {name}".replace(",", "")
    hint = "fewer conditions that look back over the match, or WITHIN, help; --steps allows more"
    return RunError(Diagnostic(message, program.clause.pattern_span, hint=hint))


def states_of(path: Path) -> list[int]:
    states = []
    while path is not None:
        path, state = path
        states.append(state)
    return states[::-1]
