"""What `explain` says of a query (MR-48)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.detection.base import Detector
from coincide.detection.rowpattern.automaton import MATCH, Way
from coincide.detection.rowpattern.columnar import look_ahead_of, range_reasons, rows_around
from coincide.detection.rowpattern.interpreter import Interpreter
from coincide.detection.rowpattern.partition import Program
from coincide.expr.quantities import duration_text
from coincide.lang.matchrecognize.definition import Anchor, Query, Repetition
from coincide.syntax import walk

Row = tuple[str, str]


def explained(detector: Detector) -> Iterator[Row]:
    query: Query = detector.definition
    program = Program(detector)
    interpreter = Interpreter(program)
    if query.clause.partition:
        yield "key", ", ".join(c.name for c in query.clause.partition) + ": a partition for each value, null among them"
    yield "rows", f"a row is taken {interpreter.known}"
    yield "streams", _streamable(program, interpreter.known)
    yield "decided", _decided(program)
    ahead = max([program.measures.look_ahead, *(look_ahead_of(test) for test in program.conditions.tests)], default=0)
    yield "looks", f"{_rows(program.back)} back, {ahead} ahead"
    if not query.clause.partition:
        yield "ranges", _ranges(program)
    yield "merges", _merging(program)
    yield "memory", _memory(program)


def _ranges(program: Program) -> str:
    """What Spark does with a table that has no partitions."""
    against = next(range_reasons(program), None)
    if against is not None:
        return f"one task on Spark: {against}"
    back, ahead = rows_around(program)
    overlap = f"{duration_text(program.clause.within or 0)}, {_rows(back)} before and {ahead} after"
    return f"a DataFrame of Spark is matched in ranges of time that overlap by {overlap}; a rule file in one task"


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def _streamable(program: Program, known: str) -> str:
    if known == "at the end":
        return "no: its rows are in order only when all of them are there"
    if any(isinstance(node, Anchor) and node.end for node in walk(program.clause.pattern)):
        return "yes, but `$` never holds there: a stream has no end"
    return "yes"


def _decided(program: Program) -> str:
    """When the preferred match of most rows is known."""
    automaton = program.searching.automaton
    nodes = list(walk(program.clause.pattern))
    if any(isinstance(node, Anchor) and node.end for node in nodes):
        return "at the end of the input"
    if program.measures.look_ahead:
        return f"{program.measures.look_ahead} rows later, which NEXT in a measure asks for"
    waits, state = _waits(automaton.first), 0
    while not waits and state < min(len(automaton.states), 1000):  # states are made when they are reached
        waits, state = _waits(automaton.after(state)), state + 1
    if not waits:
        return "with its last row"
    bound = " or at the bound" if program.clause.within is not None else ""
    return f"with its last row, or one row later{bound}, where a longer match is preferred"


def _waits(ways: Sequence[Way]) -> bool:
    """Is there something preferred to the end of the match?"""
    return any(way.state == MATCH for way in ways[1:])


def _merging(program: Program) -> str:
    for name, test in zip(program.clause.variables, program.conditions.tests, strict=True):
        if test is not None and not test.is_path_free:
            return f"paths that agree in what conditions may still read; that of {name} reads rows of the match before its own"
    return "all paths to a state of the pattern: conditions read only their own row and its neighbours"


def _memory(program: Program) -> str:
    clause = program.clause
    grows = any(isinstance(node, Repetition) and node.most is None for node in walk(clause.pattern))
    rows = "the rows from a pending start on" + (f" and {program.back} before" if program.back else "")
    if clause.within is None and grows:
        return f"{rows}, not bounded: a match can grow for ever"
    return f"{rows}, bounded by {'WITHIN' if clause.within is not None else 'the length of the pattern'}"
