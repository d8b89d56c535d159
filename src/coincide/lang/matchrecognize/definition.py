"""Definitions of SQL row patterns: queries with MATCH_RECOGNIZE, as frozen data. Spans do not count in comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from coincide.expr.tree import Expr
from coincide.source import Span
from coincide.syntax import Node, walk


@dataclass(frozen=True)
class Placed:
    """Something with a place in the source."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


# Expressions that only row patterns have. `Reference.alias` is the pattern variable (outside the clause: the table).


@dataclass(frozen=True)
class Navigation(Expr):
    """FIRST, LAST, PREV or NEXT. The operand of PREV and NEXT may be a FIRST or LAST."""

    function: str
    operand: Expr
    offset: int
    semantics: str = ""  # RUNNING, FINAL or neither


@dataclass(frozen=True)
class Aggregate(Expr):
    """An aggregate over rows of a match; `count(*)` has no arguments, `count(v.*)` is a count of classifiers."""

    function: str  # in lower case
    arguments: tuple[Expr, ...] = ()
    semantics: str = ""


@dataclass(frozen=True)
class Classifier(Expr):
    """The variable that a row is mapped to."""

    variable: str | None = None


@dataclass(frozen=True)
class MatchFact(Expr):
    """MATCH_NUMBER(), MATCH_ROWTIME() or TIMED_OUT()."""

    function: str


@dataclass(frozen=True)
class Foreign(Expr):
    """A call of a function of the engine around us, whose arguments are columns of one row."""

    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Case(Expr):
    """CASE; with a subject, the tests are values that it is compared with."""

    subject: Expr | None
    tests: tuple[Expr, ...]
    values: tuple[Expr, ...]
    otherwise: Expr | None = None


@dataclass(frozen=True)
class Cast(Expr):
    operand: Expr
    type: str  # in lower case, without a length


# Patterns


@dataclass(frozen=True)
class Pattern(Node["Pattern"]):
    """A node of a pattern. Every class below is final."""


@dataclass(frozen=True)
class Variable(Pattern):
    name: str


@dataclass(frozen=True)
class Empty(Pattern):
    """`()`"""


@dataclass(frozen=True)
class Anchor(Pattern):
    """`^`, or `$` where it is the end."""

    end: bool


@dataclass(frozen=True)
class Concatenation(Pattern):
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Alternation(Pattern):
    options: tuple[Pattern, ...]


@dataclass(frozen=True)
class Permutation(Pattern):
    members: tuple[Pattern, ...]


@dataclass(frozen=True)
class Exclusion(Pattern):
    body: Pattern


@dataclass(frozen=True)
class Repetition(Pattern):
    body: Pattern
    least: int
    most: int | None
    reluctant: bool = False


# Clauses and queries


@dataclass(frozen=True)
class Column(Placed):
    name: str


@dataclass(frozen=True)
class OrderKey(Placed):
    name: str
    descending: bool = False
    nulls_first: bool = True  # by default null is smaller than anything


@dataclass(frozen=True)
class Measure(Placed):
    name: str
    value: Expr


@dataclass(frozen=True)
class Skip(Placed):
    """PAST, NEXT, FIRST or LAST; the last two of a variable."""

    to: str = "PAST"
    variable: str | None = None


@dataclass(frozen=True)
class Subset(Placed):
    name: str
    members: tuple[Variable, ...]


@dataclass(frozen=True)
class Condition(Placed):
    variable: str
    test: Expr


@dataclass(frozen=True)
class Clause(Placed):
    """What stands in the parentheses of MATCH_RECOGNIZE."""

    partition: tuple[Column, ...]
    order: tuple[OrderKey, ...]
    measures: tuple[Measure, ...]
    all_rows: bool
    empty_matches: bool  # are they shown?
    unmatched_rows: bool
    timed_out: bool
    skip: Skip
    pattern: Pattern
    within: int | None  # microseconds
    subsets: tuple[Subset, ...]
    conditions: tuple[Condition, ...]
    within_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    timed_out_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)
    pattern_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Of the pattern, in the order of their first appearance."""
        return tuple(dict.fromkeys(node.name for node in walk(self.pattern) if isinstance(node, Variable)))

    def members(self, name: str | None) -> frozenset[str]:
        """The variables that a name stands for: itself, those of a subset, all for None."""
        if name is None:
            return frozenset(self.variables)
        subset = next((s for s in self.subsets if s.name == name), None)
        return frozenset({name}) if subset is None else frozenset(m.name for m in subset.members)

    @property
    def by_time(self) -> bool:
        """Do rows stand in order of time, before all else?"""
        return not self.order or (self.order[0].name == "time" and not self.order[0].descending)


@dataclass(frozen=True)
class Item(Placed):
    """A column of the SELECT list."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Source(Placed):
    table: str
    where: Expr | None = None
    alias: str | None = None

    @property
    def known_as(self) -> str:
        return self.table if self.alias is None else self.alias


@dataclass(frozen=True)
class Query(Placed):
    """One statement. `items` is None for `*`; the span is that of the name."""

    name: str
    is_view: bool
    items: tuple[Item, ...] | None
    source: Source
    clause: Clause
    alias: str | None = None
    where: Expr | None = None
    star_of: Column | None = field(default=None, compare=False, repr=False)  # the table before `.*`
    feeders: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """Rules that make rows of its table, when all rules are known. They tell how far back their next rows may lie: `rows` another
    query, which says so itself; `now` one whose detections end when they are made; `end` one that may go back to any time."""
    is_read: bool = field(default=False, compare=False, repr=False)  # by another query


@dataclass(frozen=True)
class File:
    queries: tuple[Query, ...]


HELD = " held"
"""After the name of a query: the type of what it tells to queries that read it. No event has such a type."""

ENVELOPE = ("type", "id", "time", "from", "space")
"""Fields of every event that no column of the output can have as its name."""
