"""Columns of a Parquet file, by what its metadata tell: which texts are coded already, and which columns need not be read."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coincide.adapters.instants import is_text

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


def _chunks(metadata: pq.FileMetaData, name: str) -> Iterator[Any]:
    """The parts of a column that is no struct or list; there are none of others."""
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    if paths.count(name) == 1:
        yield from (metadata.row_group(group).column(paths.index(name)) for group in range(metadata.num_row_groups))
