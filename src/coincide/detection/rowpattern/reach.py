"""How far the match of a row reaches: whether rows can be cut into ranges of time that are matched each on its own."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.detection.rowpattern.columnar import look_ahead_of, reasons
from coincide.detection.rowpattern.partition import Program


def range_reasons(program: Program) -> Iterator[str]:
    """Why the rows of a query cannot be cut into ranges of time; nothing: they can."""
    if program.clause.within is None:
        yield "without WITHIN a match may be as long as the table"
    if program.conditions.uses_number:
        yield "a condition reads MATCH_NUMBER(), which depends on all matches before"
    yield from reasons(program)


def rows_around(program: Program) -> tuple[int, int]:
    """So many rows before the first and after the last that a match may take must be there, too; one at least after it, which
    tells that the table does not end there."""
    ahead = [program.measures.look_ahead, *(look_ahead_of(test) for test in program.conditions.tests)]
    return program.back, max(1, *ahead)
