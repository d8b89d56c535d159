"""The functions that filters and `with` clauses know."""

from __future__ import annotations

from dataclasses import replace

from coincide.expr.functions import ANY, FUNCTIONS, NUMBER, TEXT, Function

# A filter sees one event only: functions of events are written without an alias, and `distance` has no second event.
FILTER_FUNCTIONS = {
    name: replace(function, least=function.most - 1, most=function.most - 1)
    if function.aliases and function.most is not None
    else function
    for name, function in FUNCTIONS.items()
    if name != "distance"
}

AGGREGATES = {"count": NUMBER, "sum": NUMBER, "first": ANY, "last": ANY, "join": TEXT, "distinct": NUMBER}
"""Over all events matched under an alias, with the types of their results."""

WITH_FUNCTIONS = FUNCTIONS | {name: Function(name, 1, 1, (ANY,), result, None) for name, result in AGGREGATES.items()}
