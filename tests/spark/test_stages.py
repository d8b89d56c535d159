"""Stages whose keys differ: whatever task holds what, detections stand at their exact place. Spark's part is played by lists."""

from __future__ import annotations

import json
from collections import defaultdict
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from support import expected, texts

from coincide.engines.spark.crossing import Reader
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.groups import Cutting, groups
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.rows import ordered
from coincide.engines.spark.staging import stages
from coincide.engines.spark.worker import Span, Task, sources_of
from coincide.expr.functions import TEXT
from coincide.model.event import Event, primitive
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

LAYOUT = Layout(("hi", "lo", "type", "id", ".user", ".host"))
KINDS = [pa.int64(), pa.int64(), pa.string(), pa.string(), pa.string(), pa.string()]
ROWS = pa.schema([*zip(LAYOUT.wire, KINDS, strict=True), ("tag", pa.int32()), ("spread", pa.int64())])
OUTPUTS = Outputs((("count", None), ("h", TEXT), ("host", TEXT), ("user", TEXT)))

USERS = "monitor users by user = repeat { push(x, host: host) { sequential { a, b } } }\n"
AGAIN = "monitor again by user = repeat { push(w, host: host) { sequential { x, x } } }\n"
HOSTS = "monitor hosts by host = repeat { push(y, user: user) { sequential { x, w, c } } }\n"
ALL = "monitor all = repeat { push(z, user: user) { sequential { y, x, a } } }\n"
QUIET = """<amit>
  <event name="a"><eventAttribute name="user" type="string"/><eventAttribute name="host" type="string"/></event>
  <event name="d"><eventAttribute name="user" type="string"/><eventAttribute name="host" type="string"/></event>
  <lifespan name="L">
    <initiator><eventInitiator event="a"/></initiator>
    <terminator><expirationInterval timeInterval="2"/></terminator>
    <keyBy attribute="user"/>
  </lifespan>
  <situation name="x" lifespan="L">
    <operator><not><operandNot event="d"/></not></operator>
    <situationAttribute name="user" type="string" expression="a.user"/>
    <situationAttribute name="host" type="string" expression="a.host"/>
  </situation>
</amit>"""
QUIETER = """
  <event name="c"><eventAttribute name="user" type="string"/><eventAttribute name="host" type="string"/></event>
  <lifespan name="M">
    <initiator><eventInitiator event="x"/></initiator>
    <terminator><expirationInterval timeInterval="2"/></terminator>
    <keyBy attribute="host"/>
  </lifespan>
  <situation name="y" lifespan="M">
    <operator><not><operandNot event="a"/></not></operator>
    <situationAttribute name="user" type="string" expression="x.user"/>
    <situationAttribute name="host" type="string" expression="x.host"/>
  </situation>
  <lifespan name="N">
    <initiator><eventInitiator event="y"/></initiator>
    <terminator><expirationInterval timeInterval="1"/></terminator>
  </lifespan>
  <situation name="z" lifespan="N">
    <operator><not><operandNot event="x"/></not></operator>
    <situationAttribute name="user" type="string" expression="y.user"/>
    <situationAttribute name="host" type="string" expression="y.host"/>
  </situation>
</amit>"""
SIGMA = """
name: U
logsource: {category: a}
detection: {s: {user|endswith: '1'}, condition: s}
---
name: V
correlation: {type: event_count, rules: [U], group-by: [host], timespan: 1s, condition: {gte: 3}}
"""
EVERY_LANGUAGE = [
    SourceText("1.amit.xml", QUIET),
    SourceText("2.ecl", AGAIN + HOSTS),
    SourceText("3.ce", "detect O = [y(host = ?h)] ; [c(host = ?h)]"),
    SourceText("4.say", 'Report P when y then w within "10ms".'),
    SourceText("5.ecco", "detect Q per host = (y ; c) within 20"),
    SourceText(
        "6.cdl.xml",
        """<cd id="c" version="1" within="10 s">
          <sources>
            <source class="x" anchor="A"><attribute name="user" type="string"/></source>
            <source class="w" anchor="B"><attribute name="user" type="string"/></source>
          </sources>
          <predicates><predicate name="equal" anchor="J">A.user, B.user</predicate></predicates>
          <expressions><expression anchor="X">J</expression></expressions>
          <events><event class="R" trigger="X"><attribute name="user" type="string">A.user</attribute></event></events>
        </cd>""",
    ),
    SourceText("7.eql", "// @name S\nsequence by user with maxspan=20ms [y where true] [c where true]"),
    SourceText("8.yml", SIGMA),
    SourceText(
        "9.mr.sql",
        "SELECT * FROM y MATCH_RECOGNIZE (ORDER BY time MEASURES LAST(user) AS user PATTERN (A A) DEFINE A AS TRUE) AS T",
    ),
]
"""Each reads what the first two detect, by user, by host or without a key."""
SETS = {
    "monitors": [SourceText("r.ecl", USERS + AGAIN + HOSTS + ALL)],
    "timers": [SourceText("q.amit.xml", QUIET), SourceText("r.ecl", AGAIN + HOSTS + ALL)],
    "every language": EVERY_LANGUAGE,
    "timers of timers": [SourceText("q.amit.xml", QUIET.replace("</amit>", QUIETER))],
}


def events_of(seed: int, size: int = 240) -> list[Event]:
    """Many at one instant; ids that are numbers and others."""
    rng = Random(seed)
    made = []
    for number in range(size):
        moment = number // rng.choice([5, 6]) * 1000
        name = rng.choice([f"e{rng.randrange(10**6)}.{number}", str(number)])
        users = {"user": f"u{rng.randrange(4)}", "host": f"h{rng.randrange(3)}"}
        made.append(primitive(rng.choice("aaabbccd"), moment, moment, name, users))
    return made


def row_of(event: Event, tag: int, reader: Reader) -> tuple[Any, ...]:
    values = (event.attributes["user"], event.attributes["host"])
    return (event.hi, event.lo, event.type, event.id, *values, tag, reader.spread(event))


def detected(book: Rulebook, events: list[Event], tasks: int, until: float | None = None) -> list[str]:
    planned = [(group, group.plans(book)) for group in groups(book, cutting=Cutting())]
    first, last = min(e.hi for e in events), max(e.hi for e in events)
    works = [(Task(sources_of(book), group.members, "kernel", LAYOUT, OUTPUTS), Span(first, last, until)) for group, _ in planned]
    rows = [
        row_of(event, tag, Reader(tag, group.key or (), False, frozenset()))
        for tag, (group, _) in enumerate(planned)
        for event in events
    ]
    Random(1).shuffle(rows)
    batch = pa.RecordBatch.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], schema=ROWS)
    batches = [batch]
    for stage in stages(LAYOUT, planned, works):
        batches = [made for task in exchanged(batches, tasks) for made in stage(task)]
    table = pa.Table.from_batches(batches, OUTPUTS.arrow())
    return texts(event for some in ordered(table, table.column_names) for event in some.events)


def exchanged(batches: list[pa.RecordBatch], tasks: int) -> list[list[pa.RecordBatch]]:
    """All rows of a tag and spread in one task."""
    placed: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for batch in batches:
        numbers = [hash(pair) % tasks for pair in zip(batch["tag"].to_pylist(), batch["spread"].to_pylist(), strict=True)]
        for task in set(numbers):
            placed[task].append(batch.filter(pa.array([number == task for number in numbers])))
    return list(placed.values())


@pytest.mark.parametrize("tasks", [1, 5])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.matrix) for seed in (1, 2, 3))])
@pytest.mark.parametrize("name", SETS)
def test_stages_give_the_same(name: str, seed: int, tasks: int) -> None:
    book = load(*SETS[name])
    events = events_of(seed)
    for until in (None, events[-1].hi + 20_000):
        wanted = expected(book, events, until)
        assert len({json.loads(text)["type"] for text in wanted}) > 2
        assert detected(book, events, tasks, until) == wanted


def test_keyed_rules_are_not_dragged_into_one_task() -> None:
    found = groups(load(*SETS["monitors"]), cutting=Cutting())
    assert [(g.stage, g.key, g.names) for g in found] == [
        (0, ("user",), ("users", "again")),
        (1, ("host",), ("hosts",)),
        (2, None, ("all",)),
    ]
    assert found[2].reasons == ("'all' has no key",)


def test_what_cannot_be_cut_says_why() -> None:
    reader = SourceText("r.ecl", "monitor all = push(z) { Q }")
    [ecco] = groups(load(SourceText("q.ecco", "detect Q per host = (a ; c) within 20"), reader), cutting=Cutting())
    assert ecco.reasons == ("'all' has no key", "what 'Q' detects is ordered across keys")
    endless = QUIET.replace('<expirationInterval timeInterval="2"/>', '<eventTerminator event="d"/>')
    ticking = endless.replace('<not><operandNot event="d"/></not>', '<every interval="1"/>')
    [amit] = groups(load(SourceText("q.amit.xml", ticking), SourceText("r.ecl", ALL.replace("y, x", "x, x"))), cutting=Cutting())
    assert amit.reasons == ("'all' has no key", "'x' acts without events")
