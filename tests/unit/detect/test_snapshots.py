"""Whatever is in a snapshot: the state that was taken, or an InputError; and what is restored can be gone on with."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from coincide.adapters.read import open_events
from coincide.detection.columns import codec
from coincide.detection.parts import tables_name, tables_of, with_tables
from coincide.detection.rowpattern.relations import KIND, SHAPES
from coincide.detection.snapshots import Damaged, opened, place_of, sealed, timer_place_of
from coincide.engines.embedded import Engine
from coincide.engines.graph import Graph
from coincide.engines.policies import PolicyEngine
from coincide.errors import InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record, timer_place
from coincide.model.stamp import order_key
from coincide.model.table import Origins
from coincide.rulebook import Rulebook, load, loads
from coincide.testing.fuzz.mutation import Packed, packed, unpacked
from coincide.testing.fuzz.states import StateFuzzer
from coincide.testing.fuzz.work import tried

CASES = Path(__file__).parents[2] / "conformance/cases"
MUTATED = [
    "ecl/keys", "ecl/machine-example-3", "opera/parameter-doors", "opera/paper-3-within-an-hour", "amit/after",
    "amit/key-global", "ecco/per-key", "ecco/example-1-average", "cdl/within", "cdl/time-event-chained", "mixed/five-in-a-row",
    "eql/missing-trailing", "eql/sample", "match-recognize/within-timer", "match-recognize/order-by-other",
]  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    for name in MUTATED:
        shutil.copytree(CASES / name, folder / name)
    return folder


def test_mutants_of_all_models_in_both_tiers(corpus: Path) -> None:
    """`python -m coincide.testing.fuzz state` tries more of them, in processes of their own."""
    fuzzer = StateFuzzer(corpus)
    found = [tried(fuzzer, 1, number, armed=False) for number in range(200)]
    assert [outcome.detail for outcome in found if outcome.finding] == []
    words = [outcome.word for outcome in found]
    assert words.count("refused") > 80
    assert words.count("run") > 20


RULES = "monitor pairs by k = repeat { push(pair) { sequential { a, b } } }"
EVENTS = [{"type": "a", "time": n, "k": n % 3} for n in range(9)]


def taken(rules: Rulebook, events: list[dict[str, Any]] = EVENTS, tier: str = "interpreter") -> bytes:
    engine = Engine(rules, tier)
    engine.process(events)
    return engine.snapshot()


def test_an_accident_is_noticed_wherever_it_is() -> None:
    rules = loads(RULES)
    snapshot = taken(rules)
    for at in range(len(snapshot)):
        for spoilt in (snapshot[:at], snapshot[:at] + bytes([snapshot[at] ^ 4]) + snapshot[at + 1 :]):
            with pytest.raises(InputError, match="not a snapshot"):
                Engine(rules).restore(spoilt)


@pytest.mark.parametrize(
    "data", [b"", b"x", b"{}", b"[1, 2]", b"\x95", b"PK\x03\x04", packed([1, 2]), packed([9, 0, None, 0, {}])]
)
def test_something_else_is_no_snapshot(data: bytes) -> None:
    rules = loads(RULES)
    for engine in (Engine(rules), Engine(rules, "kernel"), PolicyEngine(rules)):
        with pytest.raises(InputError, match="not a snapshot"):
            engine.restore(data)


def test_a_snapshot_without_a_seal_is_of_an_earlier_release() -> None:
    rules = loads(RULES)
    engine = Engine(rules)
    engine.restore(opened(taken(rules)))
    assert len(engine.process([{"type": "b", "time": 20, "k": 1}])) == 1


def test_a_state_that_is_refused_changes_nothing() -> None:
    rules = loads(RULES)
    engine, under = Engine(rules), PolicyEngine(rules, "guaranteed")
    engine.process(EVENTS)
    for each in (engine, under):
        before = each.snapshot()
        with pytest.raises(InputError):
            each.restore(before[:-1])
        assert each.snapshot() == before


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize(
    ("text", "language"),
    [
        (RULES, "ecl"),
        ("detect pair = (a ; b) within 1h", "ecco"),
        ("detect pair = [a];[b]", "opera"),
        ((CASES / "amit/key-global/rules.amit.xml").read_text(), "amit"),
    ],
)
def test_ids_that_are_numbers_of_any_length(text: str, language: str, tier: str) -> None:
    """They stand in the total order as numbers, which no format holds."""
    if language == "amit":
        rules, events = loads(text, language), records("amit/key-global")
    else:
        rules, events = loads(text, language), [{"type": kind, "time": n, "k": 1} for n, kind in enumerate("aab")]
    events = [{**event, "id": str(10**30 + number)} for number, event in enumerate(events)]
    whole, parted = Engine(rules, tier), Engine(rules, tier)
    wanted = [*whole.process(events).events, *whole.finish().events]
    assert wanted
    found: list[Any] = []
    for event in events:
        found += parted.process([event]).events
        data = parted.snapshot()
        parted = Engine(rules, tier)
        parted.restore(data)
    found += parted.finish().events
    assert sorted(map(str, map(record, found))) == sorted(map(str, map(record, wanted)))


def records(case: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in (CASES / case / "events.jsonl").read_bytes().splitlines()]


def changed(snapshot: bytes, part: str, *path: Any, to: Any) -> bytes:
    """The snapshot with another value at a place of a definition's part, sealed again."""
    tree = unpacked(opened(snapshot))
    inner = tree[4][part][0]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return sealed(packed(tree))


def refusal(rules: Rulebook, snapshot: bytes) -> str:
    reasons = set()
    for tier in ("interpreter", "kernel"):
        with pytest.raises(InputError) as raised:
            Engine(rules, tier).restore(snapshot)
        reasons.add(raised.value.diagnostics[0].message)
    (reason,) = reasons
    return reason


def table_of_monitors(rules: Rulebook, number: int) -> list[Any]:
    """Where the values of a table are: of keys (0) or of states (1)."""
    return [tables_name("monitors", rules.detectors), 2, 0, 4, number, 6, 0]


def as_objects(rules: Rulebook, snapshot: bytes) -> bytes:
    """A snapshot of keys in one state, as releases before tables wrote it."""
    tree = unpacked(opened(snapshot))
    keys, (state,) = (table[6][0] for table in tree[4][tables_name("monitors", rules.detectors)][0][2][0][4])
    tree[4] = {rules.detectors[0].digest: Packed([[1, [[key, [state]] for key in keys]]])}
    return sealed(packed(tree))


def test_objects_of_earlier_releases_are_what_tables_are() -> None:
    rules = loads(RULES)
    snapshot, engines = taken(rules), [Engine(rules, tier) for tier in ("interpreter", "kernel") for _ in range(2)]
    for engine, data in zip(engines, [snapshot, as_objects(rules, snapshot)] * 2, strict=True):
        engine.restore(data)
    found = [engine.process([{"type": "b", "time": 10, "k": 1}]).records() for engine in engines]
    assert len(found[0]) == 1
    assert all(some == found[0] for some in found)


@pytest.mark.parametrize(
    ("to", "objects", "tables"),
    [
        ([0.0, 0.0], "a key has 2 values, not 1", "a key has other than 1 values"),
        ([None], "a part of a key is not a single value", "a part of a key is not a single value"),
        ([float("nan")], "Expected `float`", "Expected `float`"),
        ([[1.0]], "Expected `str`, got `float`", "Expected `bool`, got `float`"),
    ],
)
def test_keys(to: list[Any], objects: str, tables: str) -> None:
    rules = loads(RULES)
    assert tables in refusal(rules, changed(taken(rules), *table_of_monitors(rules, 0), 0, to=to))
    snapshot = changed(as_objects(rules, taken(rules)), rules.detectors[0].digest, 1, 0, 0, to=to)
    assert objects in refusal(rules, snapshot)


@pytest.mark.parametrize("to", [9, -1, True, None, [], [0], [2, 0], [-1, 0], [1, 7], [1, [0]], [1, 0, 0], {"a": 1}])
def test_configurations(to: Any) -> None:
    rules = loads(RULES)
    snapshot = changed(as_objects(rules, taken(rules)), rules.detectors[0].digest, 1, 0, 1, 0, to=to)
    assert refusal(rules, snapshot).endswith("a machine is in no state of its own")
    if not isinstance(to, dict):
        spoilt = changed(taken(rules), *table_of_monitors(rules, 1), 0, to=to)
        assert refusal(rules, spoilt).endswith("a machine is in no state of its own")


@pytest.mark.parametrize(("number", "reason"), [(99, "number 99 of"), (-1, "number -1 of"), (2**40, f"number {2**40} of")])
def test_references(number: int, reason: str) -> None:
    """Of a description whose instances do not follow from its messages: they are objects."""
    rules = load(CASES / "cdl/time-event-chained/rules.cdl.xml")
    digest = rules.detectors[0].digest
    events = records("cdl/time-event-chained")
    snapshot = next(s for n in range(1, len(events)) if unpacked(opened(s := taken(rules, events[:n])))[4][digest][0][2][0])
    assert reason in refusal(rules, changed(snapshot, digest, 2, 0, 0, 1, 0, 1, to=number))


NESTED = [timer_place(1, (0, 0, 1, 0), 0, 0)]
for _ in range(9):
    NESTED.append(timer_place(2, NESTED[-1], 0, 0))


@pytest.mark.parametrize(
    "place", [(5, 0, 3, 0), (5, 0, 3, 1, 2, 0), (5, 0, -1, 0), *NESTED, (*NESTED[-1][:3], 1, 4, 4), (7, 3, (0, 0, 2, 0), 0)]
)
def test_places_that_are(place: tuple[Any, ...]) -> None:
    assert place_of(msgspec.msgpack.decode(msgspec.msgpack.encode(place))) == place


@pytest.mark.parametrize(
    "place",
    [
        5, "place", None, [], [1, 0, 1], [1, 2, 1, 0], [1, 0, 1, 1], [1, 0, 1, 0, 0], [1, 0, [1], 0], [1, 1, 1, 0],
        
        [True, 0, 1, 0], [2**63, 0, 1, 0], [1.0, 0, 1, 0], [1, 4, [0, 0, 1, 0, 0, 0, 0], 0],
        [1, 1, [0, 0, 1], 0], [1, 1, [0, 4, 1, 0, 0, 0, 0], 0],
        [1, 1, [0, 1, 1, 0, 0, 0, 0], 0],
    ],
)  # fmt: skip
def test_places_that_are_not(place: Any) -> None:
    with pytest.raises(Damaged):
        place_of(place)


def test_a_place_of_an_event_is_none_of_a_timer() -> None:
    with pytest.raises(Damaged, match="not that of a timer"):
        timer_place_of([5, 0, 3, 0])


def test_events_that_wait_under_a_policy() -> None:
    """They come as columns, too: then they have places, which they lose; where they stand follows from their stamps."""
    rules = loads("sources s, t\ndetect pair = [a];[b]", "opera")
    events = [primitive(kind, n, n, f"e{n}", {}, source) for n, (kind, source) in enumerate(zip("abb", "sst", strict=True))]
    engine = PolicyEngine(rules, "guaranteed", "kernel")
    assert [d for made in engine.process(EventBatch(table=EventBatch(events[:2]).table)) for d in made.detections] == []
    again = PolicyEngine(rules, "guaranteed", "kernel")
    again.restore(engine.snapshot())
    found = [d for made in (*again.process(EventBatch(events[2:])), *again.end(100)) for d in made.detections]
    assert [key[4] for key in found[0].origin] == ["e0", "e1"]
    tree = unpacked(opened(engine.snapshot()))
    waiting = tree[2]["guaranteed"][0][0][6]
    assert len(waiting) == 2
    waiting[0][1][2] += 5  # its hi
    with pytest.raises(InputError, match="an event that waits is not an external one"):
        again.restore(sealed(packed(tree)))


def ticking(policy: str | None) -> Engine | PolicyEngine:
    """A rule whose windows end every 10 ms, for ever."""
    rules = loads("detect n = a^COUNT over 10", "ecco")
    return Engine(rules) if policy is None else PolicyEngine(rules, policy)


@pytest.mark.parametrize(
    ("policy", "where"),
    [
        (None, (3,)),
        ("best-effort", (2, "best-effort", 0, 0, 0)),
        ("guaranteed", (2, "guaranteed", 0, 0, 2, "")),
        ("guaranteed", (2, "guaranteed", 0, 1, 0, 3)),
        ("probabilistic 0.1", (2, "probabilistic 0.1", 0, 0, 0)),
        ("probabilistic 0.1", (2, "probabilistic 0.1", 0, 0, 2, "")),
        ("probabilistic 0.1", (2, "probabilistic 0.1", 0, 1, 0, 3)),
    ],
)
def test_a_clock_that_has_passed_what_still_waits(policy: str | None, where: tuple[Any, ...]) -> None:
    """Nothing would be wrong with going on, only that it would take for ever: all windows until then would have to end."""
    engine = ticking(policy)
    events = EventBatch([primitive("a", n, n, str(n), {}) for n in range(0, 30_000, 4_000)])
    engine.process(events) if isinstance(engine, Engine) else list(engine.process(events))
    tree = part = unpacked(opened(engine.snapshot()))
    ticking(policy).restore(sealed(packed(tree)))
    *path, last = where
    for step in path:
        part = part[step]
    assert 20_000 <= part[last] <= 28_000
    part[last] = 2**61
    with pytest.raises(InputError, match=r"the clock has passed what still waits|an event was consumed after the last one"):
        ticking(policy).restore(sealed(packed(tree)))


def test_a_clock_without_a_first_event() -> None:
    tree = unpacked(opened(ticking(None).snapshot()))
    tree[3] = 0
    with pytest.raises(InputError, match="its clock does not fit its first event"):
        ticking(None).restore(sealed(packed(tree)))


def test_rules_that_wait_for_fewer_sources_than_before_go_on() -> None:
    """What waited only for a source that is waited for no more is stable now; that is no fault of the snapshot."""
    text = "detect pair = [a];[b]"
    engine = PolicyEngine(loads(f"sources s, t\n{text}", "opera"), "guaranteed")
    list(engine.process(EventBatch([primitive(kind, n, n, f"e{n}", {}, "s") for n, kind in enumerate("abb")])))
    again = PolicyEngine(loads(f"sources s\n{text}", "opera"), "guaranteed")
    again.restore(engine.snapshot())
    found = [d for made in again.process(EventBatch([primitive("c", 9, 9, "e9", {}, "s")])) for d in made.detections]
    assert [key[4] for key in found[0].origin] == ["e0", "e1"]


def test_timers_that_a_late_event_sets_in_the_past_fire_with_it() -> None:
    """So nothing is left that the clock has passed, and nothing waits for the next event."""
    case = CASES / "opera-policies/best-effort-timer-due-in-the-past"
    engine = PolicyEngine(load(case / "rules.ce"), "best-effort")
    [batch] = open_events(case / "events.jsonl")
    made = []
    for event in batch.events:
        made.append([record(d)["from"] for run in engine.process(EventBatch([event])) for d in run.detections])
        engine.restore(engine.snapshot())
    assert made == [[["a1"]], [["a2"]]]


def test_what_becomes_stable_just_now_may_wait() -> None:
    """At one instant arrivals come first, so a clock that has only come to it leaves what it makes stable."""
    rules = loads("detect x = [a]", "opera")
    engine = PolicyEngine(rules, "probabilistic 0.5")
    for time, arrival in ((0, 5), (10, 10)):
        event = Event("a", time, time, str(time), {}, (order_key(time, time, str(time)),), "s", arrival=arrival)
        engine.arrive_all(EventBatch([event]))
    assert [record(d)["from"] for d in engine.take().detections] == [["0"]]
    stage = engine.instances[0].stage
    assert stage.wakes_at() == 16
    stage.pass_time(15)
    engine.restore(engine.snapshot())
    stage.pass_time(16)
    assert [record(d)["from"] for d in engine.take().detections] == [["10"]]


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_a_key_of_another_type_than_is_declared(tier: str) -> None:
    """Keys are put in order, those of a state with those of the events that come."""
    rules = load(CASES / "amit/key-local/rules.amit.xml")
    engine = Engine(rules, tier)
    for batch in open_events(CASES / "amit/key-local/events.jsonl"):
        engine.process(EventBatch(batch.events[:4]))

    def changed(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {name: changed(part) for name, part in tree.items()}
        if isinstance(tree, Packed):
            return Packed(map(changed, tree)).like(tree)
        return [*map(changed, tree)] if isinstance(tree, list) else 7.5 if tree in ("p", "q") else tree

    tree = unpacked(opened(engine.snapshot()))
    Engine(rules, tier).restore(sealed(packed(tree)))
    with pytest.raises(InputError, match="a key has a value of another type than its attribute"):
        Engine(rules, tier).restore(sealed(packed(changed(tree))))


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_a_row_that_is_made_of_other_events(tier: str) -> None:
    text = "SELECT * FROM a MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (A A A) DEFINE A AS k >= 0) AS m"
    rules = loads(text, "matchrecognize")
    graph = Graph(rules.plans(tier))
    [plan], state = graph.plans, graph.initial()
    graph.advance(state, EventBatch([primitive("a", n, n, f"e{n}", {"k": 1.0}) for n in range(2)]))
    base, _ = tables_of(plan.detector, plan.encode(state.states[0])) or (b"", [])  # type: ignore[attr-defined]
    relations = codec.decode(SHAPES, KIND, base)
    twice, below = np.repeat(np.arange(2), 2), relations.events.origin().take(np.arange(2))
    origins = Origins(below.lo[twice], below.hi[twice], below.ids.take(pa.array(twice)), np.array([0, 2, 4]))
    relations.events = replace(relations.events, origins=origins)
    with pytest.raises(Damaged, match="an event is not made of itself"):
        plan.decode(with_tables(plan.detector, codec.encode(relations)))  # type: ignore[attr-defined]


def test_a_table_with_more_parts_than_any_has() -> None:
    rules = load(CASES / "amit/key-local/rules.amit.xml")
    engine = Engine(rules, "kernel")
    for batch in open_events(CASES / "amit/key-local/events.jsonl"):
        engine.process(EventBatch(batch.events[:4]))
    tree = unpacked(opened(engine.snapshot()))
    shared = next(part for name, part in tree[4].items() if name.startswith("situations"))
    table = next(table for table in shared[0][2][0][4] if table[0] == "spans")
    table[2] = 2**40
    with pytest.raises(InputError, match="its table 'spans' has other columns"):
        Engine(rules, "kernel").restore(sealed(packed(tree)))
