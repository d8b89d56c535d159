"""Where enrichment and node context come from (section 4.6). A provider answers `find(key, column) -> value or null`."""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from coincide.expr.functions import number_text
from coincide.lang.cdl.definition import Provider
from coincide.lang.cdl.shape import fail
from coincide.lang.cdl.values import instant
from coincide.model.event import Value, as_value
from coincide.model.stamp import MILLISECOND

NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)


class Lookup(Protocol):
    """What look-ups ask."""

    def find(self, key: Value, column: str) -> Value: ...


class Context(Protocol):
    """The node's own attributes."""

    def read(self, name: str, now: int) -> Value:
        """The value that holds at an instant (microseconds)."""


def key_text(key: Value) -> str | None:
    """A key as text: numbers in their JSON spelling. Sets and ranges are no keys."""
    if isinstance(key, bool):
        return str(key).lower()
    return number_text(key) if isinstance(key, float) else key if isinstance(key, str) else None


@dataclass(frozen=True)
class Table:
    """Rows by key, as text; the first row of a key counts."""

    rows: Mapping[str, Mapping[str, Value]]

    def find(self, key: Value, column: str) -> Value:
        text = key_text(key)
        return None if text is None else self.rows.get(text, {}).get(column)


@dataclass(frozen=True)
class Function:
    """A Python function as a provider."""

    function: Callable[[Any, str], Any]

    def find(self, key: Value, column: str) -> Value:
        return None if key is None else as_value(self.function(key, column))


@dataclass(frozen=True)
class History:
    """Node context from a file: a value holds from its time on."""

    instants: Mapping[str, Sequence[int]]
    values: Mapping[str, Sequence[Value]]

    def read(self, name: str, now: int) -> Value:
        before = bisect_right(self.instants.get(name, ()), now)
        return self.values[name][before - 1] if before else None


def cell(text: str | None) -> Value:
    """What a cell of a CSV file means."""
    if not text:
        return None
    if text in ("true", "false"):
        return text == "true"
    return float(text) if NUMBER.fullmatch(text) else text


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [{k: v for k, v in row.items() if k is not None and v is not None} for row in csv.DictReader(file)]


def csv_table(provider: Provider) -> Table:
    rows: dict[str, dict[str, Value]] = {}
    for row in read_rows(path_of(provider)):
        if (key := row.get(provider.key or "")) is not None:
            rows.setdefault(key, {column: cell(text) for column, text in row.items()})
    return Table(rows)


def parquet_table(provider: Provider) -> Table:
    from pyarrow import parquet

    return records_table(parquet.read_table(path_of(provider)).to_pylist(), provider.key or "")


def sql_table(provider: Provider) -> Table:
    """`href` is a database's URL with the table behind `#`: `sqlite:///badges.db#badges`."""
    import sqlalchemy  # type: ignore[import-not-found, unused-ignore]

    url, _, table = provider.href.partition("#")
    with sqlalchemy.create_engine(url).connect() as connection:
        found = connection.execute(sqlalchemy.select(sqlalchemy.text("*")).select_from(sqlalchemy.table(table)))
        return records_table([dict(row) for row in found.mappings()], provider.key or "")


def records_table(records: Iterable[Mapping[str, Any]], key: str) -> Table:
    rows: dict[str, dict[str, Value]] = {}
    for record in records:
        if (text := key_text(as_value(record.get(key)))) is not None:
            rows.setdefault(text, {column: as_value(value) for column, value in record.items()})
    return Table(rows)


def context_history(provider: Provider) -> History:
    found: dict[str, list[tuple[int, Value]]] = {}
    for row in read_rows(path_of(provider)):
        moment = instant(row.get("time", ""))
        if moment is not None:
            found.setdefault(row.get("attribute", ""), []).append((round(moment * MILLISECOND), cell(row.get("value"))))
    for changes in found.values():
        changes.sort(key=lambda change: change[0])
    return History(
        {name: [at for at, _ in changes] for name, changes in found.items()},
        {name: [value for _, value in changes] for name, changes in found.items()},
    )


KINDS: dict[str, Callable[[Provider], Lookup]] = {"csv": csv_table, "parquet": parquet_table, "sql": sql_table}
_lookups: dict[str, Lookup] = {}
_contexts: list[Context] = []


def path_of(provider: Provider) -> Path:
    return Path(provider.base) / provider.href


def register_provider(name: str, provider: Lookup | Callable[[Any, str], Any]) -> None:
    """A provider of this installation, known to all descriptions: an object with `find`, or a function of key and column."""
    _lookups[name] = provider if hasattr(provider, "find") else Function(provider)


def register_context(context: Context) -> None:
    """Node context of this installation, asked after what descriptions name."""
    _contexts.append(context)


def forget_providers() -> None:
    _lookups.clear()
    _contexts.clear()


def is_registered(name: str) -> bool:
    return name in _lookups


def check_provider(provider: Provider) -> None:
    if provider.kind != "context" and provider.kind not in KINDS:
        fail(provider.span, f"unknown kind of provider '{provider.kind}'", f"one of {', '.join([*KINDS, 'context'])}")
    try:
        open_provider(provider)
    except ImportError as error:
        fail(provider.span, f"cannot read '{provider.href}'", f"{error.name} is not installed")
    except Exception as error:  # whatever a reader of some format raises
        fail(provider.span, f"cannot read '{provider.href}'", str(error).splitlines()[0] if str(error) else None)


def open_provider(provider: Provider) -> Lookup | Context:
    return context_history(provider) if provider.kind == "context" else KINDS[provider.kind](provider)


def open_providers(providers: Iterable[Provider]) -> tuple[dict[str, Lookup], list[Context]]:
    """Look-ups by name and the node contexts in order; what comes first counts."""
    lookups: dict[str, Lookup] = {}
    contexts: list[Context] = []
    for provider in providers:
        if provider.kind == "context":
            contexts.append(context_history(provider))
        else:
            lookups.setdefault(provider.name, KINDS[provider.kind](provider))
    return {**_lookups, **lookups}, [*contexts, *_contexts]
