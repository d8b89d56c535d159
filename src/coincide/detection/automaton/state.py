"""What a detector remembers (section 3.3): start groups that have ended, and runs, for every assignment of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from coincide.detection.automaton.construction import Choices, State
from coincide.detection.eventsets import FREE, Assignment
from coincide.detection.eventwise import Timer, Timers
from coincide.model.event import Event, Place

Aliases = frozenset[tuple[str, Place]]
Failures = dict[tuple[int, int], int]
RunKey = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Match:
    """Events that were matched, in the order of consumption, with the parameters they used and their aliases."""

    events: tuple[Event, ...]
    bindings: Assignment = FREE
    aliases: Aliases = frozenset()

    @property
    def places(self) -> tuple[Place, ...]:
        """Places stand for consumption numbers: they are as unique and ordered alike."""
        return tuple(event.place for event in self.events)

    @property
    def key(self) -> tuple[object, ...]:
        return self.places, self.bindings, self.aliases

    @property
    def lo(self) -> int:
        return min(event.lo for event in self.events)

    @property
    def hi(self) -> int:
        return max(event.hi for event in self.events)

    def joined(self, other: Match) -> Match:
        return Match(_united(self.events, other.events), self.bindings | other.bindings, self.aliases | other.aliases)


NOTHING = Match(())


def _united(mine: tuple[Event, ...], others: tuple[Event, ...]) -> tuple[Event, ...]:
    if not mine or not others or mine[-1].place < others[0].place:
        return mine + others
    events = {event.place: event for event in (*mine, *others)}
    return tuple(events[place] for place in sorted(events))


@dataclass(frozen=True)
class RunTimer:
    """A timer that a run waits for; runs that share a timer have its place. It has none before it is set."""

    timing: int
    due: int
    place: Place = ()


@dataclass(frozen=True, eq=False)
class Run:
    """A match in progress."""

    choices: Choices
    state: State
    prev: int | None = None  # greatest hi matched
    entry: int | None = None  # section 3.6
    match: Match = NOTHING
    timers: tuple[RunTimer, ...] = ()

    @property
    def key(self) -> RunKey:
        """What makes runs equal; of timers only the due time counts."""
        dues = tuple((t.timing, t.due) for t in self.timers)
        return self.choices, self.state, self.prev, self.entry, self.match.key, dues

    def at(self, state: State, timers: Iterable[RunTimer]) -> Run:
        return replace(self, state=state, timers=tuple(timers))


Runs = dict[State, dict[RunKey, Run]]


@dataclass
class Instance:
    """Starts and runs under one assignment, for each automaton of the detector."""

    ended: list[set[int]]  # numbers of the start groups that have failed
    runs: list[Runs]

    @classmethod
    def fresh(cls, automata: int) -> Instance:
        return cls([set() for _ in range(automata)], [{} for _ in range(automata)])

    @property
    def idle(self) -> bool:
        return not any(self.runs)


Holder = tuple[Assignment, int, State, RunKey]


@dataclass
class DetectorState:
    """All that changes. `failures` counts the ends of start groups, by automaton and group."""

    instances: dict[Assignment, Instance]
    timers: Timers = field(default_factory=Timers)
    pending: dict[Place, Timer] = field(default_factory=dict)
    holders: dict[Place, dict[Holder, Run]] = field(default_factory=dict)
    failures: Failures = field(default_factory=dict)
    by_value: dict[tuple[str, object], set[Assignment]] = field(default_factory=dict)
    released: list[Place] = field(default_factory=list)

    @classmethod
    def fresh(cls, automata: int) -> DetectorState:
        return cls({FREE: Instance.fresh(automata)})

    # Runs. A timer lives as long as some run waits for it.

    def add(self, assignment: Assignment, automaton: int, run: Run) -> None:
        key = run.key
        runs = self.instances[assignment].runs[automaton].setdefault(run.state, {})
        if key in runs:
            return
        runs[key] = run
        for timer in run.timers:
            self.holders.setdefault(timer.place, {})[assignment, automaton, run.state, key] = run

    def remove(self, assignment: Assignment, automaton: int, run: Run) -> None:
        key, runs = run.key, self.instances[assignment].runs[automaton]
        del runs[run.state][key]
        if not runs[run.state]:
            del runs[run.state]
        for timer in run.timers:
            self._release(timer.place, (assignment, automaton, run.state, key))

    def _release(self, place: Place, holder: Holder) -> None:
        holders = self.holders[place]
        del holders[holder]
        if not holders:
            self.released.append(place)

    def cancel_released(self) -> None:
        """At the end of a step, when the runs that it made hold their timers."""
        for place in self.released:
            if place in self.holders and not self.holders[place]:
                del self.holders[place]
                self.pending.pop(place).cancelled = True
        self.released.clear()

    # Assignments.

    def copy(self, source: Assignment, target: Assignment) -> None:
        """What holds for all values that were not seen holds for a value that is seen now."""
        original = self.instances[source]
        self.instances[target] = Instance([set(ended) for ended in original.ended], [{} for _ in original.runs])
        for pair in target:
            self.by_value.setdefault(pair, set()).add(target)
        for automaton, run in list(_all_runs(original)):
            self.add(target, automaton, run)

    def take(self, other: DetectorState, assignment: Assignment) -> None:
        """What another state knows under an assignment."""
        theirs = other.instances[assignment]
        mine = self.instances.setdefault(assignment, Instance.fresh(len(theirs.runs)))
        for ended, more in zip(mine.ended, theirs.ended, strict=True):
            ended |= more
        for pair in assignment:
            self.by_value.setdefault(pair, set()).add(assignment)
        for automaton, run in _all_runs(theirs):
            self.add(assignment, automaton, run)
            for timer in run.timers:
                if timer.place not in self.pending:
                    self.pending[timer.place] = self.timers.add(replace(other.pending[timer.place]))

    def drop(self, assignment: Assignment) -> None:
        del self.instances[assignment]
        for pair in assignment:
            self.by_value[pair].discard(assignment)
            if not self.by_value[pair]:
                del self.by_value[pair]


def _all_runs(instance: Instance) -> Iterator[tuple[int, Run]]:
    for automaton, states in enumerate(instance.runs):
        for runs in states.values():
            for run in runs.values():
                yield automaton, run
