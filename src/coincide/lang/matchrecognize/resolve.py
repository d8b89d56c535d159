"""Names inside one query, checked in the order of section 10."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coincide.adapters.mapping import is_type_name
from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.tree import Expr, Reference
from coincide.lang.matchrecognize.definition import ENVELOPE, Classifier, Clause, Column, Item, MatchFact, Measure, Query
from coincide.source import Span
from coincide.syntax import walk


def check_query(query: Query, plain_table: bool = False) -> Query:
    """The query, if all its names are known. Over a plain table the output has no envelope."""
    clause = query.clause
    if query.source.where is not None:
        _check_tables(query.source.where, (query.source.table,))
    _check_subsets(clause)
    _check_defined(clause)
    if clause.skip.variable is not None:
        _check_variable(clause, clause.skip.variable, clause.skip.span)
    for measure in clause.measures:
        _check_variables(clause, measure.value)
    for condition in clause.conditions:
        _check_variables(clause, condition.test)
        _check_not_timed_out(condition.test)
    if clause.within is not None and not clause.by_time and not plain_table:
        raise error("WITHIN needs ORDER BY time, ascending, as the first key", clause.within_span)
    if clause.timed_out and clause.within is None:
        raise error("WITH TIMED OUT MATCHES needs WITHIN", clause.timed_out_span)
    if not plain_table:
        _check_output_type(query)
    _check_columns(query, plain_table)
    return query


def _check_subsets(clause: Clause) -> None:
    taken: set[str] = set()
    for subset in clause.subsets:
        if subset.name in clause.variables:
            raise error(f"'{subset.name}' is already a pattern variable", subset.span)
        if subset.name in taken:
            raise error(f"'{subset.name}' is already a subset", subset.span)
        taken.add(subset.name)
        for member in subset.members:
            _check_of_pattern(clause, member.name, member.span)


def _check_of_pattern(clause: Clause, name: str, span: Span | None) -> None:
    if name not in clause.variables:
        raise error(f"'{name}' is not a variable of the pattern", span, nearest(name, clause.variables))


def _check_defined(clause: Clause) -> None:
    taken: set[str] = set()
    for condition in clause.conditions:
        _check_of_pattern(clause, condition.variable, condition.span)
        if condition.variable in taken:
            raise error(f"'{condition.variable}' is defined twice", condition.span)
        taken.add(condition.variable)


def _check_variable(clause: Clause, name: str, span: Span | None) -> None:
    known = (*clause.variables, *(s.name for s in clause.subsets))
    if name not in known:
        raise error(f"'{name}' is neither a variable of the pattern nor a subset", span, nearest(name, known))


def _check_variables(clause: Clause, tree: Expr) -> None:
    for node in walk(tree):
        variable = node.alias if isinstance(node, Reference) else node.variable if isinstance(node, Classifier) else None
        if variable is not None:
            _check_variable(clause, variable, node.span)


def _check_not_timed_out(tree: Expr) -> None:
    for node in walk(tree):
        if isinstance(node, MatchFact) and node.function == "TIMED_OUT":
            raise error("TIMED_OUT() is for MEASURES only", node.span)


def _check_output_type(query: Query) -> None:
    if not is_type_name(query.name):
        raise error(f"'{query.name}' cannot be the name of an event type", query.span)
    if query.name == "events":
        raise error("'events' is the table of all external events", query.span)


def _check_columns(query: Query, plain_table: bool) -> None:
    clause = query.clause
    columns: tuple[Column | Measure, ...] = (*clause.partition, *clause.measures)
    _check_distinct(columns)
    if query.items is None and not plain_table:
        _check_envelope(columns)
    if query.star_of is not None and query.star_of.name != query.alias:
        raise error(f"unknown table '{query.star_of.name}'", query.star_of.span)
    known = None if clause.all_rows else [c.name for c in columns]
    tables = () if query.alias is None else (query.alias,)
    for item in query.items or ():
        _check_tables(item.value, tables, known)
    if query.items is not None:
        _check_distinct(query.items)
        if not plain_table:
            _check_envelope(query.items)
    if query.where is not None:
        _check_tables(query.where, tables, known)


def _check_distinct(columns: Sequence[Column | Measure | Item]) -> None:
    taken: set[str] = set()
    for column in columns:
        if column.name in taken:
            raise error(f"the column '{column.name}' is defined twice", column.span)
        taken.add(column.name)


def _check_envelope(columns: Iterable[Column | Measure | Item]) -> None:
    for column in columns:
        if column.name in ENVELOPE:
            message = f"'{column.name}' is a field of every event: give the column another name with AS"
            raise error(message, column.span)


def _check_tables(tree: Expr, tables: Sequence[str], columns: Sequence[str] | None = None) -> None:
    for node in walk(tree):
        if not isinstance(node, Reference):
            continue
        if node.alias is not None and node.alias not in tables:
            raise error(f"unknown table '{node.alias}'", node.span, nearest(node.alias, tables))
        if columns is not None and node.name not in columns:
            raise error(f"MATCH_RECOGNIZE gives no column '{node.name}'", node.span, nearest(node.name, columns))


def error(message: str, span: Span | None, hint: str | None = None) -> RuleError:
    return RuleError(Diagnostic(message, span, hint=hint))
