"""Random patterns over random rows against a literal evaluation of section 4 of the specification, which is kept here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coincide
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
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
from coincide.lang.matchrecognize.print import pattern_text
from coincide.testing.check import check_detector, detections

Labels = tuple[tuple[str, bool], ...]


class Undecided(Exception):
    """Something asks for a row that is not there."""


class TooLong(Exception):
    """The literal evaluation takes too many steps."""


@dataclass
class Literal:
    """Section 4, word by word. `values` and `times` are those of the rows; `conditions` see (evaluation, position, labels)."""

    values: list[int]
    times: list[int]
    conditions: dict[str, Callable[[Literal, int, Labels], bool]]
    within: int | None = None
    closed: bool = True
    clock: int = 0  # all before it has passed
    start: int = 0
    cut: list[Labels] = field(default_factory=list)
    steps: int = 0

    def paths(self, p: Pattern, pos: int, so_far: Labels, hidden: bool = False) -> Iterator[tuple[int, Labels]]:
        match p:
            case Variable(name):
                if self.can_take(pos, so_far):
                    labels = (*so_far, (name, hidden))
                    test = self.conditions.get(name)
                    if test is None or test(self, pos, labels):
                        yield pos + 1, labels
            case Empty():
                yield pos, so_far
            case Anchor(True):
                if pos == len(self.values) and not self.closed:
                    raise Undecided
                if pos == len(self.values):
                    yield pos, so_far
            case Anchor(False):
                if pos == 0:
                    yield pos, so_far
            case Concatenation(parts):
                yield from self.sequence(parts, pos, so_far, hidden)
            case Alternation(options):
                for option in options:
                    yield from self.paths(option, pos, so_far, hidden)
            case Permutation(members):
                for order in itertools.permutations(members):
                    yield from self.sequence(order, pos, so_far, hidden)
            case Exclusion(body):
                yield from self.paths(body, pos, so_far, True)
            case Repetition():
                yield from self.rounds(p, 0, pos, so_far, hidden)

    def sequence(self, parts: tuple[Pattern, ...], pos: int, so_far: Labels, hidden: bool) -> Iterator[tuple[int, Labels]]:
        if not parts:
            yield pos, so_far
            return
        for there, labels in self.paths(parts[0], pos, so_far, hidden):
            yield from self.sequence(parts[1:], there, labels, hidden)

    def rounds(self, p: Repetition, k: int, pos: int, so_far: Labels, hidden: bool) -> Iterator[tuple[int, Labels]]:
        if k >= p.least and p.reluctant:
            yield pos, so_far
        if p.most is None or k < p.most:
            for there, labels in self.paths(p.body, pos, so_far, hidden):
                if there > pos or k < p.least:
                    yield from self.rounds(p, k + 1, there, labels, hidden)
        if k >= p.least and not p.reluctant:
            yield pos, so_far

    def can_take(self, pos: int, so_far: Labels) -> bool:
        self.steps += 1
        if self.steps > 20_000:
            raise TooLong
        bound = None if self.within is None else self.times[self.start] + self.within
        late = bound is not None and (self.times[pos] > bound if pos < len(self.times) else bound < self.clock)
        if late:
            self.cut.append(so_far)
            return False
        if pos < len(self.values):
            return True
        if self.closed:
            return False
        raise Undecided

    def ask(self, pos: int) -> int | None:
        """The value of a row, as NEXT asks for it."""
        if 0 <= pos < len(self.values):
            return self.values[pos]
        if pos >= len(self.values) and not self.closed:
            raise Undecided
        return None

    def rows_of(self, name: str | None, labels: Labels) -> list[int]:
        return [self.values[self.start + n] for n, (label, _) in enumerate(labels) if name in (None, label)]

    def scan(self, pattern: Pattern, timed_out: bool, to_next: bool) -> list[tuple[Any, ...]]:
        """(number, start, labels) of matches and, where they are asked for, of those timed out (without a number)."""
        made: list[tuple[Any, ...]] = []
        s, number = 0, 1
        while s < len(self.values):
            self.start, self.cut, self.steps, self.number = s, [], 0, number
            try:
                found = next(self.paths(pattern, s, ()), None)
            except Undecided:
                return made
            if found is not None:
                made.append((number, s, tuple(name for name, _ in found[1])))
                number += 1
            elif timed_out and (cut := next((labels for labels in self.cut if labels), None)) is not None:
                made.append((None, s, tuple(name for name, _ in cut)))
            s = s + 1 if found is None or found[0] == s or to_next else found[0]
        return made


CONDITIONS: dict[str, Callable[[str], Callable[[Literal, int, Labels], bool]]] = {}


def compared(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else (a > b) - (a < b)


for number in range(3):
    CONDITIONS[f"v = {number}"] = lambda own, number=number: lambda e, pos, labels: e.values[pos] == number
    CONDITIONS[f"v >= {number}"] = lambda own, number=number: lambda e, pos, labels: e.values[pos] >= number
CONDITIONS["v > PREV(v)"] = lambda own: lambda e, pos, labels: compared(e.values[pos], e.ask(pos - 1)) == 1
CONDITIONS["v <> PREV(v, 2)"] = lambda own: lambda e, pos, labels: compared(e.values[pos], e.ask(pos - 2)) in (1, -1)
CONDITIONS["v < NEXT(v)"] = lambda own: lambda e, pos, labels: compared(e.values[pos], e.ask(pos + 1)) == -1
CONDITIONS["COUNT(A.*) < 3"] = lambda own: lambda e, pos, labels: len(e.rows_of("A", labels)) < 3
CONDITIONS["SUM(v) <= 4"] = lambda own: lambda e, pos, labels: sum(e.rows_of(None, labels)) <= 4
CONDITIONS["LAST(A.v) = v"] = lambda own: lambda e, pos, labels: (e.rows_of("A", labels) or [None])[-1] == e.values[pos]
CONDITIONS["FIRST(v) <= v"] = lambda own: lambda e, pos, labels: e.values[e.start] <= e.values[pos]
CONDITIONS["AVG(v) >= 1 OR MAX(A.v) IS NULL"] = lambda own: (
    lambda e, pos, labels: sum(e.rows_of(None, labels)) >= len(labels) or not e.rows_of("A", labels)
)
CONDITIONS["v <= LAST(v, 1) + MIN(v)"] = lambda own: (
    lambda e, pos, labels: len(labels) > 1 and e.values[pos] <= e.values[pos - 1] + min(e.rows_of(None, labels))
)
CONDITIONS["NEXT(FIRST(v), 1) IN (0, v)"] = lambda own: lambda e, pos, labels: e.ask(e.start + 1) in (0, e.values[pos])
CONDITIONS["MATCH_NUMBER() < 2"] = lambda own: lambda e, pos, labels: e.number < 2
CONDITIONS["LAST(CLASSIFIER(), 1) = 'B'"] = lambda own: lambda e, pos, labels: len(labels) > 1 and labels[-2][0] == "B"
CONDITIONS["PREV(CLASSIFIER()) = 'A'"] = lambda own: lambda e, pos, labels: len(labels) > 1 and labels[-2][0] == "A"


def patterns() -> st.SearchStrategy[Pattern]:
    leaves = st.one_of(
        st.sampled_from("ABC").map(Variable), st.sampled_from("ABC").map(Variable), st.just(Empty()), st.booleans().map(Anchor)
    )

    def larger(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (2, None), (0, 2), (1, 3)])
        return st.one_of(
            several.map(Concatenation),
            several.map(Concatenation),
            several.map(Alternation),
            several.map(Permutation),
            inner.map(Exclusion),
            st.tuples(inner, bounds, st.booleans()).map(lambda t: Repetition(t[0], *t[1], t[2])),
        )

    return st.recursive(leaves, larger, max_leaves=6)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, ...]:
    defined = {name: draw(st.sampled_from(sorted(CONDITIONS))) for name in "ABC" if draw(st.booleans())}
    values = draw(st.lists(st.integers(0, 2), min_size=1, max_size=8))
    gaps = draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values)))
    within = draw(st.one_of(st.none(), st.integers(0, 6)))
    timed_out = within is not None and draw(st.booleans())
    return draw(patterns()), defined, values, list(itertools.accumulate(gaps)), within, timed_out, draw(st.booleans())


def query_text(pattern: Pattern, defined: dict[str, str], within: int | None, timed_out: bool, to_next: bool) -> str:
    used = {name for name in "ABC" if f"'{name}'" in repr(pattern)}
    known = {name: test for name, test in defined.items() if name in used and ("A." not in test or "A" in used)}
    if not known and used:
        known = {min(used): "true"}
    return f"""SELECT * FROM t MATCH_RECOGNIZE (MEASURES ARRAY_AGG(CLASSIFIER()) AS path, MATCH_NUMBER() AS m
        ONE ROW PER MATCH {"WITH TIMED OUT MATCHES" if timed_out else ""}
        AFTER MATCH SKIP {"TO NEXT ROW" if to_next else "PAST LAST ROW"}
        PATTERN ({pattern_text(pattern)}) {"" if within is None else f"WITHIN {within} ms"}
        DEFINE {", ".join(f"{name} AS {test}" for name, test in known.items())}) AS m"""


def is_testable(problem: tuple[Any, ...]) -> bool:
    pattern, defined, *_ = problem
    return any(f"'{name}'" in repr(pattern) for name in "ABC") and not (
        any("A." in test for test in defined.values()) and "'A'" not in repr(pattern)
    )


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems().filter(is_testable), st.lists(st.integers(0, 8), max_size=2))
def test_equal_to_the_literal_evaluation(problem: tuple[Any, ...], cuts: list[int]) -> None:
    pattern, defined, values, times, within, timed_out, to_next = problem
    rules = coincide.loads(query_text(pattern, defined, within, timed_out, to_next), "matchrecognize")
    conditions = {name: CONDITIONS[test](name) for name, test in defined.items()}
    records = [{"type": "t", "time": time, "v": value} for time, value in zip(times, values, strict=True)]
    events = [event_of(record, DEFAULT, n + 1) for n, record in enumerate(records)]
    for closed in (True, False):
        clock = times[-1] + closed
        literal = Literal(values, times, conditions, within, closed, clock)
        try:
            expected = literal.scan(pattern, timed_out, to_next)
        except (TooLong, RecursionError):
            return
        made = check_detector(rules, events, cuts) if closed else detections(rules, events, closed=False)
        found = [(d.get("m"), int(d["from"][0]) - 1, tuple(d.get("path", ()))) for d in made]  # type: ignore[index, arg-type]
        assert found == expected, (query_text(pattern, defined, within, timed_out, to_next), values, times, closed)


ROW_CONDITIONS = sorted(text for text in CONDITIONS if text.startswith("v ") and "PREV" not in text)
"""With these nothing is kept of a partition that has no undecided row: it is forgotten."""


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    pattern = draw(st.sampled_from(["A+", "A B", "A B?", "A* B", "(A | B) C", "A+ B+", "A B{2} $"]))
    conditions = ", ".join(f"{name} AS {draw(st.sampled_from(ROW_CONDITIONS))}" for name in "ABC" if name in pattern)
    within = draw(st.sampled_from(["", "WITHIN 0 ms", "WITHIN 2 ms", "WITHIN 5 ms"]))
    text = f"""SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k MEASURES ARRAY_AGG(CLASSIFIER()) AS path
        AFTER MATCH SKIP {draw(st.sampled_from(["TO NEXT ROW", "PAST LAST ROW"]))}
        PATTERN ({pattern}) {within} DEFINE {conditions}) AS m"""
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.integers(0, 2)), min_size=6, max_size=20))
    times = itertools.accumulate(gap for gap, _, _ in rows)
    return text, [{"type": "t", "time": time, "k": k, "v": v} for time, (_, k, v) in zip(times, rows, strict=True)]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(partitioned(), st.lists(st.integers(0, 20), max_size=2))
def test_partitions_have_the_same_turn_at_the_end_however_the_rows_come(
    problem: tuple[str, list[dict[str, Any]]], cuts: list[int]
) -> None:
    text, records = problem
    check_detector(coincide.loads(text, "matchrecognize"), [event_of(r, DEFAULT, n + 1) for n, r in enumerate(records)], cuts)


def test_values_of_several_types_go_the_interpreters_way() -> None:
    """The compiled loop takes columns of one type; a batch with others is no worse off, and the next one goes on from it."""
    text = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY time MEASURES COUNT(*) AS n, LAST(v) AS v
        PATTERN (A B+) DEFINE B AS v > LAST(A.v) OR v = FIRST(v)) AS m"""
    values = [1, 2, "x", "x", "y", 3, 3, 4, True, True, 1, 5, 6, 2]
    events = [event_of({"type": "t", "time": n, "v": v}, DEFAULT, n + 1) for n, v in enumerate(values)]
    assert len(check_detector(coincide.loads(text, "matchrecognize"), events, [5, 9])) == 5
