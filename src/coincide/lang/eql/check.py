"""What concerns a query as a whole (section 8)."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import Diagnostic, RuleError
from coincide.lang.eql.definition import JOIN, SAMPLE, SEQUENCE, Query


def check_query(query: Query) -> Query:
    """The query itself; RuleError at what is wrong with it."""
    for fault in _faults(query):
        raise RuleError(fault)
    return query


def _faults(query: Query) -> Iterator[Diagnostic]:
    if query.kind in (SEQUENCE, JOIN) and len(query.steps) < 2:
        yield Diagnostic(f"a {query.kind} needs at least two items", query.span)
    if query.kind == SEQUENCE and all(item.missing for item in query.items):
        yield Diagnostic("a sequence needs an item that is not missing", query.span)
    if query.kind == SAMPLE and not query.keys and not any(item.keys for item in query.items):
        yield Diagnostic("a sample needs join keys: 'by'", query.span)
    if query.kind == SAMPLE and not query.items:
        yield Diagnostic("a sample needs an item", query.span)
    if query.maxspan is None:
        for item in query.items:
            if item.missing:
                yield Diagnostic("a missing item needs 'with maxspan'", item.span)
    yield from _unequal_keys(query)


def _unequal_keys(query: Query) -> Iterator[Diagnostic]:
    wanted = len(query.items[0].keys)
    for item in query.everything:
        if len(item.keys) != wanted:
            common = len(query.keys)
            yield Diagnostic(f"expected {common + wanted} join keys, found {common + len(item.keys)}", item.span)
