"""Look-ups on Spark: tables are read once, on the driver, and broadcast."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import expected, texts, texts_of_rows

from coincide import spark as on_spark
from coincide.cdl import forget_providers, register_provider, table
from coincide.engines.spark import runner
from coincide.engines.spark.tables import tables_of
from coincide.errors import CoincideError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

pytestmark = pytest.mark.spark

EVENTS = [
    primitive(kind, n * 1000, n * 1000, f"e{n}", {"badge": f"b{n % 7}", "room": float(n % 3)})
    for n in range(200)
    for kind in ["in" if n % 2 else "out"]
]
RULES = """\
cd: left
within: 1 min
{providers}
sources:
  I: {{class: in, attributes: {{room: int, badge: string, who: {{type: string, lookup: {lookup}}}}}}}
  O: {{class: out, attributes: {{room: int, badge: string, who: {{type: string, lookup: {lookup}}}}}}}
predicates: {{same: I.who = O.who, there: I.room = O.room, order: {{before: [I, O]}}}}
expressions: {{X: [same, there, order]}}
events: {{left: {{attributes: {{who: {{string: I.who}}, room: {{int: I.room}}}}}}}}
"""
LOOKUP = "{provider: badges, column: physician, key: badge}"
ROWS = [{"badge": f"b{n}", "physician": f"Dr {n // 2}"} for n in range(6)]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    forget_providers()


def rules(folder: Path, provider: str = "") -> Rulebook:
    given = f"providers: {{badges: {{{provider}, key: badge}}}}" if provider else ""
    return load(SourceText(str(folder / "r.cdl.yaml"), RULES.format(lookup=LOOKUP, providers=given)), allow_db=True)


def write_csv(folder: Path) -> str:
    lines = ["badge,physician", *(f"{row['badge']},{row['physician']}" for row in ROWS)]
    (folder / "badges.csv").write_text("\n".join(lines), encoding="utf-8")
    return "kind: csv, href: badges.csv"


def write_parquet(folder: Path) -> str:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(ROWS), folder / "badges.parquet")
    return "kind: parquet, href: badges.parquet"


def write_database(folder: Path) -> str:
    sa = pytest.importorskip("sqlalchemy")
    with sa.create_engine(f"sqlite:///{folder / 'ward.db'}").begin() as connection:
        connection.execute(sa.text("create table badges (badge text primary key, physician text)"))
        connection.execute(sa.text("insert into badges values (:badge, :physician)"), ROWS)
    return "kind: sql, href: 'sqlite:///ward.db#badges'"


@pytest.mark.parametrize("write", [write_csv, write_parquet, write_database])
def test_workers_read_no_file(spark: Any, tmp_path: Path, write: Any) -> None:
    """It is gone before any task runs."""
    book = rules(tmp_path, write(tmp_path))
    wanted = expected(book, EVENTS)
    assert len(wanted) > 20
    made = frame_of(spark, EVENTS).transform(on_spark.detect(book))
    empty(tmp_path)
    assert texts_of_rows(made.collect()) == wanted


@pytest.mark.parametrize("write", [write_csv, write_database])
def test_streaming(spark: Any, tmp_path: Path, write: Any) -> None:
    book = rules(tmp_path, write(tmp_path))
    wanted = expected(book, EVENTS)
    if write is write_csv:  # a database is asked for all of its table when the query is made
        empty(tmp_path)
    assert texts(e for b in runner.run_streaming(book, [EventBatch(list(EVENTS))]) for e in b.events) == wanted


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def frame_of(spark: Any, events: list[Event]) -> Any:
    rows = [(e.type, e.hi // 1000, e.id, e.attributes["badge"], e.attributes["room"]) for e in events]
    return spark.createDataFrame(rows, "type string, time bigint, id string, badge string, room double")


def test_a_table_of_a_data_frame(spark: Any, tmp_path: Path) -> None:
    badges = spark.createDataFrame([(row["badge"], row["physician"]) for row in ROWS], "badge string, physician string")
    register_provider("badges", table(badges, key="badge"))
    book = rules(tmp_path)
    forget_providers()
    made = frame_of(spark, EVENTS).transform(on_spark.detect(book))
    counts = {row["who"]: row["count"] for row in made.groupBy("who").count().collect()}
    wanted = expected(book, EVENTS)
    assert counts == {f"Dr {n}": sum(f'"Dr {n}"' in line for line in wanted) for n in range(3)}


def test_a_function_goes_to_the_workers(spark: Any, tmp_path: Path) -> None:
    width = 2
    register_provider("badges", lambda key, column: f"{column} {int(key[1:]) // width}")
    book = rules(tmp_path)
    made = frame_of(spark, EVENTS).transform(on_spark.detect(book))
    assert texts_of_rows(made.collect()) == expected(book, EVENTS)


def test_what_cannot_be_sent_is_named(spark: Any, tmp_path: Path) -> None:
    lock = threading.Lock()
    register_provider("badges", lambda key, column: str(lock))
    with pytest.raises(CoincideError, match=r"cannot be sent to Spark's workers \(registered look-up badges\)"):
        frame_of(spark, EVENTS).transform(on_spark.detect(rules(tmp_path)))


def test_what_is_sent_is_a_broadcast(spark: Any, tmp_path: Path) -> None:
    from pyspark import Broadcast

    tables = tables_of(rules(tmp_path, write_csv(tmp_path)), spark)
    assert tables is not None
    assert isinstance(tables.shipped.reference, Broadcast)
    assert len(tables.read()) == 1
    assert tables_of(load(SourceText("r.ecl", "monitor m = repeat { push(p) { sequential { a, b } } }")), spark) is None
