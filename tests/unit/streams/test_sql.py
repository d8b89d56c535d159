"""Tables of databases and notifications: SQLite, and PostgreSQL where it is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pg8000
import pytest
import sqlalchemy as sa
from servers import Reader, free_port, lines, until

from coincide.errors import CoincideError
from coincide.streams.base import Made, Reading
from coincide.streams.registry import open_sink, open_source
from coincide.streams.sql import failures, is_passing


class PostgreSql:
    """A server of our own. It refuses to run as root, so root starts it as the user that Debian makes for it."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder, self.port = program, folder, free_port()
        self._as: dict[str, object] = {}
        if os.getuid() == 0:
            self._as = {"user": "postgres", "group": "postgres", "extra_groups": [], "cwd": folder}
            shutil.chown(folder, "postgres", "postgres")
        self._run("initdb", "--no-sync", "--auth=trust", "--username=me", "--locale=C", "--encoding=UTF8")
        self.url = f"postgresql://me@127.0.0.1:{self.port}/postgres"
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "start", "--wait", "-o", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "--mode=immediate")

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(Path(self._program).parent / name), "-D", str(self._folder / "data"), *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, check=True, timeout=180, **quiet, **self._as)  # type: ignore[call-overload]


def _found() -> str | None:
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return str(folder / "initdb")
    return shutil.which("initdb")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgreSql]:
    program = _found()
    if program is None:
        pytest.skip("PostgreSQL is not installed")
    if os.getuid() == 0 and "postgres" not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")
    folder = Path(tempfile.mkdtemp(prefix="coincide-postgres-"))
    try:
        server = PostgreSql(program, folder)
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of one that has no tables of ours."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/shop.db"
    else:
        url = request.getfixturevalue("postgres").url
        execute(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return url


def engine(url: str) -> sa.Engine:
    """It keeps no connections: each question has an engine of its own, and a server only so many places."""
    return sa.create_engine(url.replace("postgresql:", "postgresql+pg8000:"), poolclass=sa.NullPool)


def execute(url: str, *statements: str) -> None:
    with engine(url).begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with engine(url).connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(query))]


def test_rows_are_read_as_they_come_and_gone_on_with(database: str) -> None:
    execute(
        database,
        "CREATE TABLE events (id INTEGER PRIMARY KEY, type TEXT, time BIGINT, price NUMERIC(8, 2))",
        "INSERT INTO events VALUES (5, 'a', 1000, 1.5), (7, 'a', 2000, NULL)",
    )
    url = f"{database}?every=10ms#events"
    with Reader(open_source(url, Reading())) as reader:
        assert reader.take(2) == [1000, 2000]
        execute(database, "INSERT INTO events VALUES (8, 'a', 1500, 2)")
        assert reader.take(1) == [1500]
    assert reader.position == 8
    execute(database, "INSERT INTO events VALUES (9, 'a', 3000, 2)")
    delivery = next(open_source(url, Reading()).deliveries(reader.position))
    (event,) = delivery.batch.events
    assert (event.id, event.attributes) == ("9", {"price": 2.0})


def test_any_column_that_increases_will_do(database: str) -> None:
    execute(
        database,
        "CREATE TABLE log (type TEXT, time TIMESTAMP)",
        "INSERT INTO log VALUES ('a', '2026-01-01 00:00:01'), ('a', '2026-01-01 00:00:02.5')",
    )
    url = f"{database}?by=time&every=10ms#log"
    with Reader(open_source(url, Reading())) as reader:
        first = reader.take(2)
    assert first[1] - first[0] == 1500
    execute(database, "INSERT INTO log VALUES ('a', '2026-01-01 00:00:03')")
    with Reader(open_source(url, Reading()), reader.position) as later:
        assert later.take(1) == [first[0] + 2000]


def test_a_detection_is_there_once(database: str) -> None:
    first, second, third = (Made(f"k{n}", "a", line + b"\n") for n, line in enumerate(lines([1, 2, 3])))
    url = f"{database}#found"
    sink = open_sink(url)
    assert sink.once
    sink.open(None)
    sink.write([first, second])
    position = sink.commit()
    sink.close()
    later = open_sink(url)
    later.open(position)
    later.write([second, third])
    later.close()
    assert rows(database, "SELECT key, type, time FROM found ORDER BY key") == [("k0", "a", 1), ("k1", "a", 2), ("k2", "a", 3)]
    assert rows(database, "SELECT record FROM found WHERE key = 'k0'") == [(lines([1])[0].decode(),)]


def test_a_table_of_the_users_own_has_the_columns_that_he_wants(database: str) -> None:
    execute(database, "CREATE TABLE alarms (key TEXT PRIMARY KEY, door TEXT, seen INTEGER DEFAULT 0)")
    sink = open_sink(f"{database}#alarms")
    sink.open(None)
    sink.write([Made("k", "alarm", b'{"type":"alarm","time":[1,2],"door":"north","other":[1]}\n')])
    sink.close()
    assert rows(database, "SELECT key, door FROM alarms") == [("k", "north")]


def test_a_server_that_comes_back_is_found_again(postgres: PostgreSql) -> None:
    execute(
        postgres.url,
        "CREATE TABLE steady (id SERIAL PRIMARY KEY, type TEXT, time INTEGER)",
        "INSERT INTO steady VALUES (1, 'a', 1)",
    )
    sink = open_sink(f"{postgres.url}#steady_found")
    sink.open(None)
    with Reader(open_source(f"{postgres.url}?every=10ms#steady", Reading())) as reader:
        assert reader.take(1) == [1]
        postgres.stop()
        postgres.start()
        execute(postgres.url, "INSERT INTO steady VALUES (2, 'a', 2)")
        assert reader.take(1) == [2]
    sink.write([Made("k", "a", lines([1])[0] + b"\n")])
    sink.close()
    assert rows(postgres.url, "SELECT count(*) FROM steady_found") == [(1,)]


def test_notifications_become_events_also_after_the_server_was_away(postgres: PostgreSql) -> None:
    source = open_source(f"{postgres.url}?listen=Doors", Reading())
    assert not source.repeatable

    def listening() -> bool:
        return bool(rows(postgres.url, "SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT 1' AND pid <> pg_backend_pid()"))

    with Reader(source) as reader:
        for time in (1, 2):
            until(listening)
            execute(postgres.url, f"""NOTIFY "Doors", '{lines([time])[0].decode()}'""")
            assert reader.take(1) == [time]
            postgres.stop()
            postgres.start()


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (pg8000.InterfaceError("network error"), True),  # as the driver says it while a connection is prepared
        (pg8000.DatabaseError({"C": "57P03", "M": "the database system is starting up"}), True),
        (pg8000.DatabaseError({"C": "53300", "M": "sorry, too many clients already"}), True),
        (pg8000.DatabaseError({"C": "42P01", "M": "there is no such table"}), False),
        (ConnectionResetError(), True),
    ],
)
def test_what_may_be_better_later(error: Exception, passes: bool) -> None:
    engine_there = sa.create_engine("postgresql+pg8000://me@127.0.0.1/db")
    assert isinstance(error, failures(engine_there))
    assert is_passing(error) == passes


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///{folder}/none.db#events", "there is no file"),
        ("sqlite:///{folder}/shop.db#evnts", "there is no table 'evnts'"),
        ("sqlite:///{folder}/shop.db?by=nr#events", "the table 'events' has no column 'nr'"),
        ("sqlite:///{folder}/shop.db", "does not say what to read"),
        ("postgresql://me:secret@127.0.0.1/db#x", "the password belongs in SQL_PASSWORD"),
        ("postgresql://me@127.0.0.1:1/db#x", "cannot reach 'postgresql.pg8000://me@127.0.0.1:1/db'"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, url: str, message: str) -> None:
    execute(f"sqlite:///{tmp_path}/shop.db", "CREATE TABLE events (id INTEGER, type TEXT, time INTEGER)")
    with pytest.raises(CoincideError, match=message) as caught:
        next(open_source(url.format(folder=tmp_path), Reading()).deliveries(None))
    assert "secret" not in str(caught.value)
