"""What is accepted but most likely not meant."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import Diagnostic
from coincide.expr.tree import Reference
from coincide.lang.matchrecognize.contradictions import is_never_true
from coincide.lang.matchrecognize.definition import Alternation, Anchor, Classifier, Query, Repetition, Variable
from coincide.syntax import walk

NAMING = (Reference, Classifier)
"""What names a variable or subset in an expression."""


def warnings_of(query: Query) -> list[Diagnostic]:
    return [*_never_reached(query), *_repeated(query), *_never_true(query), *_unused_subsets(query)]


def _never_reached(query: Query) -> Iterator[Diagnostic]:
    """Alternatives of the whole pattern behind one that takes every row."""
    pattern = query.clause.pattern
    if not isinstance(pattern, Alternation):
        return
    defined = {condition.variable for condition in query.clause.conditions}
    taker: Variable | None = None
    for option in pattern.options:
        first = next((node for node in walk(option) if isinstance(node, Variable)), None)
        if taker is not None and first is not None:
            message = f"'{first.name}' is never reached: '{taker.name}' before it takes every row"
            yield Diagnostic(message, first.span, "warning", name="never-reached")
        if taker is None and isinstance(option, Variable) and option.name not in defined:
            taker = option


def _repeated(query: Query) -> Iterator[Diagnostic]:
    """Alternatives that stand before themselves: whatever the second could do, the first has tried."""
    for node in walk(query.clause.pattern):
        options = node.options if isinstance(node, Alternation) else ()
        for number, option in enumerate(options):
            if option in options[:number]:
                first = next((n for n in walk(option) if isinstance(n, Variable)), option)
                name = f"'{first.name}'" if isinstance(first, Variable) else "an alternative"
                message = f"{name} is never reached: the same alternative stands before it"
                yield Diagnostic(message, first.span, "warning", name="never-reached")


def _never_true(query: Query) -> Iterator[Diagnostic]:
    for condition in query.clause.conditions:
        if is_never_true(condition.test):
            message = f"the condition of '{condition.variable}' is never true"
            yield Diagnostic(message, condition.span, "warning", name="never-true")


def _unused_subsets(query: Query) -> Iterator[Diagnostic]:
    clause = query.clause
    trees = [*(m.value for m in clause.measures), *(c.test for c in clause.conditions)]
    named = {n.alias if isinstance(n, Reference) else n.variable for t in trees for n in walk(t) if isinstance(n, NAMING)}
    for subset in clause.subsets:
        if subset.name not in {*named, clause.skip.variable}:
            yield Diagnostic(f"the subset '{subset.name}' is never used", subset.span, "warning", name="unused")


def endless_faults(query: Query) -> Iterator[Diagnostic]:
    """Why a query cannot run where the input has no end."""
    clause = query.clause
    if not clause.by_time:
        message = "streaming needs ORDER BY the column of the watermark, ascending"
        hint = "ORDER BY time, or no ORDER BY: other orders are known only when all rows are there"
        yield Diagnostic(message, clause.order[0].span, hint=hint)


def streaming_warnings(query: Query) -> Iterator[Diagnostic]:
    """What matters where the input has no end."""
    clause = query.clause
    nodes = list(walk(clause.pattern))
    if clause.within is None and any(isinstance(node, Repetition) and node.most is None for node in nodes):
        message = "no WITHIN: a match can grow for ever and its rows are kept"
        yield Diagnostic(message, clause.pattern_span, "warning", name="unbounded")
    for node in nodes:
        if isinstance(node, Anchor) and node.end:
            yield Diagnostic("the query needs the end of its input", node.span, "warning", name="needs-end")
    for maker, how in query.feeders:
        if how == "rows":
            message = f"'{query.name}' reads '{maker}': on a stream both run in one task"
            yield Diagnostic(message, query.span, "warning", name="one-task")
