"""Calls of functions that the engine around us has (MR-46): it computes them for every row beforehand, as columns."""

from __future__ import annotations

from dataclasses import replace

from coincide.expr.tree import Expr, Reference
from coincide.lang.matchrecognize.definition import Foreign, Query
from coincide.lang.matchrecognize.parse import parse_clause, parse_query
from coincide.source import SourceText
from coincide.syntax import rebuilt, walk
from coincide.tables.names import fitted

COMPUTED = "__computed_"
"""Before the number of a call, in the name of its column. Such columns are not given out."""


def parsed(source: SourceText) -> tuple[Query, dict[str, Foreign]]:
    """A query, or that of a clause alone, with columns in place of calls, and the calls by the names of their columns."""
    parse = parse_query if source.text.lstrip()[:6].upper() == "SELECT" else parse_clause
    query = parse(source, foreign=True)
    calls: dict[Foreign, str] = {}

    def rewrite(node: Expr) -> Expr:
        if not isinstance(node, Foreign):
            return rebuilt(node, rewrite)
        alias = next((n.alias for n in walk(node) if isinstance(n, Reference)), None)
        name = calls.setdefault(_of_a_row(node), f"{COMPUTED}{len(calls)}")
        return Reference(name, alias, span=node.span)

    clause = query.clause
    measures = tuple(replace(m, value=rewrite(m.value)) for m in clause.measures)
    conditions = tuple(replace(c, test=rewrite(c.test)) for c in clause.conditions)
    computed = replace(query, clause=replace(clause, measures=measures, conditions=conditions))
    return computed, {name: call for call, name in calls.items()}


def fitted_query(source: SourceText, names: list[str]) -> Query:
    """A query, with columns in place of calls, over a table with these columns, whose names are resolved without heed of case."""
    return fitted(parsed(source)[0], names)


def _of_a_row(node: Foreign) -> Foreign:
    """Whatever variable it speaks of, it is computed once."""

    def rewrite(inner: Expr) -> Expr:
        return Reference(inner.name, span=inner.span) if isinstance(inner, Reference) else rebuilt(inner, rewrite)

    found = rewrite(node)
    assert isinstance(found, Foreign)
    return found
