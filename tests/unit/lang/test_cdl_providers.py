"""Look-ups in files, databases, frames and functions: each is read once, and what is wrong is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from coincide.api import detect
from coincide.attachments import giving
from coincide.cdl import forget_providers, register_context, register_provider, table
from coincide.engines.spark.tables import tables_of
from coincide.errors import RuleError, RunError
from coincide.lang.cdl import providers, tables
from coincide.lang.cdl.tables import NoTable
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

sa = pytest.importorskip("sqlalchemy")

EVENTS = [{"type": "door", "time": n, "badge": badge} for n, badge in enumerate(["b17", "b99", "b17", 5, "b17"])]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    forget_providers()


def rules(folder: Path, given: str = "", column: str = "physician", kind: str = "string") -> Rulebook:
    text = f"""\
cd: entered
{given}
sources:
  D: {{class: door, attributes: {{badge: {{type: {kind}, anchor: B}}}}}}
predicates: {{P: {{any: D}}}}
expressions: {{X: P}}
events: {{entered: {{attributes: {{who: {{string: "lookup('badges', '{column}', B)"}}}}}}}}
"""
    return load(SourceText(str(folder / "r.cdl.yaml"), text), allow_db=True)


def sql(href: str, key: str = "badge") -> str:
    return f"providers: {{badges: {{kind: sql, href: '{href}', key: {key}}}}}"


def who(book: Rulebook, tier: str = "interpreter") -> list[Any]:
    return [d.get("who") for d in detect(book, EVENTS, tier=tier)]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'ward.db'}")
    with engine.begin() as connection:
        connection.execute(sa.text("create table badges (badge text, physician text, grade integer)"))
        connection.execute(sa.text("insert into badges values ('b17', 'Jones', 3), ('B17', 'Smith', 4), ('b17', 'later', 1)"))
        connection.execute(sa.text("create table numbers (number integer primary key, physician text, ratio numeric(5, 2))"))
        connection.execute(sa.text("insert into numbers values (5, 'Five', 0.5)"))
    return tmp_path


@pytest.fixture
def queries() -> Iterator[list[str]]:
    """The statements that go to any database."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if "PRAGMA" not in statement and "sqlite_master" not in statement:
            seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield seen
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_a_database_is_asked_once_a_key(database: Path, queries: list[str], tier: str) -> None:
    book = rules(database, sql("sqlite:///ward.db#badges"))
    assert queries == []
    assert who(book, tier) == ["Jones", None, "Jones", "Jones"]
    assert len(queries) == 2
    assert all("WHERE" in query for query in queries)
    assert who(book, tier) == ["Jones", None, "Jones", "Jones"]
    assert len(queries) == 2


def test_keys_are_compared_as_the_column_has_them(database: Path) -> None:
    assert who(rules(database, sql("sqlite:///ward.db#numbers", "number"), kind="int")) == ["Five"]
    assert who(rules(database, sql("sqlite:///ward.db#numbers", "number"))) == [None] * 4


def test_a_database_travels_as_a_table(database: Path, queries: list[str]) -> None:
    book = rules(database, sql("sqlite:///ward.db#badges"))
    sent = tables_of(book, None)
    assert sent is not None
    assert len(queries) == 1
    (database / "ward.db").unlink()
    with giving(sent.read()):
        assert who(rules(database, sql("sqlite:///ward.db#badges"))) == ["Jones", None, "Jones", "Jones"]
    assert len(queries) == 1


def test_a_database_that_goes_away(database: Path) -> None:
    book = rules(database, sql("sqlite:///ward.db#badges"))
    with sa.create_engine(f"sqlite:///{database / 'ward.db'}").begin() as connection:
        connection.execute(sa.text("drop table badges"))
    with pytest.raises(RunError, match="the table 'badges' cannot be read any more: no such table: badges"):
        who(book)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (sql("sqlite:///ward.db#badgs"), "there is no table 'badgs': did you mean 'badges'?"),
        (sql("sqlite:///ward.db#badges", "bagde"), "there is no column 'bagde': did you mean 'badge'?"),
        (sql("sqlite:///ward.db"), "write the database's URL and the table, such as sqlite:///badges.db#badges"),
        (sql("sqlite:///other.db#badges"), "there is no file '"),
        (sql("oracel://me:secret@host/db#badges"), "cannot read 'oracel://me:***@host/db#badges'"),
        (sql("oracel://me:secret@host/db#badges"), "there is no driver for 'oracel'"),
        (sql("postgresql+psycopg://host/db#badges"), "psycopg is not installed"),
    ],
)
def test_errors_of_databases(database: Path, given: str, message: str) -> None:
    with pytest.raises(RuleError) as raised:
        rules(database, given)
    text = raised.value.diagnostics[0].render()
    assert "r.cdl.yaml:2:13: error: cannot read '" in text
    assert message in text
    assert not (database / "other.db").exists()


def test_a_column_that_is_not_there(database: Path) -> None:
    with pytest.raises(RuleError, match="provider 'badges' has no column 'fysician'") as raised:
        rules(database, sql("sqlite:///ward.db#badges"), column="fysician")
    assert raised.value.diagnostics[0].hint == "did you mean 'physician'?"


def test_without_the_library(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "coincide.lang.cdl.sql", raising=False)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(RuleError) as raised:
        rules(database, sql("sqlite:///ward.db#badges"))
    assert raised.value.diagnostics[0].hint == "sqlalchemy is not installed: pip install 'coincide[sql]' brings it"


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("badge,physician\nb17,Jones\n")
    read: list[Path] = []
    real = tables.read_rows
    monkeypatch.setattr(tables, "read_rows", lambda path: read.append(path) or real(path))
    book = rules(tmp_path, "providers: {badges: {kind: csv, href: t.csv, key: badge}}")
    for tier in ("interpreter", "kernel"):
        assert who(book, tier) == ["Jones", None, "Jones", "Jones"]
    assert len(read) == 1
    (tmp_path / "t.csv").write_text("badge,physician\nb17,Smith\n")
    assert who(book)[0] == "Jones"
    assert who(rules(tmp_path, "providers: {badges: {kind: csv, href: t.csv, key: badge}}"))[0] == "Smith"


def test_registered_ones_are_those_of_the_time_of_loading(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="unknown provider 'badges'"):
        rules(tmp_path)
    register_provider("badges", lambda key, column: f"{column} {key}")
    book = rules(tmp_path)
    forget_providers()
    assert who(book)[1] == "physician b99"
    assert list(book.attachments) == [(providers.LOOKUP, "badges")]


def test_node_context_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("time,attribute,value\n0,power,low\n")
    with pytest.raises(RuleError, match="unknown provider 'badges'"):
        rules(tmp_path, "providers: {badges: {kind: context, href: c.csv}}")


REST = "cd: c\nsources: {D: door}\nexpressions: {X: P}\nevents: {e: }\n"


def test_contexts_travel_with_rules_that_read_them(tmp_path: Path) -> None:
    class Always:
        def read(self, name: str, now: int) -> str:
            return name

    register_context(Always())
    text = REST + "predicates: {P: D.time >= 0 and node('power') = 'power'}"
    book = load(SourceText("r.cdl.yaml", text))
    forget_providers()
    assert list(book.attachments) == [(providers.CONTEXT, "0")]
    assert len(detect(book, EVENTS)) == len(EVENTS)
    with giving(book.attachments):
        again = load(SourceText("r.cdl.yaml", text))
    assert len(detect(again, EVENTS)) == len(EVENTS)
    register_context(Always())
    assert load(SourceText("r.cdl.yaml", REST + "predicates: {P: {any: D}}")).attachments == {}


ROWS = [{"badge": "b17", "physician": "Jones"}, {"badge": "b18", "physician": None}]


def frames() -> list[Any]:
    import pyarrow as pa

    found: list[Any] = [ROWS, pa.Table.from_pylist(ROWS)]
    for name in ("pandas", "polars"):
        try:
            found.append(__import__(name).DataFrame(ROWS))
        except ImportError:
            continue
    return found


@pytest.mark.parametrize("data", frames(), ids=lambda data: type(data).__module__.partition(".")[0])
def test_tables_of_frames(data: Any, tmp_path: Path) -> None:
    register_provider("badges", table(data, key="badge"))
    assert who(rules(tmp_path)) == ["Jones", None, "Jones", "Jones"]
    with pytest.raises(RuleError, match="provider 'badges' has no column 'nobody'"):
        rules(tmp_path, column="nobody")
    with pytest.raises(NoTable, match="there is no column 'bagde': did you mean 'badge'"):
        table(data, key="bagde")


def test_values_of_other_systems() -> None:
    moment = datetime(1970, 1, 1, 0, 0, 1)
    row = {
        "key": Decimal("1.50"),
        "naive": moment,
        "aware": moment.replace(tzinfo=UTC),
        "day": date(2026, 3, 1),
        "bytes": b"x",
        "nan": float("nan"),
    }
    found = table([row], key="key")
    assert [found.find(1.5, name) for name in row] == [1.5, 1000.0, 1000.0, "2026-03-01", None, None]
    assert found.find("1.50", "day") is None
    assert table([], key="key").find("x", "y") is None


@pytest.mark.parametrize(
    ("key", "column", "message"),
    [
        ("badge", "physican", "provider 'badges' has no column 'physican': the value is null"),
        ("bagde", "physician", "provider 'badges' has no column 'bagde': nothing is found in it"),
    ],
)
def test_columns_that_a_csv_file_lacks_are_warned_about(tmp_path: Path, key: str, column: str, message: str) -> None:
    (tmp_path / "t.csv").write_text("badge,physician\nb17,Jones\n")
    book = rules(tmp_path, f"providers: {{badges: {{kind: csv, href: t.csv, key: {key}}}}}", column)
    (warning,) = book.warnings
    assert (warning.message, str(warning.hint).startswith("did you mean")) == (message, True)
    assert who(book) == [None] * 4


def test_a_context_has_its_columns(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("time,name,value\n0,power,low\n")
    with pytest.raises(RuleError, match="there is no column 'attribute': there are name, time, value"):
        rules(tmp_path, "providers: {c: {kind: context, href: c.csv}}")
