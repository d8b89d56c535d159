"""Tables of databases, through SQLAlchemy: `sqlite:///shop.db#events`, `postgresql://HOST/DATABASE#events`, and so on; and what
PostgreSQL notifies of: `postgresql://HOST/DATABASE?listen=CHANNEL`.

The variable SQL_PASSWORD (or SQL_PASSWORD_FILE) is the password, SQL_USER the user if the URL names none; with PostgreSQL's
driver SQL_CA, SQL_CERT and SQL_KEY name files for TLS. What is asked of databases here is the wish of whoever starts the run, not
of rules, which need --allow-db for theirs."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from threading import Event as Flag
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, NoSuchTableError, SQLAlchemyError

from coincide.adapters.jsonlines import events_of_records
from coincide.engines.choice import duration_microseconds
from coincide.errors import CoincideError, Diagnostic, nearest
from coincide.model.batch import EventBatch
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.connection import BackOff, secret, tls, unreachable

ROWS = 5_000
"""Rows that are asked for at a time."""
LISTENED = 0.1
"""Seconds between two looks for notifications."""
TOGETHER = 500
"""Detections of one statement."""
COLUMN = "id"
EVERY = "1s"
SECOND = 1_000_000
PASSING = {"OperationalError", "InterfaceError"}
"""Errors of drivers that may be over later."""
PASSING_CODES = ("53", "57P")
"""Those of PostgreSQL, where its driver says no more: too few places left, a server that stops or starts."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Database:
    """What a URL says: the database, a table of it, and options of ours; what is left is for the driver."""

    def __init__(self, url: str, options: Sequence[str] = ()) -> None:
        address, _, self.table_name = url.partition("#")
        try:
            given = make_url(address)
        except ArgumentError as error:
            raise CoincideError(f"'{address.partition('?')[0]}' is not the address of a database") from error
        if given.password is not None:
            raise CoincideError(f"'{given.host}': the password belongs in SQL_PASSWORD, not in the URL")
        self.options = {name: str(given.query[name]) for name in options if name in given.query}
        if given.drivername == "postgresql":
            given = given.set(drivername="postgresql+pg8000")
        self.server = given.set(query={}).render_as_string()
        self.is_file = given.get_backend_name() == "sqlite" and given.database not in (None, "", ":memory:")
        self.path = Path(str(given.database))
        self._url = given.difference_update_query(self.options)

    def engine(self) -> sa.Engine:
        try:
            return sa.create_engine(self._with_credentials(), connect_args=self._secured(), pool_pre_ping=True)
        except NoSuchModuleError:
            raise CoincideError(f"'{self.server}': there is no driver for '{self._url.drivername}'") from None
        except ModuleNotFoundError as error:
            raise CoincideError(Diagnostic(f"'{self.server}': '{error.name}' is not installed", hint=_hint(error))) from error

    def table(self, engine: sa.Engine) -> sa.Table:
        """Raises CoincideError if it is not there; NoSuchTableError is for whoever can make it."""
        schema, _, bare = self.table_name.rpartition(".")
        try:
            return sa.Table(bare, sa.MetaData(), schema=schema or None, autoload_with=engine)
        except NoSuchTableError:
            raise
        except (SQLAlchemyError, OSError) as error:
            raise unreachable(self.server, reason_of(error)) from error

    def _with_credentials(self) -> URL:
        if self._url.get_backend_name() == "sqlite":
            return self._url
        user = self._url.username or os.environ.get("SQL_USER")
        if user is None and self._url.get_backend_name() == "postgresql":
            user = getpass.getuser()  # as all clients of PostgreSQL do
        return self._url.set(username=user, password=secret("SQL_PASSWORD"))

    def _secured(self) -> dict[str, Any]:
        if self._url.drivername != "postgresql+pg8000" or not (os.environ.get("SQL_CA") or os.environ.get("SQL_CERT")):
            return {}
        return {"ssl_context": tls("SQL")}


def _hint(error: ModuleNotFoundError) -> str | None:
    return "pip install 'coincide[sql]'" if error.name == "pg8000" else None


def reason_of(error: Exception) -> str:
    """What the driver said, in one line and without the statement."""
    said = getattr(error, "orig", None) or error
    reason = said.args[0] if said.args else said
    return str(reason.get("M", reason) if isinstance(reason, dict) else reason).partition("\n")[0]


def failures(engine: sa.Engine) -> tuple[type[Exception], ...]:
    """What may go wrong: a driver's own errors too, which SQLAlchemy lets through while it prepares a connection."""
    driver: Any = engine.dialect.loaded_dbapi
    return (OSError, DBAPIError, driver.Error)


def is_passing(error: Exception) -> bool:
    """May it be better later? A database that is locked or away, yes; a wrong name, no."""
    said = getattr(error, "orig", None) or error
    reason = said.args[0] if said.args else None
    return (
        isinstance(said, OSError)
        or getattr(error, "connection_invalidated", False)
        or any(kind.__name__ in PASSING for kind in type(said).__mro__)
        or (isinstance(reason, dict) and reason.get("C", "").startswith(PASSING_CODES))
    )


def sql_source(url: str, reading: Reading) -> Source:
    return NotificationSource(url, reading) if "#" not in url else TableSource(url, reading)


class TableSource(Source):
    """Rows of a table, by a column that increases (`?by=id`), asked for every so often (`&every=1s`). A position is the value of
    the last row."""

    clock = "wall"

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.database = Database(url, ["by", "every"])
        self.name = f"{self.database.server}#{self.database.table_name}"
        self.by = self.database.options.get("by", COLUMN)
        self.pause = duration_microseconds(self.database.options.get("every", EVERY)) / SECOND

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        if self.database.is_file and not self.database.path.is_file():
            raise CoincideError(f"there is no file '{self.database.path}'")
        engine, back_off = self.database.engine(), BackOff(self.name)
        table = self._table(engine)
        column = table.columns[self.by]
        last = None if position is None else _again(position, column)
        while not self.closed.is_set():
            try:
                with engine.connect() as connection:
                    rows = connection.execute(_after(table, column, last)).mappings().all()
            except failures(engine) as error:
                if not is_passing(error):
                    raise CoincideError(f"'{self.name}': {reason_of(error)}") from error
                back_off.wait(self.closed)
                continue
            back_off.reset()
            if rows:
                last = rows[-1][column]
                yield self.delivery(self._events(rows), _json_position(last))
            if len(rows) < ROWS:
                self.closed.wait(self.pause)
        engine.dispose()

    def _table(self, engine: sa.Engine) -> sa.Table:
        name = self.database.table_name
        try:
            table = self.database.table(engine)
        except NoSuchTableError:
            hint = nearest(name, sa.inspect(engine).get_table_names())
            raise CoincideError(Diagnostic(f"'{self.database.server}': there is no table '{name}'", hint=hint)) from None
        if self.by not in table.columns:
            hint = nearest(self.by, table.columns.keys()) or "name a column that increases with each row: ?by=COLUMN"
            raise CoincideError(Diagnostic(f"the table '{name}' has no column '{self.by}'", hint=hint))
        return table

    def _events(self, rows: Sequence[Mapping[Any, Any]]) -> EventBatch:
        records = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
        name = self.database.table_name
        return EventBatch(events_of_records(records, name, self.reading.mapping, self.reading.intake))


def _after(table: sa.Table, column: sa.Column[Any], last: object) -> sa.Select[Any]:
    query = sa.select(table).order_by(column).limit(ROWS)
    return query.where(column.is_not(None)) if last is None else query.where(column > last)


def _plain(value: Any) -> object:
    """A value of a row as one of a record."""
    if isinstance(value, Decimal):
        return float(value)
    known = value is None or isinstance(value, (str, bool, int, float, date, list, dict))
    return value if known else str(value)


def _json_position(value: Any) -> Position:
    """A position that JSON can say."""
    if isinstance(value, (str, int, float)):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def _again(position: Position, column: sa.Column[Any]) -> object:
    """The value that `_json_position` was given."""
    kind = column.type.python_type
    if isinstance(position, str) and kind in (datetime, date):
        return kind.fromisoformat(position)
    return position if isinstance(position, kind) or kind not in (Decimal,) else kind(position)


class NotificationSource(Source):
    """What PostgreSQL's NOTIFY tells on a channel: each payload is a record. What it told while nobody listened is gone."""

    clock = "wall"
    repeatable = False

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.database = Database(url, ["listen"])
        self.name = self.database.server
        self.channel = self.database.options.get("listen")
        if self.channel is None:
            hint = "a table: DATABASE#TABLE" + (", or a channel: ?listen=CHANNEL" if url.startswith("postgresql") else "")
            raise CoincideError(Diagnostic(f"'{self.name}' does not say what to read", hint=hint))
        if not self.name.startswith("postgresql+pg8000:"):
            raise CoincideError(f"'{self.name}': only PostgreSQL's driver pg8000 listens")

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        engine, back_off, reached = self.database.engine(), BackOff(self.name), False
        while not self.closed.is_set():
            try:
                with engine.connect() as connection:
                    for payloads in self._payloads(connection):
                        reached = True
                        back_off.reset()
                        if payloads:
                            yield self.delivery(self._events(payloads), None)
            except failures(engine) as error:
                if not reached or not is_passing(error):
                    raise unreachable(self.name, reason_of(error)) from error
                back_off.wait(self.closed)
        engine.dispose()

    def _payloads(self, connection: sa.Connection) -> Iterator[list[bytes]]:
        alone = connection.execution_options(isolation_level="AUTOCOMMIT")
        quoted = alone.dialect.identifier_preparer.quote_identifier(str(self.channel))
        alone.execute(sa.text(f"LISTEN {quoted}"))
        driver: Any = alone.connection.driver_connection
        while True:
            yield [driver.notifications.popleft()[2].encode() for _ in range(len(driver.notifications))]
            if self.closed.wait(LISTENED):
                return
            alone.execute(sa.text("SELECT 1"))  # the driver looks when it is asked for something

    def _events(self, payloads: list[bytes]) -> EventBatch:
        return self.events(payloads, str(self.channel))


class SqlSink(Sink):
    """A table with a row for each detection: its `key`, `type`, `time` (milliseconds; of an interval its end) and the whole
    `record` as JSON. One that is there already may have some of these, the key among them, and columns that are called like
    attributes. A key that is there is not written again."""

    once = True
    keyed = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._never = Flag()
        self.database = Database(url)
        if not self.database.table_name:
            raise CoincideError(f"'{self.database.server}' names no table: DATABASE#TABLE")

    def open(self, position: Position) -> None:
        self._engine = self.database.engine()
        try:
            self._table = self.database.table(self._engine)
        except NoSuchTableError:
            self._table = self._new_table()
        if "key" not in self._table.columns:
            raise CoincideError(f"the table '{self.database.table_name}' has no column 'key'")

    def write(self, made: Sequence[Made]) -> None:
        for start in range(0, len(made), TOGETHER):
            self._insert([self._row(each) for each in made[start : start + TOGETHER]])

    def close(self) -> None:
        self._engine.dispose()

    def _insert(self, rows: list[dict[str, Any]]) -> None:
        back_off = BackOff(self.database.server)
        while True:
            try:
                with self._engine.begin() as connection:
                    self._upsert(connection, rows)
                return
            except failures(self._engine) as error:
                if not is_passing(error):
                    raise CoincideError(f"'{self.database.server}' does not take detections: {reason_of(error)}") from error
                back_off.wait(self._never)

    def _upsert(self, connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
        """The same key is the same detection: what is there need not be changed."""
        kind, key = connection.dialect.name, self._table.columns["key"]
        if kind in ("sqlite", "postgresql"):
            own: Any = import_module(f"sqlalchemy.dialects.{kind}")
            connection.execute(own.insert(self._table).on_conflict_do_nothing(index_elements=[key]), rows)
        elif kind in ("mysql", "mariadb"):
            connection.execute(self._table.insert().prefix_with("IGNORE"), rows)
        else:
            there = {*connection.scalars(sa.select(key).where(key.in_([row["key"] for row in rows])))}
            if fresh := [row for row in rows if row["key"] not in there]:
                connection.execute(self._table.insert(), fresh)

    def _row(self, made: Made) -> dict[str, Any]:
        record = _decode(made.line)
        time = record.get("time")
        row = {
            **record,
            "key": made.key,
            "time": time[-1] if isinstance(time, list) else time,
            "record": made.line.decode().rstrip(),
        }
        return {name: _cell(row.get(name)) for name in self._table.columns.keys()}  # noqa: SIM118 - columns are not a mapping

    def _new_table(self) -> sa.Table:
        schema, _, bare = self.database.table_name.rpartition(".")
        table = sa.Table(
            bare,
            sa.MetaData(),
            sa.Column("key", sa.String(64), primary_key=True),
            sa.Column("type", sa.String(255), nullable=False),
            sa.Column("time", sa.Double),
            sa.Column("record", sa.Text, nullable=False),
            schema=schema or None,
        )
        try:
            table.create(self._engine, checkfirst=True)
        except (SQLAlchemyError, OSError) as error:
            raise CoincideError(f"'{self.database.server}': cannot make the table '{bare}': {reason_of(error)}") from error
        return table


def _cell(value: object) -> object:
    return _encode(value).decode() if isinstance(value, (list, dict)) else value
