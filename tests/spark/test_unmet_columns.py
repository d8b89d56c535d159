"""DataFrames that do not fit the rules: what is missing is told, rows that are no events are counted and shown."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coincide import DataWarning
from coincide.engines.spark import runner, telling
from coincide.engines.spark.progress import unit_warning
from coincide.errors import CoincideError, InputError
from coincide.rulebook import loads
from coincide.spark import Report, detect, split

pytestmark = pytest.mark.spark

KEYED = "monitor m by user = repeat { push(found, n: n) { sequential { login, logout } } }"
RULES = {
    "ecl": KEYED,
    "ecco": "detect found per user = login ; not logout over 5s",
    "opera": "detect found = ([login(user = ?u)], [logout]) T = 5s",
    "amit": """<amit><event name="login"><eventAttribute name="user" type="string"/></event>
      <lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
      <situation name="found" lifespan="l"><operator><every interval="1000"/></operator></situation></amit>""",
    "cdl": """<cd id="c" version="1"><sources>
        <source class="login" anchor="A"><attribute name="user" type="string"/></source>
        <source class="logout" anchor="B"><attribute name="user" type="string"/></source></sources>
      <predicates><predicate name="equal" anchor="P">A.user, B.user</predicate></predicates>
      <expressions><expression anchor="X">P</expression></expressions>
      <events><event class="found" trigger="X"/></events></cd>""",
    "eql": "sequence by user with maxspan=5s [login where true] ![logout where true]",
    "sigma": """
name: login
logsource: {category: login}
detection: {s: {user|exists: true}, condition: s}
---
name: found
correlation: {type: event_count, rules: [login], group-by: [user], timespan: 5s, condition: {lt: 3}}
""",
    "matchrecognize": """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY user ORDER BY time
      MEASURES LAST(A.time) AS last PATTERN (A B* $) WITHIN INTERVAL '5' SECOND
      DEFINE A AS type = 'login', B AS type = 'logout') AS found""",
}
SCHEMA = "type string, time string, user string, n double"
ROWS = [
    ("login", "2026-03-01T00:00:00Z", "eve", 1.0),
    ("logout", "2026-03-01T00:00:01Z", "eve", 2.0),
    (None, "2026-03-01T00:00:01Z", "ann", None),
    ("login", "yesterday", "bob", None),
    ("login", None, "bob", None),
]


def messages(caught: Any) -> list[str]:
    return [str(each.message).splitlines()[0] for each in caught if each.category is DataWarning]


@pytest.mark.parametrize("language", RULES)
def test_an_empty_frame_gives_nothing(spark: Any, language: str) -> None:
    rules = loads(RULES[language], language)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for schema in (SCHEMA, "type string, time long"):
            assert detect(rules, spark.createDataFrame([], schema), until="inf").collect() == []
    assert list(runner.run_batch(rules, [], 10_000_000)) == list(runner.run_streaming(rules, [], 10_000_000)) == []


def test_columns_are_checked_before_the_run(spark: Any) -> None:
    frame = spark.createDataFrame([("login", 1, "eve", "many")], "type string, time long, usr string, n string")
    rules = loads("monitor m by user = repeat { push(found) { login and n > 3 } }")
    with pytest.warns(DataWarning) as caught:
        assert frame.transform(detect(rules)).collect() == []
    assert {each.filename for each in caught if each.category is DataWarning} == {__file__}
    assert messages(caught) == [
        "rules.ecl:1:14: warning: the table has no column for the key 'user'; did you mean 'usr'?",
        "rules.ecl:1:56: warning: cannot compare a string with a number",
    ]
    with pytest.raises(InputError, match="a time column cannot be of type boolean"):
        detect(rules, spark.createDataFrame([("login", True)], "type string, time boolean"))


def test_a_report_of_a_batch(spark: Any) -> None:
    report = Report()
    typo = loads(KEYED.replace("logout", "logut") + "monitor other = repeat { push(x) { login } }")
    found = detect(typo, spark.createDataFrame(ROWS, SCHEMA), report=report)
    assert [row["type"] for row in found.collect()] == ["x"]
    assert (report.rows, report.rejected) == (5, 3)
    assert str(report).splitlines()[:3] == [
        "warning: 3 of 5 rows have no type or no time: left out",
        "    hint: detect(…, rejects=True) shows them",
        "rules.ecl:1:70: warning: no event had the type 'logut'; did you mean 'logout' (1 event)?",
    ]
    with pytest.raises(CoincideError, match="make another one"):
        detect(typo, spark.createDataFrame(ROWS, SCHEMA), report=report)


def test_a_report_of_a_run_that_read_nothing(spark: Any) -> None:
    """Without the column of its key no row concerns the rule, so Spark reads none."""
    report = Report()
    with pytest.warns(DataWarning):
        found = detect(loads(KEYED.replace("by user", "by usr")), spark.createDataFrame(ROWS, SCHEMA), report=report)
    assert found.collect() == []
    assert (report.rows, report.rejected) == (5, 3)


def test_what_a_job_before_the_run_shows_is_told_at_once(spark: Any) -> None:
    rules = loads(RULES["ecco"].replace("login", "logn"), "ecco")
    with pytest.warns(DataWarning) as caught:
        detect(rules, spark.createDataFrame(ROWS, SCHEMA))
    assert messages(caught) == [
        "3 of 5 rows have no type or no time: left out",
        "rules.ecco:1:25: warning: no event had the type 'logn'; did you mean 'login' (1 event)?",
    ]


def told_after(made: Callable[[], Any]) -> list[str]:
    """What is told once an action on a frame is done: Spark notes that a little later."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made().collect()
        for _ in range(600):
            telling.tell_what_is_over()
            if not telling._waiting:
                break
            time.sleep(0.1)
    return messages(caught)


def test_a_type_that_never_came_is_told_without_a_report(spark: Any) -> None:
    """Once, after the action."""
    rows = spark.createDataFrame(ROWS, SCHEMA)
    telling._waiting.clear()
    found = detect(loads(KEYED.replace("logout", "logut")), rows)
    assert told_after(lambda: found) == ["rules.ecl:1:70: warning: no event that the rules could use had the type 'logut'"]
    assert told_after(lambda: found) == []
    assert told_after(lambda: detect(loads(KEYED), rows)) == []


OTHER = "monitor other by n = repeat { push(x) { login } }"
FREE = "monitor free = repeat { push(y) { sequential { login, logut } } }"
PLENTY = [("login" if n % 3 else "logout", f"2026-03-01T00:00:{n // 10:02}.{n % 10}Z", "eve", float(n)) for n in range(600)]


@pytest.mark.parametrize(
    ("rules", "rows", "ranges", "types"),
    [
        pytest.param(KEYED.replace("logout", "logut") + OTHER, ROWS, None, ["logut"], id="several groups"),
        pytest.param(KEYED + OTHER + FREE, ROWS, None, ["logut"], id="one of them without a key"),
        pytest.param(KEYED + "monitor next = repeat { push(z) { found and logut } }", ROWS, None, ["logut"], id="stages"),
        pytest.param(
            KEYED, [("logon", "2026-03-01T00:00:00Z", "eve", 1.0)], None, ["login", "logout"], id="no type that matches"
        ),
        pytest.param(KEYED, [], None, ["login", "logout"], id="no rows"),
        pytest.param(FREE, PLENTY, 3, ["logut"], id="ranges of time"),
        pytest.param(FREE + OTHER, ROWS, 3, ["logut"], id="ranges that are not cut"),
        pytest.param(FREE, ROWS[:1], 3, ["logut"], id="too little to cut"),
    ],
)
def test_types_are_missed_wherever_rules_run(spark: Any, rules: str, rows: Any, ranges: int | None, types: list[str]) -> None:
    telling._waiting.clear()
    told = told_after(lambda: detect(loads(rules), spark.createDataFrame(rows, SCHEMA), ranges=ranges))
    words = "warning: no event that the rules could use had the type "
    assert [message.partition(words)[2] for message in told if words in message] == [f"'{name}'" for name in types]


def test_rejected_rows_as_rows(spark: Any) -> None:
    rules = loads(KEYED)
    found = detect(rules, spark.createDataFrame(ROWS, SCHEMA), rejects=True)
    detections, rejected = split(found)
    assert [row["n"] for row in detections.collect()] == [2.0]
    assert detections.columns == detect(rules, spark.createDataFrame(ROWS, SCHEMA)).columns
    assert sorted((row["reason"], row["user"]) for row in rejected.collect()) == [
        ("missing time", "bob"),
        ("missing type", "ann"),
        ("time must be a number, an ISO-8601 text or [lo, hi] of these", "bob"),
    ]
    assert len(split(detect(rules, spark.createDataFrame(ROWS, SCHEMA), rejects=True, late=True))) == 3


def test_a_stream_counts_rows_and_shows_rejects(spark: Any, tmp_path: Path) -> None:
    spark.createDataFrame(ROWS, SCHEMA).coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    found = stream.transform(detect(loads(KEYED), delay="0 seconds", rejects=True))
    kept: list[Any] = []
    query = (
        found.writeStream.foreachBatch(lambda batch, _: kept.extend(split(batch)[1].collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counted = [p.observedMetrics["coincide_rows"] for p in query.recentProgress if "coincide_rows" in p.observedMetrics]
    assert [(row["rows"], row["rejected"]) for row in counted if row["rows"]] == [(5, 3)]
    assert len(kept) == 3
    (times,) = [p.observedMetrics["coincide_times"] for p in query.recentProgress if p.numInputRows]
    assert (times["earliest"], times["latest"], times["unit"]) == (1772323200000000, 1772323201000000, "ms")
    assert unit_warning({"coincide_times": times}) is None
    told = unit_warning({"coincide_times": {name: t if name == "unit" else t // 1000 for name, t in times.asDict().items()}})
    assert told is not None
    assert told.startswith("warning: all times lie in 1970, if they are taken as ms\n    hint: they look like s since 1970")


def test_times_in_another_unit_are_told(spark: Any) -> None:
    frame = spark.createDataFrame([("login", 1_767_225_600 + n, "eve") for n in range(3)], "type string, time long, user string")
    rules = loads(RULES["ecco"], "ecco")
    with pytest.warns(DataWarning, match="all times lie in 1970, if they are taken as ms"):
        frame.transform(detect(rules)).collect()
    report = Report()
    frame.transform(detect(loads(KEYED), report=report)).collect()
    assert "all times lie in 1970" in str(report)
