"""What rules were given beside their text, on its way to Spark's workers. Tables are data: they are written as such, and
broadcast. What a host program has registered is code: it goes with the function that Spark sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pickle import PicklingError
from typing import Any

import msgspec

from coincide.attachments import TEXT, Key
from coincide.engines.spark.shipping import Shipped, shipped
from coincide.errors import CoincideError, Diagnostic
from coincide.lang.cdl.providers import History
from coincide.lang.cdl.tables import Table
from coincide.model.event import as_value, plain
from coincide.rulebook import Rulebook


class SentTable(msgspec.Struct, array_like=True, tag="table"):
    rows: dict[str, dict[str, Any]]
    columns: list[str] | None
    header: list[str] | None

    def opened(self) -> Table:
        rows = {key: {column: as_value(value) for column, value in row.items()} for key, row in self.rows.items()}
        columns, header = (None if names is None else frozenset(names) for names in (self.columns, self.header))
        return Table(rows, columns, header)


class SentHistory(msgspec.Struct, array_like=True, tag="history"):
    instants: dict[str, list[int]]
    values: dict[str, list[Any]]

    def opened(self) -> History:
        return History(self.instants, {name: [as_value(value) for value in values] for name, values in self.values.items()})


Sent = list[tuple[tuple[str, ...], SentTable | SentHistory]]


@dataclass(frozen=True)
class Tables:
    """Attachments of rules. Each process reads the tables once."""

    digest: str
    shipped: Shipped = field(compare=False, repr=False)
    code: tuple[tuple[Key, Any], ...] = field(default=(), compare=False, repr=False)

    def read(self) -> dict[Key, Any]:
        return {**decode_tables(self.shipped.read()), **dict(self.code)}


def tables_of(rules: Rulebook, spark: Any) -> Tables | None:
    """Called on the driver."""
    given = {key: value for key, value in rules.attachments.items() if key[0] != TEXT}
    if not given:
        return None
    tables = {key: found for key, value in given.items() if (found := _sent(value)) is not None}
    code = tuple((key, value) for key, value in given.items() if key not in tables)
    data = encode_tables(tables)
    digest = blake2b(data + _code_bytes(code), digest_size=16).hexdigest()
    return Tables(digest, shipped(data, spark), code)


def encode_tables(tables: Mapping[Key, SentTable | SentHistory]) -> bytes:
    return msgspec.msgpack.encode(list(tables.items()))


def decode_tables(data: bytes) -> dict[Key, Any]:
    return {key: value.opened() for key, value in msgspec.msgpack.decode(data, type=Sent)}


def _sent(value: Any) -> SentTable | SentHistory | None:
    """As data; None: it is code."""
    if isinstance(value, History):
        values = {name: [plain(v) for v in changes] for name, changes in value.values.items()}
        return SentHistory({name: list(instants) for name, instants in value.instants.items()}, values)
    whole = value.whole() if hasattr(value, "whole") else value  # a database's: tasks elsewhere ask none
    if not isinstance(whole, Table):
        return None
    rows = {key: {column: plain(v) for column, v in row.items()} for key, row in whole.rows.items()}
    return SentTable(rows, _names(whole.columns), _names(whole.header))


def _names(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _code_bytes(code: tuple[tuple[Key, Any], ...]) -> bytes:
    """As Spark will write it: to know now whether it can, and which it is. These bytes are never read."""
    from pyspark import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(code) if code else b""
    except (TypeError, AttributeError, PicklingError) as error:
        names = ", ".join(" ".join(filter(None, key)) for key, _ in code)
        raise CoincideError(Diagnostic(f"what the rules use cannot be sent to Spark's workers ({names}): {error}")) from error
    return data
