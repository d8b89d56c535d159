"""All groups of detectors read the source once."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import expected, texts, texts_of_rows
from test_stages import EVERY_LANGUAGE, events_of

from coincide import spark as on_spark
from coincide.engines.spark import runner
from coincide.engines.spark.description import explain_spark
from coincide.engines.spark.hashing import key_hash
from coincide.model.batch import EventBatch
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
CHAIN = """
monitor users by user = repeat { push(x, host: host) { sequential { a, b } } }
monitor again by user = repeat { push(w, host: host) { sequential { x, x } } }
monitor hosts by host = repeat { push(y, user: user) { sequential { x, w, c } } }
monitor all = repeat { push(z, user: user) { sequential { y, x, a } } }
"""
NUMEROUS = f"monitor numerous = push(all) {{ accumulate {{ {', '.join(f'e{n}' for n in range(12))} }} }}"
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


@pytest.mark.brief(parameters=1)
@pytest.mark.parametrize("beside", [(), (SourceText("three.ecl", THREE_KEYS),)])
def test_time_passes_for_rules_that_no_event_concerns(spark: Any, tmp_path: Path, beside: tuple[SourceText, ...]) -> None:
    rules = load(SourceText("tick.amit.xml", TICKING), *beside)
    events = events_of_three_keys(40)
    found = on_spark.detect(rules, stored(spark, events, tmp_path / "events"))
    assert texts_of_rows(found.collect()) == expected(rules, events)


def crowded_events(size: int) -> list[Event]:
    """Many at one instant, some of them equal in all but their id."""
    rng = Random(7)
    return [
        primitive(
            rng.choice("aabbcd"),
            (n // 9) * 1000,
            (n // 9) * 1000,
            f"e{rng.randrange(10**6)}",
            {"user": f"u{rng.randrange(4)}", "host": f"h{rng.randrange(3)}"},
        )
        for n in range(size)
    ]


@pytest.mark.parametrize("rules", [CHAIN], ids=["ecl"])
def test_rules_that_feed_rules_of_other_keys_are_stages(settled: Any, tmp_path: Path, rules: str) -> None:
    events = crowded_events(600)
    book = loads(rules)
    found = on_spark.detect(book, stored(settled, events, tmp_path / "events"))
    wanted = expected(book, events)
    assert {json.loads(text)["type"] for text in wanted} == {"x", "w", "y", "z"}
    assert texts_of_rows(found.collect()) == wanted
    plan = nodes(found._jdf.queryExecution().executedPlan())
    assert len([node for node in plan if "FileScan" in node.simpleString(25)]) == 1
    assert len([node for node in plan if node.nodeName() == "Exchange"]) == 3


def test_keys_of_detections_are_hashed_as_spark_does(spark: Any) -> None:
    values: list[tuple[float | None, str | None, bool | None]] = [
        (number, text, flag)
        for number in (None, 0.0, -1.5, 2.0**60)
        for text in (None, "", "a", "user-1", "é" * 9, "x" * 31, "0123456789abcdef" * 5 + "tail")
        for flag in (None, True, False)
    ]
    frame = spark.createDataFrame(values, "number double, text string, flag boolean")
    found = [row[0] for row in frame.selectExpr("xxhash64(number, text, flag)").collect()]
    assert found == [key_hash(value) for value in values]


def test_every_language_together(spark: Any) -> None:
    """One set of rules, three stages, groups by user, by host, without a key and without state."""
    book = load(*EVERY_LANGUAGE)
    events = events_of(0)
    assert texts(event for batch in runner.run_batch(book, [EventBatch(events)]) for event in batch.events) == expected(
        book, events
    )


def test_stages_of_a_stream(spark: Any) -> None:
    book = loads(CHAIN)
    events = crowded_events(400)
    made = runner.run_streaming(book, [EventBatch(events)], files=3)
    assert texts(event for batch in made for event in batch.events) == expected(book, events)
    told = explain_spark(book, streaming=True).text()
    assert "exchanges: 3, one before each stage" in told


FORGETFUL = [
    SourceText("r.ecl", "monitor all = repeat { push(z, user: user) { sequential { a, b, c } } }"),
    SourceText("r.ce", "detect O = ([a], [b] [c]) T = 2ms"),
]
MONITORS = [
    SourceText("u.ecl", f"monitor count = push(all) {{ sequential {{ {', '.join('d' * 130)} }} }}"),
    SourceText("v.ecl", "monitor pairs = repeat { push(pair, user: user) { sequential { d, d } } }"),
    SourceText("w.ecl", "monitor once = push(late, host: host) { sequential { a, never or all } }"),
    SourceText("x.ecl", "monitor of_pairs = repeat { push(four) { sequential { pair, pair } } }"),
]
STUBBORN = [*FORGETFUL, SourceText("s.ce", "detect S = [d] ; [d] ; [never]")]


@pytest.mark.brief(parameters=2)
@pytest.mark.parametrize(("rules", "again"), [(FORGETFUL, 1), (MONITORS[:2], 0), (MONITORS, 3)])
def test_rules_without_a_key_in_ranges_of_time(
    spark: Any, tmp_path: Path, caplog: Any, rules: list[SourceText], again: int
) -> None:
    """Each range has a task. Rules that forget have forgotten soon what was before; monitors are tried from all states, whatever
    they remember, and run again only where what others read of them was not foreseen. The answer is that of one task."""
    events = crowded_events(900)
    book = load(*rules)
    frame = stored(spark, events, tmp_path / "events")
    with caplog.at_level("INFO", "coincide.spark"):
        found = on_spark.detect(book, frame, ranges=4)
    assert f"4 ranges of time; run again: {again}" in caplog.text
    assert texts_of_rows(found.collect()) == expected(book, events)
    assert "InMemoryTableScan" in found._jdf.queryExecution().executedPlan().toString()


@pytest.mark.brief(parameters=1)
@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (STUBBORN, "what was before ranges still matters after 2 more rounds: O, S"),
        ([SourceText("t.amit.xml", TICKING)], "'tick' acts without events"),
        ([SourceText("t.ecl", THREE_KEYS)], "ranges are for rules in one stage, none of which has a key"),
    ],
)
def test_what_is_not_cut_says_why(spark: Any, tmp_path: Path, rules: list[SourceText], reason: str) -> None:
    events = crowded_events(300)
    book = load(*rules)
    frame = stored(spark, events, tmp_path / "events")
    with pytest.warns(UserWarning, match=f"ranges=4: all that has no key goes to one task\n.*{reason}"):
        found = on_spark.detect(book, frame, ranges=4)
    assert texts_of_rows(found.collect()) == expected(book, events)


def test_how_ranges_begin_is_told(spark: Any) -> None:
    told = explain_spark(load(*STUBBORN, SourceText("n.ecl", NUMEROUS))).text()
    assert "with ranges=N: in ranges of time side by side\n" in told
    assert "all: begins in each of its 3 states, until these have come to one\n" in told
    assert "numerous: begins early, and is compared with the end of the range before, since it has more than" in told
    assert "O: begins early, and is compared with the end of the range before\n" in told
    assert "with ranges=N: in one task all the same: ranges are for rules" in explain_spark(loads(THREE_KEYS)).text()
