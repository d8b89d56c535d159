"""ECCO's aggregates (5.5), an object each: how one is written, and what its result is. Parser, checks, pictures and random rules
are made from these. What aggregates do stands in `detection/algebra/aggregates.py`, under the same names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Aggregate:
    name: str
    attribute: str  # that holds its result
    needs_argument: bool = True
    selects: bool = False  # is its result one of the argument's values?


AGGREGATES: dict[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        Aggregate("AVG", "avg"),
        Aggregate("MIN", "min", selects=True),
        Aggregate("MAX", "max", selects=True),
        Aggregate("SUM", "sum", needs_argument=False),
        Aggregate("COUNT", "count", needs_argument=False),
        Aggregate("DISTINCT", "distinct"),
    )
}
"""All aggregates, by name."""


def result_of(name: str) -> str | None:
    """The attribute that holds the result; None: it is not an aggregate."""
    return AGGREGATES[name].attribute if name in AGGREGATES else None
