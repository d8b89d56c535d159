"""What is accepted but most likely not meant."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import Diagnostic
from coincide.lang.matchrecognize.definition import Alternation, Anchor, Query, Repetition, Variable, walk_pattern


def query_warnings(query: Query) -> list[Diagnostic]:
    return list(_never_reached(query))


def _never_reached(query: Query) -> Iterator[Diagnostic]:
    """Alternatives of the whole pattern behind one that takes every row."""
    pattern = query.clause.pattern
    if not isinstance(pattern, Alternation):
        return
    defined = {condition.variable for condition in query.clause.conditions}
    taker: Variable | None = None
    for option in pattern.options:
        first = next((node for node in walk_pattern(option) if isinstance(node, Variable)), None)
        if taker is not None and first is not None:
            message = f"'{first.name}' is never reached: '{taker.name}' before it takes every row"
            yield Diagnostic(message, first.span, "warning", name="never-reached")
        if taker is None and isinstance(option, Variable) and option.name not in defined:
            taker = option


def streaming_warnings(query: Query) -> Iterator[Diagnostic]:
    """What matters where the input has no end."""
    clause = query.clause
    nodes = list(walk_pattern(clause.pattern))
    if clause.within is None and any(isinstance(node, Repetition) and node.most is None for node in nodes):
        message = "no WITHIN: a match can grow for ever and its rows are kept"
        yield Diagnostic(message, clause.pattern_span, "warning", name="unbounded")
    for node in nodes:
        if isinstance(node, Anchor) and node.end:
            yield Diagnostic("the query needs the end of its input", node.span, "warning", name="needs-end")
