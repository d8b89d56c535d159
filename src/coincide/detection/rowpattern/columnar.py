"""A query over columns: rows of all partitions, one partition after the other and each in order, in; output rows out.

Nothing here knows of events or of time zones: what rows are, and when a match is made, is the caller's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.rowpattern.expressions import Folded, Lookup, leaves_of, reads_labels
from coincide.detection.rowpattern.folds import running
from coincide.detection.rowpattern.loop import (
    MATCHED,
    NO_ROW,
    NOTHING,
    TIMED_OUT,
    TOO_MANY_STEPS,
    UNMATCHED,
    Given,
    Scans,
    Wanted,
    find,
    follow,
)
from coincide.detection.rowpattern.partition import Program
from coincide.detection.rowpattern.places import located, neighbours
from coincide.detection.rowpattern.registers import Code, Coder, local_look_ahead, needs_code, unfit_reasons
from coincide.detection.rowpattern.skipping import SKIPS, nowhere
from coincide.detection.rowpattern.tables import Tables, tables_of
from coincide.detection.rowpattern.vectors import read_by, taken, values_of
from coincide.errors import Diagnostic, RunError
from coincide.expr.tree import Expr, Reference, transform
from coincide.lang.matchrecognize.definition import Classifier, MatchFact
from coincide.model.column import Column
from coincide.model.stamp import MILLISECOND
from coincide.syntax import rebuilt, walk

Numbers = npt.NDArray[np.int64]
NO_TRAIL = np.zeros((0, 3), np.int64)
LABEL = " label"
"""The name of the column of labels, where an operand reads them."""


@dataclass(eq=False)
class Segments:
    """Where each partition's rows begin (and the last one's end), and where its scan has come to. Its starts lie before `ends`,
    if these are given. `anew` is the row with which a partition began again after it had been forgotten; -1: it was not."""

    bounds: Numbers
    starts: Numbers
    numbers: Numbers
    covered: Numbers
    begins: npt.NDArray[np.bool_]
    ends: Numbers | None = None
    anew: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self.anew = np.full(len(self.starts), -1, np.int64)

    @property
    def scans(self) -> Scans:
        ends = self.bounds[1:] if self.ends is None else self.ends
        of_scan = self.begins, self.starts, self.numbers, self.covered, self.anew
        return Scans(self.bounds[:-1], self.bounds[1:], ends, NO_TRAIL, *of_scan)

    @staticmethod
    def fresh(bounds: Numbers) -> Segments:
        count = len(bounds) - 1
        return Segments(bounds, bounds[:-1].copy(), np.ones(count, np.int64), np.zeros(count, np.int64), np.ones(count, np.bool_))


@dataclass(frozen=True, eq=False)
class Rows:
    """`columns` by name; `times` in microseconds, for WITHIN and MATCH_ROWTIME. `shifted` are values so many rows on: several
    conditions may ask for them."""

    length: int
    columns: Mapping[str, Column]
    times: Numbers
    shifted: dict[tuple[Expr, int], Column] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Matches:
    """What the scan made, in the order of segments. `made` has a row each: see `loop.find`. `states` took the rows."""

    made: Numbers
    states: npt.NDArray[np.int32]
    offsets: Numbers = field(default_factory=lambda: np.zeros(1, np.int64))

    def __len__(self) -> int:
        return len(self.made)

    @property
    def kind(self) -> Numbers:
        return self.made[:, 0]

    @property
    def start(self) -> Numbers:
        return self.made[:, 1]

    @property
    def size(self) -> Numbers:
        return self.made[:, 2]

    def take(self, index: Numbers) -> Matches:
        sizes = self.size[index]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        flat = np.arange(offsets[-1]) + np.repeat(self.offsets[index] - offsets[:-1], sizes)
        return Matches(self.made[index], self.states[flat], offsets)


def reasons(program: Program) -> tuple[str, ...]:
    """Why a query is not for columns; empty: it is."""
    found = list(unfit_reasons(program))
    if not found and tables_of(program.searching.automaton) is None:
        found.append("the pattern has too many states")
    return tuple(found)


class Columnar:
    """One query, compiled for columns."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.clause = program.clause
        self.automaton = program.searching.automaton
        skip = self.clause.skip
        self._skip = SKIPS[skip.to].kernel
        names = self.clause.variables
        wanted = self.clause.members(skip.variable) if skip.variable is not None else frozenset()
        self._members = np.array([name in wanted for name in names], np.bool_)
        asks = [leaf for tree in program.measures.trees.values() for leaf in leaves_of(tree) if _asks(leaf)]
        self._asking = np.array([[a.first, a.back, a.shift] for a in asks], np.int64).reshape(-1, 3)  # type: ignore[union-attr]
        self._askers = np.array([[v in a.members for v in range(len(names))] for a in asks], np.bool_).reshape(-1, len(names))
        self._ahead = np.array([local_look_ahead(test) for test in program.conditions.tests], np.int64)

    @cached_property
    def _tables(self) -> Tables:
        tables = tables_of(self.automaton)
        assert tables is not None  # `reasons` has said so
        return tables

    # Matching

    def find(self, rows: Rows, segments: Segments, closed: bool, passed: int) -> Matches:
        """Scan all segments; where each has come to is kept in them. Raises RunError, and Unfit before anything is done."""
        outcome, row, made, states = self._scanned(rows, segments, segments.scans, closed, passed)
        matches = Matches(made, states, np.concatenate(([0], np.cumsum(made[:, 2]))))
        if outcome != NOTHING:
            raise Stopped(outcome, int(row), matches)
        return matches

    def ways(self, rows: Rows, partition: Segments, entries: Numbers, closed: bool, passed: int) -> Numbers:
        """Where the scan of a partition goes that begins at each of some rows: its first start that is none of the partition's
        own (-1: it stops with an error), how many matches it makes on the way, and the row after the last one in a match.

        Scans that come to the same start are one from there on, so no start is searched twice."""
        assert partition.ends is not None
        end, count = int(partition.ends[0]), len(entries)
        trail = np.zeros((rows.length + 1, 3), np.int64)
        nothing = np.zeros(count, np.int64)
        low, high = (np.full(count, bound, np.int64) for bound in partition.bounds)
        ends, begins = np.repeat(partition.ends, count), np.repeat(partition.begins, count)
        scans = Scans(low, high, ends, trail, begins, entries.copy(), nothing + 1, nothing.copy(), nothing.copy())
        self._scanned(rows, partition, scans, closed, passed)
        follow(trail, int(entries.min(initial=end)), end)
        beyond = np.stack((entries, nothing, nothing), axis=1)
        return np.where((entries >= end)[:, None], beyond, trail[entries])

    def _scanned(self, rows: Rows, partitions: Segments, scans: Scans, closed: bool, passed: int) -> tuple[int, int, Any, Any]:
        clause, searching = self.clause, self.program.searching
        within = -1 if clause.within is None else clause.within
        given = Given(closed, self._truth(rows, partitions), self._ahead, rows.times, within, passed)
        wanted = Wanted(
            searching.shares_failures,
            not self.program.remembers,
            clause.unmatched_rows,
            clause.timed_out,
            self._skip,
            self._members,
            self._asking,
            self._askers,
            clause.all_rows,
            searching.steps,
        )
        return find(scans, given, self._tables, wanted, self._code(rows, partitions))

    def stop(self, stopped: Stopped, name: str) -> RunError:
        """What is told to the user; `name` is that of the row."""
        if stopped.outcome == TOO_MANY_STEPS:
            message = f"the pattern needs more than {self.program.searching.steps} steps from row {name}"
            return RunError(Diagnostic(message, self.clause.pattern_span))
        return nowhere(self.clause.skip, stopped.outcome != NO_ROW)

    def _truth(self, rows: Rows, segments: Segments) -> npt.NDArray[np.bool_]:
        """The conditions at every row, whoever comes there."""
        truth = np.ones((len(self.clause.variables), rows.length), np.bool_)
        for variable, test in enumerate(self.program.conditions.tests):
            if test is not None and not needs_code(test):
                flags = self._at_rows(test.tree, rows, segments, self.clause.variables[variable]).flags
                truth[variable] = False if flags is None else flags == 1
        return truth

    def _code(self, rows: Rows, segments: Segments) -> Code:
        """The other conditions."""

        def values(tree: Expr, variable: int) -> Column:
            if variable >= 0:
                return self._at_rows(tree, rows, segments, self.clause.variables[variable])
            return values_of(tree, rows.columns, rows.length)

        return Coder(self.program, values, rows.length).code()

    def _at_rows(self, tree: Expr, rows: Rows, segments: Segments, name: str) -> Column:
        """What is known from the row under test, at every row."""
        columns: dict[str, Column] = {}

        def rewrite(node: Expr) -> Expr:
            if isinstance(node, MatchFact):
                columns["rowtime"] = Column(rows.length, numbers=rows.times / MILLISECOND)
                return Reference("rowtime")
            if not isinstance(node, Lookup):
                return node
            if node.shift == 0 and isinstance(node.operand, Reference):
                column = rows.columns.get(node.operand.name) or Column(rows.length)
            else:
                column = self._shifted(node, rows, segments, name)
            columns[f" {len(columns)}"] = column
            return Reference(f" {len(columns) - 1}")

        return values_of(_rewritten(tree, rewrite), columns, rows.length)

    def _shifted(self, node: Lookup, rows: Rows, segments: Segments, name: str) -> Column:
        columns = rows.columns
        if reads_labels(node.operand):  # only at the row itself: elsewhere it would not be path-free
            labels = Column(rows.length, codes=np.zeros(rows.length, np.int32), texts=(name,))
            columns = {**read_by(node.operand, columns), LABEL: labels}
        elif (node.operand, node.shift) in rows.shifted:
            return rows.shifted[node.operand, node.shift]
        values = values_of(_with_label(node.operand), columns, rows.length)
        if node.shift:
            values = taken(values, neighbours(segments.bounds, node.shift))
        if columns is rows.columns:
            rows.shifted[node.operand, node.shift] = values
        return values

    # Output

    def shown(self, matches: Matches) -> Shown:
        """The output rows of all matches."""
        clause = self.clause
        sizes = matches.size
        states = self.automaton.states
        variable = np.array([s.variable for s in states], np.int32)[matches.states]
        flat = Flat(matches, variable)
        if not clause.all_rows:
            current = np.where(matches.kind == UNMATCHED, -2, sizes - 1)
            return Shown(matches, flat, np.arange(len(matches)), current)
        visible = ~np.array([s.hidden for s in states], np.bool_)[matches.states]
        empty = (sizes == 0) & ((matches.kind == UNMATCHED) | clause.empty_matches)
        numbers = np.concatenate((flat.match[visible], np.flatnonzero(empty)))
        current = np.concatenate((flat.within[visible], np.where(matches.kind[empty] == UNMATCHED, -2, -1)))
        order = np.argsort(numbers, kind="stable")
        return Shown(matches, flat, numbers[order], current[order])

    def measures(self, shown: Shown, rows: Rows, segments: Segments, wanted: frozenset[str] | None = None) -> dict[str, Column]:
        """A column a measure (or those that are wanted), null for unmatched rows."""
        made: dict[str, Column] = {}
        folds: dict[Folded, Column] = {}
        for name, tree in self.program.measures.trees.items():
            if wanted is not None and name not in wanted:
                continue
            columns: dict[str, Column] = {}

            def rewrite(node: Expr, columns: dict[str, Column] = columns) -> Expr:
                if isinstance(node, Lookup):
                    found = self._looked_up(node, shown, rows, segments)
                elif isinstance(node, Folded):
                    found = self._folded(node, shown, rows, folds)
                elif isinstance(node, MatchFact):
                    found = _fact(node.function, shown, rows)
                else:
                    return node
                columns[f" {len(columns)}"] = found
                return Reference(f" {len(columns) - 1}")

            rewritten = _rewritten(tree, rewrite)
            values = values_of(rewritten, columns, len(shown))
            made[name] = taken(values, np.where(shown.current == -2, -1, np.arange(len(shown))))
        return made

    def picked(self, node: Lookup, shown: Shown, segments: Segments) -> Numbers:
        """The row that each output row's lookup comes to; -1: none."""
        return self._picked(node, shown, segments)[0]

    def _picked(self, node: Lookup, shown: Shown, segments: Segments) -> tuple[Numbers, Numbers]:
        """The row, and the flat row that it was found from."""
        matches, match = shown.matches, shown.match
        at = self._located(node, shown)
        there = at >= 0
        row = matches.start[match] + at - matches.offsets[match]
        if node.shift:
            segment = np.searchsorted(segments.bounds, row, side="right") - 1
            row += node.shift
            there &= (row >= segments.bounds[segment]) & (row < segments.bounds[segment + 1])
        return np.where(there, row, -1), np.where(there, at, 0)

    def _looked_up(self, node: Lookup, shown: Shown, rows: Rows, segments: Segments) -> Column:
        flat, match = shown.flat, shown.match
        picked, safe = self._picked(node, shown, segments)
        if not len(flat.variable):
            return Column(len(shown))
        there = picked >= 0
        if isinstance(node.operand, Reference):
            return taken(rows.columns.get(node.operand.name) or Column(rows.length), picked)
        columns = {
            n.name: taken(rows.columns.get(n.name) or Column(rows.length), picked)
            for n in walk(node.operand)
            if isinstance(n, Reference)
        }
        columns |= self._facts(node.operand, shown, rows, match)
        if reads_labels(node.operand):
            moved = flat.within[safe] + node.shift
            inside = there & (moved >= 0) & (moved < shown.matches.size[match])
            labels = flat.variable[np.where(inside, safe + node.shift, 0)]
            columns[LABEL] = Column(len(shown), codes=np.where(inside, labels, -1).astype(np.int32), texts=self.clause.variables)
        values = values_of(_with_label(node.operand), columns, len(shown))
        return taken(values, np.where(there, np.arange(len(shown)), -1))

    def _located(self, node: Lookup, shown: Shown) -> Numbers:
        """The flat row that each output row's lookup starts from; -1: there is none."""
        if not self.clause.all_rows:  # all rows of a match are visible
            unmatched = shown.matches.kind == UNMATCHED
            found = located(shown.matches.offsets, shown.flat.variable, self._are_members(node.members), node.first, node.back)
            return np.where(unmatched, -1, found)
        counted, before, visible = self._visible(node.members, node.final, shown)
        places = np.flatnonzero(counted)
        rank = np.where(node.first, node.back, visible - 1 - node.back)
        there = (rank >= 0) & (rank < visible)
        found = np.full(len(shown), -1, np.int64)
        found[there] = places[(before + rank)[there]]
        return found

    def _visible(self, members: frozenset[int], final: bool, shown: Shown) -> tuple[Any, Numbers, Numbers]:
        """Which flat rows have one of these labels; by output row: how many of them stand before its match, and are visible."""
        flat, matches = shown.flat, shown.matches
        counted = self._are_members(members)[flat.variable]
        sums = np.concatenate(([0], np.cumsum(counted)))
        begin, end = matches.offsets[:-1][shown.match], matches.offsets[1:][shown.match]
        before, total = sums[begin], sums[end] - sums[begin]
        upto = sums[np.maximum(begin, begin + shown.current + 1)] - before
        return counted, before, (total if final else upto)

    def _are_members(self, members: frozenset[int]) -> npt.NDArray[np.bool_]:
        return np.array([v in members for v in range(len(self.clause.variables))], np.bool_)

    def gathered(self, node: Folded, shown: Shown) -> tuple[Numbers, Numbers]:
        """The rows that an aggregate goes over, one output row after the other, and where those of each begin."""
        counted, before, visible = self._visible(node.members, node.final, shown)
        offsets = np.concatenate(([0], np.cumsum(visible)))
        index = np.arange(offsets[-1]) + np.repeat(before - offsets[:-1], visible)
        return shown.flat.row[np.flatnonzero(counted)[index]], offsets

    def _folded(self, node: Folded, shown: Shown, rows: Rows, known: dict[Folded, Column]) -> Column:
        flat = shown.flat
        counted, _, visible = self._visible(node.members, node.final, shown)
        if node not in known:
            columns = {
                n.name: taken(rows.columns.get(n.name) or Column(rows.length), flat.row)
                for operand in node.operands
                for n in walk(operand)
                if isinstance(n, Reference)
            }
            columns[LABEL] = Column(len(flat.row), codes=flat.variable.astype(np.int32), texts=self.clause.variables)
            for operand in node.operands:
                columns |= self._facts(operand, shown, rows, flat.match)
            operands = [values_of(_with_label(o), columns, len(flat.row)) for o in node.operands]
            known[node] = running(node.function, operands, flat.match, counted)
        begin = shown.matches.offsets[:-1][shown.match]
        last = shown.matches.offsets[1:][shown.match] - 1 if node.final else begin + shown.current
        found = taken(known[node], np.where((visible > 0) & (last >= begin), last, -1))
        if node.function not in ("count", "rows"):
            return found
        numbers = np.zeros(len(shown)) if found.numbers is None else np.nan_to_num(found.numbers)
        return Column(len(shown), numbers=numbers)

    def _facts(self, tree: Expr, shown: Shown, rows: Rows, match: Numbers) -> dict[str, Column]:
        """Facts of these matches that an operand reads; `_with_label` names them."""
        names = {node.function for node in walk(tree) if isinstance(node, MatchFact)}
        of_matches = Shown(shown.matches, shown.flat, np.arange(len(shown.matches)), shown.matches.size - 1)
        return {f" {name}": taken(_fact(name, of_matches, rows), match) for name in names}


@dataclass(frozen=True, eq=False)
class Flat:
    """All rows of all matches, one after the other: the variable, the number of the match, the place in it, the row."""

    matches: Matches
    variable: npt.NDArray[np.int32]

    @cached_property
    def match(self) -> Numbers:
        return np.repeat(np.arange(len(self.matches)), self.matches.size)

    @cached_property
    def within(self) -> Numbers:
        return np.arange(len(self.variable)) - np.repeat(self.matches.offsets[:-1], self.matches.size)

    @cached_property
    def row(self) -> Numbers:
        return np.repeat(self.matches.start, self.matches.size) + self.within


@dataclass(frozen=True, eq=False)
class Shown:
    """Output rows: of which match, and which of its rows is current (-1: an empty match, -2: an unmatched row)."""

    matches: Matches
    flat: Flat
    match: Numbers
    current: Numbers

    def __len__(self) -> int:
        return len(self.match)

    @property
    def row(self) -> Numbers:
        """The row shown; of an empty match or an unmatched row its start."""
        return self.matches.start[self.match] + np.maximum(self.current, 0)


class Stopped(Exception):
    """The run cannot go on from a row; `matches` were made before."""

    def __init__(self, outcome: int, row: int, matches: Matches) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.row = row
        self.matches = matches


def _asks(leaf: Lookup | Folded) -> bool:
    return isinstance(leaf, Lookup) and leaf.shift > 0


def look_ahead_of(test: Any) -> int:
    return 0 if test is None else max((leaf.shift for leaf in test.leaves if isinstance(leaf, Lookup)), default=0)


def _fact(function: str, shown: Shown, rows: Rows) -> Column:
    matches = shown.matches
    if function == "MATCH_NUMBER":
        numbers = np.where(matches.kind == MATCHED, matches.made[:, 3], np.nan)[shown.match]
        return Column(len(shown), numbers=numbers)
    if function == "TIMED_OUT":
        return Column(len(shown), flags=(matches.kind == TIMED_OUT)[shown.match].astype(np.int8))
    last = np.where(matches.size > 0, matches.start + matches.size - 1, -1)
    return taken(Column(rows.length, numbers=rows.times / MILLISECOND), last[shown.match])


def _with_label(tree: Expr) -> Expr:
    def rewrite(node: Expr) -> Expr:
        if isinstance(node, Classifier):
            return Reference(LABEL)
        return Reference(f" {node.function}") if isinstance(node, MatchFact) else node

    return transform(tree, rewrite)


def _rewritten(tree: Expr, rewrite: Any) -> Expr:
    """Top down: what stands inside a lookup is not looked at."""
    new: Expr = rewrite(tree)
    return new if new is not tree else rebuilt(tree, lambda child: _rewritten(child, rewrite))


def range_reasons(program: Program) -> Iterator[str]:
    """Why the rows of a query cannot be cut into ranges of time; nothing: they can."""
    if program.clause.within is None:
        yield "without WITHIN a match may be as long as the table"
    if program.conditions.uses_number:
        yield "a condition reads MATCH_NUMBER(), which depends on all matches before"
    yield from reasons(program)


def rows_around(program: Program) -> tuple[int, int]:
    """So many rows before the first and after the last that a match may take must be there, too; one at least after it, which
    tells that the table does not end there."""
    ahead = [program.measures.look_ahead, *(look_ahead_of(test) for test in program.conditions.tests)]
    return program.back, max(1, *ahead)
