"""Columns of a Parquet file, by what its metadata tell: which texts are coded already, and which columns need not be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coincide.adapters.faults import Faults
from coincide.adapters.instants import instants, is_text
from coincide.adapters.mapping import FieldMapping

SMALL = 1 << 16
"""Bytes of a dictionary that may come with every batch: a larger one would be gone through again and again."""

ROOM = 1 << 25
"""Bytes of the rows of a batch, as the file has them."""
FEW_ROWS = 1 << 16


def coded_columns(metadata: pq.FileMetaData) -> list[str]:
    """Texts that the file has as codes, of few texts: they stay so."""
    kinds = metadata.schema.to_arrow_schema()
    return [field.name for field in kinds if is_text(field.type) and all(map(_is_coded, _chunks(metadata, field.name)))]


def _is_coded(chunk: Any) -> bool:
    return bool(chunk.has_dictionary_page) and 0 < chunk.data_page_offset - (chunk.dictionary_page_offset or 0) <= SMALL


def rows_at_once(metadata: pq.FileMetaData, most: int) -> int:
    """So many rows at most; of large ones so many that memory holds them."""
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    return min(most, max(FEW_ROWS, ROOM * int(metadata.num_rows) // max(int(size), 1)))


def unread_columns(metadata: pq.FileMetaData, wanted: frozenset[str]) -> dict[str, int]:
    """Columns that are not wanted and in which no value can be wrong, with the number of their values; without statistics nobody
    can tell."""
    out = {}
    for field in metadata.schema.to_arrow_schema():
        if field.name not in wanted:
            chunks = list(_chunks(metadata, field.name))
            if chunks and all(_is_surely_good(field.type, chunk.statistics) for chunk in chunks):
                out[field.name] = sum(chunk.statistics.num_values for chunk in chunks)
    return out


def _is_surely_good(kind: pa.DataType, statistics: Any) -> bool:
    if statistics is None or not statistics.has_null_count:
        return False
    if pa.types.is_floating(kind):
        return bool(statistics.has_min_max) and isfinite(statistics.min) and isfinite(statistics.max)
    whole = pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    return whole or is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def floors(metadata: pq.FileMetaData, mapping: FieldMapping) -> list[tuple[int, float]]:
    """Of each row group: at which row it ends, and how early events of it and those after it are. Empty: statistics do not tell.
    No event ends before it begins, so the column may have the time of either."""
    kinds = metadata.schema.to_arrow_schema()
    candidates = (mapping.time, f"{mapping.time}_hi", mapping.other_time)
    names = [name for name in candidates if name is not None and name in kinds.names]
    if not names or mapping.extracts:
        return []
    kind = kinds.field(names[0]).type
    statistics = [chunk.statistics for chunk in _chunks(metadata, names[0])]
    if not statistics or not all(each is not None and each.has_min_max and each.has_null_count for each in statistics):
        return []
    if len(names) > 1 and any(each.null_count for each in statistics):  # then the time is in another column
        return []
    if pa.types.is_timestamp(kind):
        least = pa.array([each.min_raw for each in statistics], pa.int64()).cast(kind)
    elif pa.types.is_integer(kind):
        least = pa.array([each.min for each in statistics], kind)
    else:
        return []
    faults = Faults(len(statistics))
    earliest = instants(least, mapping, "time", faults).tolist()
    ends = accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    rests = list(accumulate(reversed(earliest), min))[::-1]
    return [] if faults else list(zip(ends, rests, strict=True))


def has_no_ids(metadata: pq.FileMetaData, mapping: FieldMapping) -> bool:
    """Then rows have their positions as ids, and no two have the same."""
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    return not any(f"{path}.".startswith(f"{mapping.id}.") for path in paths)


def _chunks(metadata: pq.FileMetaData, name: str) -> Iterator[Any]:
    """The parts of a column that is no struct or list; there are none of others."""
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    if paths.count(name) == 1:
        yield from (metadata.row_group(group).column(paths.index(name)) for group in range(metadata.num_row_groups))
