"""AFTER MATCH SKIP: where the next match may begin, an object for each of its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coincide.detection.rowpattern.layout import FIRST, LAST, NEXT, PAST
from coincide.detection.rowpattern.measures import Match
from coincide.errors import Diagnostic, RunError
from coincide.lang.matchrecognize.definition import Clause, Skip


@dataclass(frozen=True)
class Skipping:
    next_start: Callable[[Clause, Match], int]
    kernel: int
    depends: bool = True  # on the match


def _at_row(chosen: Callable[[Sequence[int]], int]) -> Callable[[Clause, Match], int]:
    """At one of the rows of a variable, which are counted from the start of the match."""

    def next_start(clause: Clause, match: Match) -> int:
        names = clause.variables
        rows = match.positions(frozenset(names.index(name) for name in clause.members(clause.skip.variable or "")))
        if not rows or chosen(rows) == 0:
            raise nowhere(clause.skip, bool(rows))
        return match.start + chosen(rows)

    return next_start


SKIPS: dict[str, Skipping] = {
    "PAST": Skipping(lambda clause, match: match.end, PAST),
    "NEXT": Skipping(lambda clause, match: match.start + 1, NEXT, depends=False),
    "FIRST": Skipping(_at_row(min), FIRST),
    "LAST": Skipping(_at_row(max), LAST),
}
"""By the words of `lang/matchrecognize/definition.py`."""


def nowhere(skip: Skip, has_row: bool) -> RunError:
    """The run stops: it would go on where it is, or without a row to go on from."""
    reason = "that is the first row of the match" if has_row else f"the match has no row of '{skip.variable}'"
    return RunError(Diagnostic(f"AFTER MATCH SKIP TO {skip.variable}: {reason}", skip.span))
