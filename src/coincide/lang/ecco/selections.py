"""ECCO's selections (5.5) beside aggregates, an object each: how one is written, and what it passes on. Parser, printer, checks,
pictures and random rules are made from these. What is built of them stands in `detection/algebra/construction/chains.py`, under
the same names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    name: str
    by_number: bool = False  # is it written as its number?
    lapses: bool = False  # does it take `over` and `until`, one of them at least, as the end of an instance, and no windows?
    compares: bool = False  # a number stands behind it
    passes: bool = True  # does it pass instances on, unchanged?
    summarises: bool = False  # and with `over` make one of a window instead?


SELECTIONS: dict[str, Selection] = {
    selection.name: selection
    for selection in (
        Selection("FIRST"),
        Selection("LAST", summarises=True),
        Selection("ONCE", lapses=True),
        Selection("NTH", by_number=True),
        Selection("LESS", compares=True, summarises=True),
        Selection("MORE", compares=True, summarises=True),
    )
}
"""All of them, by name."""


def selection_of(name: str) -> Selection:
    """An aggregate makes something new of all instances."""
    return SELECTIONS.get(name) or Selection(name, passes=False)
