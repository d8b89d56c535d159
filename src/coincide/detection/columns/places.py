"""Where detections stand in the order of all that happens, as columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]


def ranks_of(causes: Numbers) -> Numbers:
    """Each detection's number among those of its cause, which stand together."""
    here = np.arange(len(causes))
    first = np.concatenate(([True], causes[1:] != causes[:-1]))
    return here - np.maximum.accumulate(np.where(first, here, 0))


def caused_places(table: EventTable, rows: Numbers, order: Numbers, ranks: Numbers) -> Numbers:
    """The place of the cause, one generation on, with (definition, rank) at the end of the path."""
    cause = table.place_rows(rows)
    generation = cause[:, 2]
    width = max(cause.shape[1], 3 + 2 * (int(generation.max()) + 1))
    places = np.full((len(rows), width), -1, np.int64, order="F")  # read column by column
    places[:, : cause.shape[1]] = cause
    here = np.arange(len(rows))
    places[here, 3 + 2 * generation] = order
    places[here, 4 + 2 * generation] = ranks
    places[:, 2] += 1
    return places
