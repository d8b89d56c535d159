"""Tables that look-ups ask (section 4.6): rows by key, as text; the first row of a key counts."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from coincide.errors import nearest
from coincide.expr.functions import number_text
from coincide.model.event import Value, as_value
from coincide.model.numbers import is_number, number_of_text
from coincide.model.stamp import EPOCH

NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)


class Lookup(Protocol):
    """What look-ups ask. With `columns`, other ones are refused when rules are loaded; otherwise they are null."""

    def find(self, key: Value, column: str) -> Value: ...


class NoTable(Exception):
    """Why a table cannot be read."""


def key_text(key: Value) -> str | None:
    """A key as text: numbers in their JSON spelling. Sets and ranges are not keys."""
    if isinstance(key, bool):
        return str(key).lower()
    return number_text(key) if is_number(key) else key if isinstance(key, str) else None


@dataclass(frozen=True)
class Table:
    """In memory."""

    rows: Mapping[str, Mapping[str, Value]]
    columns: frozenset[str] | None = None
    header: frozenset[str] | None = None  # of a file in which columns that are not there are null

    def find(self, key: Value, column: str) -> Value:
        text = key_text(key)
        return None if text is None else self.rows.get(text, {}).get(column)


@dataclass(frozen=True)
class Function:
    """A Python function as a provider."""

    function: Callable[[Any, str], Any]

    def find(self, key: Value, column: str) -> Value:
        return None if key is None else as_value(self.function(key, column))


def table(data: Any, key: str) -> Table:
    """A table of the rows that are given: mappings, or a DataFrame of Spark (which is collected), pandas, polars or Arrow."""
    if hasattr(data, "toArrow"):
        data = data.toArrow()
    for method, arguments in (("to_pylist", ()), ("to_dicts", ()), ("to_dict", ("records",))):
        if hasattr(data, method):
            columns: Iterable[str] | None = getattr(data, "column_names", None) or list(data.columns)
            return records_table(getattr(data, method)(*arguments), key, columns)
    return records_table(data, key)


def records_table(records: Iterable[Mapping[str, Any]], key: str, columns: Iterable[str] | None = None) -> Table:
    listed = list(records)
    known = dict.fromkeys(columns if columns is not None else (name for record in listed for name in record))
    if known:
        check_column(key, known)
    rows: dict[str, dict[str, Value]] = {}
    for record in listed:
        if (text := key_text(foreign(record.get(key)))) is not None:
            rows.setdefault(text, {column: foreign(value) for column, value in record.items()})
    return Table(rows, frozenset(known) if known else None)


def check_column(name: str, known: Iterable[str]) -> None:
    columns = list(known)
    if name not in columns:
        raise NoTable(f"there is no column '{name}': {nearest(name, columns) or 'there are ' + ', '.join(columns)}")


def foreign(raw: Any) -> Value:
    """A value of a table or database as ours: instants in milliseconds, null for what is not a value here."""
    if isinstance(raw, datetime):
        moment = raw if raw.tzinfo else raw.replace(tzinfo=UTC)
        return as_value((moment - EPOCH).total_seconds() * 1000)
    if isinstance(raw, date):
        return raw.isoformat()
    if isinstance(raw, Decimal):
        return as_value(int(raw) if raw == raw.to_integral_value() else float(raw))
    try:
        return as_value(raw.item() if hasattr(raw, "item") else raw)
    except (TypeError, ValueError):
        return None


# Files


def cell(text: str | None) -> Value:
    """What a cell of a CSV file means."""
    if not text:
        return None
    if text in ("true", "false"):
        return text == "true"
    return number_of_text(text) if NUMBER.fullmatch(text) else text


def read_rows(path: Path) -> tuple[list[dict[str, str]], frozenset[str]]:
    """Rows and the names of the columns."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        rows = [{k: v for k, v in row.items() if k is not None and v is not None} for row in reader]
        return rows, frozenset(reader.fieldnames or ())


def csv_table(path: Path, key: str) -> Table:
    """Here columns that are not there are null, even the key; that is warned about."""
    rows: dict[str, dict[str, Value]] = {}
    records, header = read_rows(path)
    for row in records:
        if (text := row.get(key)) is not None:
            rows.setdefault(text, {column: cell(value) for column, value in row.items()})
    return Table(rows, header=header)


def parquet_table(path: Path, key: str) -> Table:
    from pyarrow import parquet

    return table(parquet.read_table(path), key)
