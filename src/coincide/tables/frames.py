"""Tables of any library as Arrow tables, and results as what was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from coincide.errors import InputError

Back = Callable[[pa.Table], Any]
"""From a result to the kind of table that was given."""


def table_of_frame(frame: Any) -> tuple[pa.Table, Back]:
    """pandas, Polars and records come back as such; all else (Arrow, DuckDB's relations, files) as an Arrow table."""
    library = type(frame).__module__.partition(".")[0]
    if library == "pandas":
        return pa.Table.from_pandas(_with_index(frame), preserve_index=False), lambda table: table.to_pandas()
    if library == "polars":
        import polars

        whole = frame.collect() if hasattr(frame, "collect") else frame
        return whole.to_arrow(), polars.from_arrow
    if isinstance(frame, (str, PathLike)):
        return _read(fspath(frame)), _same
    if isinstance(frame, list) and all(isinstance(record, Mapping) for record in frame):
        return pa.Table.from_pylist(frame), lambda table: table.to_pylist()
    return _arrow(frame), _same


def _with_index(frame: Any) -> Any:
    """Of pandas: an index that has a name is a column; times often stand there."""
    names = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(names) if names else frame


def _same(table: pa.Table) -> pa.Table:
    return table


def _arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(frame).read_all()
    if hasattr(frame, "arrow"):  # a relation of DuckDB
        return _arrow(frame.arrow())
    known = "a table of pandas, Polars, Arrow or DuckDB, a list of records or a path"
    raise InputError(f"expected {known}, not {type(frame).__name__}")


def _read(path: str) -> pa.Table:
    from pyarrow import csv, dataset, json

    try:
        if path.endswith((".csv", ".csv.gz")):
            return csv.read_csv(path)
        if path.endswith((".jsonl", ".json", ".jsonl.gz")):
            return json.read_json(path)
        form = "ipc" if path.endswith((".arrow", ".feather", ".ipc")) else "parquet"
        return dataset.dataset(path, format=form).to_table()
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: {error}") from error
