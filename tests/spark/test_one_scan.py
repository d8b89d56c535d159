"""All groups of detectors read the source once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import expected, texts_of_rows

from coincide import spark as on_spark
from coincide.model.event import Event, primitive
from coincide.rulebook import load, loads
from coincide.source import SourceText

pytestmark = pytest.mark.spark

THREE_KEYS = """
monitor users by user = repeat { push(x) { sequential { a, b } } }
monitor hosts by host = repeat { push(y) { sequential { a, c } } }
monitor all = repeat { push(z) { sequential { b, c } } }
"""
TICKING = """<amit>
  <event name="never"/>
  <lifespan name="L"><initiator><startup/></initiator><terminator><eventTerminator event="never"/></terminator></lifespan>
  <situation name="tick" lifespan="L"><operator><every interval="10"/></operator></situation>
</amit>"""
SCHEMA = "type string, time bigint, id string, user string, host string, idle string"


def events_of_three_keys(size: int) -> list[Event]:
    """Every fourth event is of no interest to any rule."""
    return [
        primitive("abcd"[n % 4], n * 1000, n * 1000, f"e{n}", {"user": f"u{n % 7}", "host": f"h{n * n % 5}"}) for n in range(size)
    ]


def stored(spark: Any, events: list[Event], folder: Path) -> Any:
    rows = [(e.type, e.hi // 1000, e.id, e.attributes["user"], e.attributes["host"], "idle") for e in events]
    spark.createDataFrame(rows, SCHEMA).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def nodes(plan: Any) -> list[Any]:
    below = plan.children()
    return [plan, *(node for number in range(below.size()) for node in nodes(below.apply(number)))]


@pytest.fixture
def settled(spark: Any) -> Any:
    """Plans that do not change while they run, so that their nodes can be looked at."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.adaptive.enabled")


def test_three_rules_of_three_keys_read_the_source_once(settled: Any, tmp_path: Path) -> None:
    events = events_of_three_keys(400)
    rules = loads(THREE_KEYS)
    found = on_spark.detect(rules, stored(settled, events, tmp_path / "events"))
    assert texts_of_rows(found.collect()) == expected(rules, events)
    plan = nodes(found._jdf.queryExecution().executedPlan())
    [scan] = [node for node in plan if "FileScan" in node.simpleString(25)]
    assert "idle" not in scan.simpleString(25)
    [exchange] = [node for node in plan if node.nodeName() == "Exchange"]
    # a: users and hosts, b: users and all, c: hosts and all, d: nobody
    assert exchange.metrics().apply("shuffleRecordsWritten").value() == 600


@pytest.mark.parametrize("beside", [(), (SourceText("three.ecl", THREE_KEYS),)])
def test_time_passes_for_rules_that_no_event_concerns(spark: Any, tmp_path: Path, beside: tuple[SourceText, ...]) -> None:
    rules = load(SourceText("tick.amit.xml", TICKING), *beside)
    events = events_of_three_keys(40)
    found = on_spark.detect(rules, stored(spark, events, tmp_path / "events"))
    assert texts_of_rows(found.collect()) == expected(rules, events)
