"""Spatial restriction `E @ S` over columns: as an expression, where there is one that says the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from coincide.detection.algebra.occurrence import of_event
from coincide.detection.algebra.space.places import place_test
from coincide.expr.tree import Call, Expr, In, Literal, Reference
from coincide.expr.vector import Rows, holds
from coincide.lang.ecco.definition import Place
from coincide.model.event import Event


def located(place: Place, rows: Rows, events: Callable[[], list[Event]]) -> npt.NDArray[np.bool_]:
    """Which of some rows are there; `events` are the same as objects."""
    tree = _tree(place)
    if tree is not None:
        return holds(tree, rows)
    accepts = place_test(place)
    return np.array([accepts(of_event(event)) for event in events()], np.bool_)


def _tree(place: Place) -> Expr | None:
    """None: heights and areas have none."""
    names, numbers = (tuple(map(Literal, some)) for some in (place.names, place.numbers))
    if place.kind == "group":
        return In(Reference("source"), names)
    if place.kind == "zone" and not place.areas:
        return In(Call("zone", ()), names)
    if place.kind == "box" and len(numbers) == 4:
        return Call("within_box", numbers)
    return Call("within_radius", numbers) if place.kind == "circle" else None
