"""Units of times that are plain numbers, told by what they would mean."""

from __future__ import annotations

from coincide.adapters.mapping import PER_SECOND
from coincide.errors import Diagnostic
from coincide.model.stamp import EPOCH

YEAR = 31_556_952_000_000  # microseconds
PLAUSIBLE = (20 * YEAR, 80 * YEAR)
"""From about 1990 to 2050: when events that people have took place."""


def likely_unit(earliest: int, latest: int, unit: str) -> str | None:
    """The unit that the numbers seem to have, where the one that they were taken for puts all of them into 1970 or far into the
    future; None: the unit is plausible, or none is. Times are microseconds."""
    if not (earliest >= 0 and latest < YEAR) and earliest < 10 * PLAUSIBLE[1]:
        return None
    return next((other for other in PER_SECOND if other != unit and _fits(earliest, latest, unit, other)), None)


def time_warning(earliest: int, latest: int, unit: str) -> Diagnostic | None:
    """Times in the wrong unit are no error, and nearly always a mistake."""
    if (likely := likely_unit(earliest, latest, unit)) is None:
        return None
    first, last = year_of(earliest), year_of(latest)
    years = f"in {first}" if first == last else f"between {first} and {last}"
    hint = f"they look like {likely} since 1970: --time-unit {likely}, or in Python mapping=FieldMapping(unit={likely!r})"
    return Diagnostic(f"all times lie {years}, if they are taken as {unit}", severity="warning", hint=hint)


def _fits(earliest: int, latest: int, unit: str, other: str) -> bool:
    """Are all of them plausible in the other unit?"""
    low, high = (moment * PER_SECOND[unit] // PER_SECOND[other] for moment in (earliest, latest))
    return PLAUSIBLE[0] <= low and high <= PLAUSIBLE[1]


def unit_of(numbers: list[float]) -> str | None:
    """The unit in which all of these numbers are plausible times since 1970."""
    if not numbers:
        return None
    for unit, per_second in PER_SECOND.items():
        low, high = (number / per_second * 1_000_000 for number in (min(numbers), max(numbers)))
        if PLAUSIBLE[0] <= low and high <= PLAUSIBLE[1]:
            return unit
    return None


def year_of(microseconds: int) -> int:
    return EPOCH.year + microseconds // YEAR
