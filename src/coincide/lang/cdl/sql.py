"""Tables of a database, through SQLAlchemy: a row is asked for when a look-up wants it, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import NoSuchModuleError, NoSuchTableError, SQLAlchemyError

from coincide.access import permitted_file
from coincide.errors import Diagnostic, RunError, nearest
from coincide.lang.cdl.tables import NoTable, Table, check_column, foreign, key_text, records_table
from coincide.model.event import Value

ROWS = 100_000
"""So many rows are remembered; keys without a row count, too."""


class SqlTable:
    """It travels as a `Table` that holds all of it, so that tasks elsewhere ask no database."""

    def __init__(self, engine: sa.Engine, table: sa.Table, key: str) -> None:
        self.engine = engine
        self.table = table
        self.key = key
        self.columns = frozenset(str(column.name) for column in table.columns)
        self._row: Callable[[str], dict[str, Value]] = lru_cache(ROWS)(self._looked_up)

    def find(self, key: Value, column: str) -> Value:
        text = key_text(key)
        return None if text is None else self._row(text).get(column)

    def _looked_up(self, text: str) -> dict[str, Value]:
        own = self.table.columns[self.key]
        wanted = _typed(text, own.type)
        if wanted is None:
            return {}
        rows = self._rows(sa.select(self.table).where(own == wanted))
        return next((row for row in rows if key_text(row[self.key]) == text), {})  # a database may see no difference in case

    def _rows(self, query: sa.Select[Any]) -> Iterator[dict[str, Value]]:
        try:
            with self.engine.connect() as connection:
                found = connection.execute(query).mappings().all()
        except SQLAlchemyError as error:
            raise RunError(Diagnostic(f"the table '{self.table}' cannot be read any more: {reason_of(error)}")) from error
        return ({str(name): foreign(value) for name, value in row.items()} for row in found)

    def whole(self) -> Table:
        return records_table(self._rows(sa.select(self.table)), self.key, self.columns)


def _typed(text: str, kind: Any) -> Any:
    """The key as the column has it, so that the database can use its index; None: no value of the column is written so."""
    try:
        python = kind.python_type
    except NotImplementedError:
        return text
    if python is bool:
        return {"true": True, "false": False}.get(text)
    try:
        return python(text) if python in (int, float) or python.__name__ == "Decimal" else text
    except (ValueError, ArithmeticError):
        return None


def sql_table(base: str, href: str, key: str) -> SqlTable:
    """`href` is a database's URL with the table behind `#`: `sqlite:///badges.db#badges`, the file relative to the rules."""
    address, _, name = href.rpartition("#")
    if not address or not name:
        raise NoTable("write the database's URL and the table, such as sqlite:///badges.db#badges")
    try:
        engine = sa.create_engine(_located(make_url(address), base))
        schema, _, bare = name.rpartition(".")
        table = sa.Table(bare, sa.MetaData(), schema=schema or None, autoload_with=engine)
    except NoSuchTableError:
        tables = sa.inspect(engine).get_table_names()
        raise NoTable(f"there is no table '{name}': {nearest(name, tables) or 'there are ' + ', '.join(tables)}") from None
    except NoSuchModuleError:
        raise NoTable(f"there is no driver for '{address.partition(':')[0]}'") from None
    except SQLAlchemyError as error:
        raise NoTable(reason_of(error)) from error
    check_column(key, (column.name for column in table.columns))
    return SqlTable(engine, table, key)


def _located(url: URL, base: str) -> URL:
    """A SQLite file that is not there would be made."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return url
    try:
        return url.set(database=str(permitted_file(base, str(url.database))))
    except FileNotFoundError:
        raise NoTable(f"there is no file '{Path(base) / str(url.database)}'") from None


def reason_of(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
