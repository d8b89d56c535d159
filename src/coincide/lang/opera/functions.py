"""The functions that filters and `with` clauses know."""

from __future__ import annotations

from coincide.expr.functions import ANY, FUNCTIONS, NUMBER, TEXT, Function

AGGREGATES = {"count": NUMBER, "sum": NUMBER, "first": ANY, "last": ANY, "join": TEXT, "distinct": NUMBER}
"""Over all events matched under an alias, with the types of their results."""

WITH_FUNCTIONS = FUNCTIONS | {name: Function(name, 1, 1, (ANY,), result, None) for name, result in AGGREGATES.items()}
