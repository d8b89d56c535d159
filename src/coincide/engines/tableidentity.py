"""What keys of detections are made of, from columns, without making events of them: the same as `identity` takes of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from coincide.adapters.tablerecords import plain_values
from coincide.model.table import EventTable

Content = tuple[str, str, int, int, list[str], list[tuple[str, object]]]


def contents(table: EventTable, digests: Mapping[int, str]) -> Iterator[Content]:
    """Of each row its type, the digest of its definition, its time, ids of what it was made of, and its attributes."""
    names = table.attributes
    types = plain_values(table.column("type"))
    makers = [digests.get(number, "") for number in table_makers(table)]
    values = zip(*(plain_values(table.column(name)) for name in names), strict=True) if names else [()] * len(table)
    rows = zip(types, makers, table.lo.tolist(), table.hi.tolist(), _ids(table), values, strict=True)
    for kind, maker, lo, hi, ids, row in rows:
        attributes = [(name, value) for name, value in zip(names, row, strict=True) if value is not None]
        yield kind or "", maker, lo, hi, ids, attributes


def table_makers(table: EventTable) -> list[int]:
    """For each row the number of the definition that made it: the last on the way that its place tells."""
    if table.foreign_places is not None:
        return [place[2 + 2 * place[3]] for place in table.foreign_places]
    places = table.place_matrix()
    found: list[int] = places[np.arange(len(table)), 1 + 2 * places[:, 2]].tolist()
    return found


def _ids(table: EventTable) -> list[list[str]]:
    origins = table.origin()
    ids = origins.ids.cast(pa.string()).to_pylist()
    if origins.offsets is None:
        return [[each] for each in ids]
    offsets = origins.offsets.tolist()
    return [ids[begin:end] for begin, end in pairwise(offsets)]
