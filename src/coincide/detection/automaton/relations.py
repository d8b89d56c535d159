"""What the tables of a detector have to be, whoever reads them; and what is told beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from coincide.detection.automaton.construction import Choices, State
from coincide.detection.automaton.layout import KIND, SHAPES
from coincide.detection.automaton.program import Program
from coincide.detection.automaton.state import Failures
from coincide.detection.columns import codec
from coincide.detection.columns.codec import Relations, decode
from coincide.detection.columns.tables import Numbers
from coincide.detection.keys import Key
from coincide.detection.snapshots import damaged, item
from coincide.model.bounds import FURTHEST

StoredConfiguration = tuple[list[tuple[int, int]], list[list[tuple[bool, int]]], list[int]]
Configuration = tuple[int, Choices, State, tuple[int, ...]]
"""Automaton, choices, state, and numbers of the parameters used."""


def parameters_of(program: Program) -> list[str]:
    """In the order in which keys have their values."""
    return sorted(program.definition.parameters)


def aliases_of(program: Program) -> list[str]:
    """In the order of their numbers."""
    return sorted(alias for alias in program.aliases if alias)


def notes_of(failures: Failures, now: int, events: int) -> dict[str, Numbers]:
    """Ends of starts that were counted; before which instant timers have fired; how many numbers events have."""
    counted = np.array([(*start, count) for start, count in failures.items()], np.int64).reshape(-1, 3)
    names = zip(("automaton", "start", "failures"), counted.T, strict=True)
    return {**dict(names), "now": np.array([now]), "events": np.array([events])}


def failures_of(program: Program, relations: Relations) -> Failures:
    columns = [relations.notes.get(name, np.zeros(0, np.int64)).tolist() for name in ("automaton", "start", "failures")]
    failures: Failures = {}
    for number, start, count in zip(*columns, strict=True):
        item(item(program.automata, number).starts, start)
        failures[number, start] = count if count > 0 else damaged("its counts are others")
    return failures


def now_of(relations: Relations) -> int:
    now = relations.notes.get("now", np.zeros(0, np.int64))
    if len(now) != 1:
        damaged("it has no clock")
    return int(now[0])


def keys_of(program: Program, relations: Relations) -> list[Key]:
    return codec.keys_of(relations.rows["keys"], len(program.definition.parameters))


def configurations_of(program: Program, relations: Relations) -> list[Configuration]:
    rows = relations.rows["configurations"]
    values = msgspec.convert(rows.values or [], list[StoredConfiguration])
    found = [_configuration(program, a, *value) for a, value in zip(rows.columns["automaton"].tolist(), values, strict=True)]
    if len(set(found)) < len(found) or (len(rows) and rows.numbers[-1] != len(rows) - 1):
        damaged("its configurations are not numbered one after another")
    return found


def _configuration(program: Program, number: int, choices: Any, groups: Any, used: list[int]) -> Configuration:
    automaton, state = item(program.automata, number), frozenset(frozenset(group) for group in groups)
    positions = [item(automaton.positions, position) for group in state for _, position in group]
    if not positions or not all(state):
        damaged("a run is at no place")
    for fork, side in choices:
        item(item(automaton.forks, fork).parts, side)
    if used != sorted(set(used)) or (used and not 0 <= used[0] <= used[-1] < len(program.definition.parameters)):
        damaged("a parameter is not one of its rule")
    return number, frozenset(choices), state, tuple(used)


def stored(configuration: Configuration) -> list[Any]:
    _, choices, state, used = configuration
    return [sorted(choices), sorted(sorted(group) for group in state), list(used)]


def read(program: Program, base: bytes, later: Sequence[bytes]) -> Relations:
    """Tables of this program. References have been checked; here, that they mean what they should. Raises ValueError."""
    relations = decode(SHAPES, KIND, base, *later)
    _check_nodes(program, relations)
    _check_timers(program, relations)
    _check_runs(program, relations)
    ended = relations.rows["ended"].columns
    sizes = np.array([len(automaton.starts) for automaton in program.automata])
    _within(ended["automaton"], len(sizes), "a start is not one of its rule")
    _within(ended["start"], sizes[ended["automaton"]], "a start is not one of its rule")
    return relations


def _check(good: Any, what: str) -> None:
    if not np.all(good):
        damaged(what)


def _within(numbers: Numbers, end: Any, what: str) -> None:
    _check((numbers >= 0) & (numbers < end), what)


def _check_nodes(program: Program, relations: Relations) -> None:
    """The events of a path stand in the order of consumption, in which all have numbers."""
    rows, timers = relations.rows["nodes"], relations.rows["timers"]
    parent, event, timer, sequence = (rows.columns[name] for name in ("parent", "event", "timer", "sequence"))
    _check((event >= 0) != (timer >= 0), "a node has no event, or two")
    _within(sequence, FURTHEST, "the events of a run have no order")
    _check(parent < rows.numbers, "the events of a run are not in order")
    below = np.searchsorted(rows.numbers, parent[parent >= 0])
    _check(sequence[parent >= 0] > sequence[below], "the events of a run are not in order")
    moment = np.where(event >= 0, event, -1 - timer)
    order = np.lexsort((moment, sequence))
    one, other = order[:-1], order[1:]
    _check((sequence[one] == sequence[other]) == (moment[one] == moment[other]), "two events have one number")
    real = order[event[order] >= 0]
    _check(event[real[:-1]] <= event[real[1:]], "the events of a run are not in order")
    _check((timers.columns["due"] >= -FURTHEST) & (timers.columns["due"] <= FURTHEST), "a timer is never due")
    _within(relations.rows["named"].columns["alias"], len(aliases_of(program)), "an alias is not one of its rule")


def _check_timers(program: Program, relations: Relations) -> None:
    rows, places = relations.rows["timers"], relations.rows["places"]
    timing, event, timer, rank = (rows.columns[name] for name in ("timing", "event", "timer", "rank"))
    _within(timing, len(program.timings), "a timer is not one of its rule")
    given = np.isin(rows.numbers, places.columns["timer"])
    _check(len(places) == given.sum(), "a timer has two places")
    _check(given | ((event >= 0) != (timer >= 0)), "a timer was not set by anything")
    _check((timer < rows.numbers) & (rank >= 0), "a timer was set by a later one")


def _check_runs(program: Program, relations: Relations) -> None:
    """What a run waits for, its configuration may wait for."""
    rows, timers = relations.rows["runs"], relations.rows["timers"]
    if rows.parts != len(program.timings):
        damaged("a run has timers of another rule")
    known = configurations_of(program, relations)
    domains = np.zeros((len(known), rows.parts), np.bool_)
    for number, (automaton, _, state, _) in enumerate(known):
        domains[number, list(program.automata[automaton].timers_in_domain(state))] = True
    for part in range(rows.parts):
        timer = rows.columns[f"timer.{part}"]
        waits = timer >= 0
        found = np.searchsorted(timers.numbers, timer[waits])
        _check(timers.columns["timing"][found] == part, "a run has a timer of another one")
        _check(domains[rows.columns["configuration"][waits], part], "a run has a timer of another one")
    _check(np.unique(relations.rows["entries"].columns["run"], return_counts=True)[1] == 1, "a run entered twice")
    _check(np.abs(relations.rows["entries"].columns["instant"]) <= FURTHEST, "a run entered never")
