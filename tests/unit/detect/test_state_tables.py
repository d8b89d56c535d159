"""State as tables: what is written is read again, changes lead from one state to the next, and whatever the bytes are, every
reference is to a row that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.adapters.read import open_events
from coincide.detection.columns.codec import (
    Relations,
    Written,
    decode,
    encode,
    owned_rows,
    pack,
    renumbered,
    rows_of,
)
from coincide.detection.columns.store import NOTHING, event_bytes, events_from, some_events, spread
from coincide.detection.columns.tables import Shape, Table, are_among, distinct, numbered
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.event import caused, detection, primitive, record, timer_place
from coincide.model.table import EventTable, table_of
from coincide.rulebook import load, loads

CASES = Path(__file__).parents[2] / "conformance/cases"

KEYS = Shape("keys", "definition", "first last", valued=True)
ITEMS = Shape("items", "key>keys event>events before>items?", parts="size")
MARKS = Shape("marks", "item>items mark", owner="item")
SHAPES = (KEYS, ITEMS, MARKS)


class Owner:
    """A state of two tables and lists of marks, and the same as plain objects."""

    def __init__(self) -> None:
        self.keys, self.items = Table(KEYS), Table(ITEMS, 2)
        self.marks: dict[int, list[int]] = {}
        self.events: list[Any] = []
        self.written = 0

    def add(self, key: str, size: int) -> None:
        known = [number for number in self.keys.live().tolist() if self.keys.values[number] == [key]]
        (row,) = known or self.keys.add(1).tolist()
        self.keys.rows[row, KEYS.columns.definition] = 7
        self.keys.values[row] = [key]
        others = self.items.live()
        (item,) = self.items.add(1).tolist()
        before = int(others[0]) if len(others) else -1
        self.events.append(primitive("a", len(self.events), len(self.events), f"e{len(self.events)}", {"size": float(size)}))
        self.items.rows[item, ITEMS.columns.key : ITEMS.columns.key + 5] = row, len(self.events) - 1, before, size, -size
        self.marks[item] = list(range(size))

    def remove(self, nth: int) -> None:
        live = self.items.live().tolist()
        if live:
            gone = live[nth % len(live)]
            rows = self.items.rows
            after = [n for n in live if n != gone and rows[n, ITEMS.columns.before] == gone]
            rows[after, ITEMS.columns.before] = -1
            self.items.touch(np.array(after, np.int64))
            self.items.free(np.array([gone]))
            del self.marks[gone]

    def relations(self, since_last: bool) -> Relations:
        rows = {table.shape.name: rows_of(table, since_last) for table in (self.keys, self.items)}
        pairs = [(item, mark) for item in rows["items"].numbers.tolist() for mark in self.marks[item]]
        flat = np.array(pairs, np.int64).reshape(-1, 2)
        rows["marks"] = owned_rows(MARKS, {"item": flat[:, 0], "mark": flat[:, 1]})
        refs = np.unique(rows["items"].columns["event"])
        if since_last:
            refs = refs[refs >= self.written]
        epoch = int(self.keys.head[3])
        return Relations("test", rows, refs, self._taken(refs), {"n": np.array([3])}, epoch if since_last else 0, epoch + 1)

    def _taken(self, refs: Any) -> EventTable:
        return table_of([self.events[ref] for ref in refs.tolist()]) if len(refs) else NOTHING

    def next(self) -> None:
        self.written = len(self.events)
        for table in (self.keys, self.items):
            table.next_epoch()


def meaning(relations: Relations) -> list[Any]:
    """What is said, whatever the numbers of rows."""
    keys, items, marks = (relations.rows[name] for name in ("keys", "items", "marks"))
    names = dict(zip(keys.numbers.tolist(), keys.values or (), strict=True))
    ids = dict(zip(relations.refs.tolist(), [e.id for e in relations.events.events()], strict=True))
    events = dict(zip(items.numbers.tolist(), [ids[n] for n in items.columns["event"].tolist()], strict=True))
    told = []
    for row, number in enumerate(items.numbers.tolist()):
        before = int(items.columns["before"][row])
        own = sorted(marks.columns["mark"][marks.columns["item"] == number].tolist())
        sizes = [int(items.columns[f"size.{part}"][row]) for part in range(2)]
        told.append([names[int(items.columns["key"][row])], events[number], events.get(before), sizes, own])
    return sorted(told, key=str)


actions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abc"), st.integers(0, 300)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("write")),
    ),
    max_size=25,
)


@given(actions)
@settings(max_examples=60, deadline=None)
def test_changes_lead_to_the_same_state_as_the_whole(actions: list[tuple[Any, ...]]) -> None:
    owner = Owner()
    base, changes = encode(owner.relations(False)), []
    owner.next()
    for action, *arguments in [*actions, ("write",)]:
        if action == "write":
            changes.append(encode(owner.relations(True)))
            owner.next()
        else:
            getattr(owner, action)(*arguments)
    expected = meaning(owner.relations(False))
    found = decode(SHAPES, "test", base, *changes)
    assert meaning(found) == expected
    assert meaning(decode(SHAPES, "test", encode(owner.relations(False)))) == expected
    assert meaning(renumbered(found)) == expected


def test_what_is_written_is_what_was_touched() -> None:
    owner = Owner()
    for number in range(1000):
        owner.add("a", number % 3)
    owner.next()
    owner.remove(500)
    owner.add("a", 1)
    changes = owner.relations(True)
    assert len(changes.rows["items"]) + len(changes.rows["items"].freed) <= 2
    assert len(changes.refs) == 1
    assert len(encode(changes)) < 3000


def test_rows_are_used_again() -> None:
    table = Table(ITEMS, 2)
    first = table.add(20)
    table.free(first[5:15])
    again = table.add(10)
    assert sorted(again.tolist()) == list(range(5, 15))
    assert len(table) == 20
    assert table.records["key"].tolist() == [-1] * 20


def spoilt(data: bytes, table: int, column: str, value: int) -> bytes:
    written = msgspec.msgpack.decode(data, type=Written)
    numbers = written.tables[table].columns[column]
    old = np.frombuffer(numbers.data, f"<{numbers.kind}").astype(np.int64)
    old[-1] = value
    written.tables[table].columns[column] = pack(old)
    return msgspec.msgpack.encode(written)


@pytest.mark.parametrize("value", [-2, 5, 1000, 2**40, -(2**63)])
@pytest.mark.parametrize("column", ["key", "event", "before"])
def test_a_reference_to_nothing_is_refused(column: str, value: int) -> None:
    owner = Owner()
    for size in range(3):
        owner.add("abc"[size], size)
    data = encode(owner.relations(False))
    with pytest.raises(ValueError, match=f"'{column}' of its table 'items' refers to a row that is not there"):
        decode(SHAPES, "test", spoilt(data, 1, column, value))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_bytes_of_any_kind_are_a_state_or_refused(data: st.DataObject) -> None:
    owner = Owner()
    for size in range(4):
        owner.add("ab"[size % 2], size)
    written = bytearray(encode(owner.relations(False)))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(SHAPES, "test", bytes(written))
    except (ValueError, msgspec.DecodeError, OSError, NotImplementedError, OverflowError, TypeError):
        return
    items = found.rows["items"]
    assert set(items.columns["key"].tolist()) <= set(found.rows["keys"].numbers.tolist())
    assert set(items.columns["event"].tolist()) <= set(found.refs.tolist())


def test_changes_without_what_was_before_are_refused() -> None:
    owner = Owner()
    base = encode(owner.relations(False))
    owner.next()
    owner.add("a", 1)
    first = encode(owner.relations(True))
    owner.next()
    second = encode(owner.relations(True))
    with pytest.raises(ValueError, match="changes are missing"):
        decode(SHAPES, "test", base, second)
    with pytest.raises(ValueError, match="a state that is not there"):
        decode(SHAPES, "test", first)
    assert len(decode(SHAPES, "test", base, first, second).rows["items"]) == 1


def test_events_are_written_as_they_are() -> None:
    events = [primitive("a", n, n + 5, f"e{n}", {"x": float(n), "t": "text", "b": n % 2 == 0}) for n in range(5)]
    table = table_of(events)
    found = events_from(event_bytes(table))
    assert [(e.type, e.lo, e.hi, e.id, e.attributes) for e in found.events()] == [
        (e.type, e.lo, e.hi, e.id, e.attributes) for e in table.events()
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.list_(pa.string())])
@pytest.mark.parametrize("bounds", [[0, 1, 9, 3, 4], [0, 2, 1, 3, 4], [0, -7, 1, 3, 4]])
def test_some_events_are_read_whatever_the_others_are(kind: pa.DataType, bounds: list[int]) -> None:
    """The second of these is none, but the last is one."""
    table = table_of([primitive("a", second, second, f"e{second}", {"x": "text"}) for second in range(4)])
    with pa.ipc.open_stream(event_bytes(table)) as reader:
        written = reader.read_all()
    offsets = pa.py_buffer(np.array(bounds, np.int64 if kind == pa.large_string() else np.int32))
    name = "\0origin id" if pa.types.is_list(kind) else "x"
    if pa.types.is_list(kind):
        broken = pa.Array.from_buffers(kind, 4, [None, offsets], children=[pa.array(["p", "q", "r", "s"])])
    else:
        broken = pa.Array.from_buffers(kind, 4, [None, offsets, pa.py_buffer(b"text")])
    written = written.set_column(written.schema.get_field_index(name), name, broken)
    with pytest.raises(ValueError, match="not complete"):
        some_events(written, np.array([1, 3]))
    assert some_events(written, np.array([3])).column("id").values() == ["e3"]


def test_places_with_timers_in_them_are_written_too() -> None:
    timer = timer_place(5000, (1000, 0, 3, 0), 2, 1)
    plain, made = detection("d", (1, 2), {}, (), (9000, 0, 4, 1, 7, 0)), detection("d", (1, 2), {}, (), caused(timer, 3, 0))
    table = table_of([plain, made])
    again = events_from(event_bytes(table))
    assert again.place_tuples() == [plain.place, made.place] == table.place_tuples()
    assert again.generation.tolist() == [1, 1]
    assert spread(again, np.array([1, 3]), 4).place_tuples() == [(), plain.place, (), made.place]


ONE_OF_MANY = {
    "ecco": "detect pair per k = (a ; b) within 1h with chronicle",
    "cdl.xml": """<cd id="pairs" version="1"><sources><source class="a" anchor="A"><attribute name="k" type="string"/></source>
        <source class="b" anchor="B"><attribute name="k" type="string"/></source></sources>
        <predicates><predicate name="equal" anchor="same">A.k, B.k</predicate></predicates>
        <expressions><expression anchor="X">same</expression></expressions>
        <events><event class="pair" trigger="X"/></events></cd>""",
    "eql": "sequence by k with maxspan=1h [a where true] [b where true]",
    "matchrecognize": """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY time MEASURES LAST(b.time) AS at
        PATTERN (a b) WITHIN INTERVAL '1' HOUR DEFINE a AS type = 'a', b AS type = 'b') AS pairs""",
}


@pytest.mark.parametrize("language", ONE_OF_MANY)
def test_what_was_not_touched_is_not_told_again(language: str) -> None:
    graph = Graph(loads(ONE_OF_MANY[language], language).plans("kernel"))
    state = graph.initial()
    graph.advance(state, EventBatch([primitive("a", n, n, f"a{n}", {"k": f"key {n}"}) for n in range(2000)]))
    whole = graph.changes(state, everything=True)
    graph.advance(state, EventBatch([primitive("b", 3000, 3000, "b", {"k": "key 7"}), primitive("c", 3001, 3001, "c", {})]))
    more = graph.changes(state)
    assert 50 * len(more) < 20 * len(whole)
    again = graph.with_changes(whole, [more])
    later = [primitive("b", 4000 + n, 4000 + n, f"b{n}", {"k": f"key {n}"}) for n in (7, 8)]
    later.append(primitive("c", 5000, 5000, "d", {}))  # the instants before it are over
    found = [record(d)["from"] for d in graph.advance(again, EventBatch(later)).events]
    assert found == [["a7", "b7"], ["a8", "b8"]][language != "cdl.xml" :]  # in CDL a message may be in several detections


SILENCES = """<cd id="silent" version="1" within="1 h"><sources>
    <source class="a" anchor="A"><attribute name="k" type="string"/></source>
    <time anchor="T" trigger="A"><relative>10 min</relative></time>
    <source class="b" anchor="N">
        <attribute name="k" type="string"><filter operators="equal">A.k</filter></attribute></source></sources>
    <predicates><predicate name="any" anchor="due">T</predicate><predicate name="none" anchor="open">N</predicate></predicates>
    <expressions><expression anchor="X">due and open</expression></expressions>
    <events><event class="silence" trigger="X"/></events></cd>"""


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_time_events_and_what_is_remembered_are_written_as_messages(tier: str) -> None:
    graphs = {name: Graph(loads(SILENCES, "cdl.xml").plans(name)) for name in ("interpreter", "kernel")}
    graph, other = graphs.pop(tier), *graphs.values()
    state = graph.initial()
    graph.advance(state, EventBatch([primitive("a", 1, 1, f"a{n}", {"k": f"key {n}"}) for n in range(200)]))
    graph.advance(state, EventBatch([primitive("b", 500, 500, f"b{n}", {"k": f"key {n}"}) for n in range(3, 200)]))
    assert graph.tells_changes(state) == (tier == "kernel")
    data = graph.encode(state)
    assert b"correlation" in data
    again = other.decode(data)
    found = other.finish(again, float("inf"), True).events
    assert [record(d)["from"] for d in found] == [["a0"], ["a1"], ["a2"]]


def test_of_time_events_what_was_not_touched_is_not_told_again() -> None:
    graph = Graph(loads(SILENCES, "cdl.xml").plans("kernel"))
    state = graph.initial()
    graph.advance(state, EventBatch([primitive("a", 1, 1, f"a{n}", {"k": f"key {n}"}) for n in range(2000)]))
    whole = graph.changes(state, everything=True)
    graph.advance(state, EventBatch([primitive("b", 3000, 3000, f"b{n}", {"k": f"key {n}"}) for n in range(1, 2000)]))
    more = graph.changes(state)
    graph.advance(state, EventBatch([primitive("a", 4000, 4000, "late", {"k": "late"})]))
    last = graph.changes(state)
    assert 20 * len(last) < len(whole)
    found = graph.finish(graph.with_changes(whole, [more, last]), float("inf"), True).events
    assert [record(d)["from"] for d in found] == [["a0"], ["late"]]


@given(st.lists(st.integers(0, 40)), st.sampled_from([41, 10_000]))
def test_numbers_few_or_many_are_each_there_once(numbers: list[int], size: int) -> None:
    some = np.array(numbers, np.int64)
    assert distinct(some, size).tolist() == sorted(set(numbers))
    used, index = numbered(some, size)
    assert used[index].tolist() == numbers
    assert used.tolist() == sorted(set(numbers))


@pytest.mark.parametrize("case", ["key-local", "after", "mode-delayed", "every"])
def test_both_tiers_write_situations_as_the_same_tables(case: str) -> None:
    (file,) = (CASES / "amit" / case).glob("rules.*")
    rules = load(file)
    events = [event for batch in open_events(CASES / "amit" / case / "events.jsonl") for event in batch.events]
    written = []
    for tier in ("interpreter", "kernel"):
        graph = Graph(rules.plans(tier))
        state = graph.initial()
        graph.advance(state, EventBatch(events[: len(events) // 2]))
        parts = {
            name: data for plan, own in zip(graph.plans, state.states, strict=True) for name, data in plan.encode(own).items()
        }
        written.append(sorted(name.partition(" ")[0] for name in parts))
    assert written[0] == written[1]
    assert "situations" in written[0]


@given(st.lists(st.integers(-9, 9)), st.sets(st.integers(-9, 9)))
def test_which_numbers_are_among_others(numbers: list[int], some: set[int]) -> None:
    found = are_among(np.array(numbers, np.int64), np.array(sorted(some), np.int64))
    assert found.tolist() == [number in some for number in numbers]
