"""The state of a bucket, without Spark: micro-batches of any size, in any order within the delay."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from support import Memory, chained, expected, random_events, texts

from coincide.detection.snapshots import opened, sealed
from coincide.engines.spark import pages
from coincide.engines.spark.bucket import FOREVER, Arrived, Bucket, Outcome
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.packing import balanced_buckets, spark_hash, to_bytes
from coincide.engines.spark.spool import fitted_array
from coincide.engines.spark.timing import Timing, parse_delay
from coincide.engines.spark.worker import Task, sources_of
from coincide.errors import CoincideError, InputError, RunError
from coincide.model.batch import merged
from coincide.model.column import MIXED
from coincide.model.event import Event, primitive
from coincide.model.table import table_of
from coincide.rulebook import Rulebook, loads
from coincide.testing.fuzz.mutation import mutate_bytes, mutate_packed

ROOM = pages.ROOM
FIELDS = ("hi", "lo", "type", "id", ".k", ".s", ".v", ".w")


class Run:
    def __init__(self, rules: Rulebook, delay: int, pages: int = 3, tier: str = "interpreter", timed: bool = False) -> None:
        self.tier = tier
        self.timed = timed
        self.change(rules)
        self.delay, self.pages = delay, pages
        self.store = Memory()
        self.made: list[Event] = []
        self.late = 0

    def change(self, rules: Rulebook) -> None:
        members = tuple(d.order for d in rules.detectors)
        self.task = Task(sources_of(rules), members, self.tier, Layout(FIELDS), Outputs(()))

    def take(self, events: list[Event], closing: int | None = None) -> Outcome:
        blobs = [self._blob(part) for part in (events[::2], events[1::2]) if part]  # of two tasks
        stamps = [event.hi for event in events] or [0]
        bucket = Bucket(self.task, Timing(self.delay), self.timed, Division([], 1, self.pages), self.store)
        outcome = bucket.advance(Arrived([(min(stamps), max(stamps), len(stamps))], blobs, closing, firsts=[min(stamps)]))
        self.made += merged(outcome.made).events
        self.late += outcome.late
        return outcome

    def _blob(self, events: list[Event]) -> bytes:
        table = table_of(events)
        columns = {"hi": pa.array(table.hi), "lo": pa.array(table.lo)}
        for field in FIELDS[2:]:
            columns[field] = table.fields.get(field.removeprefix("."), pa.nulls(len(events)))
        columns[".w"] = fitted_array(table.fields.get("w"), MIXED, len(events))
        columns["page"] = pa.array([hash(e.attributes.get("k")) % self.pages for e in events], pa.int32())
        return to_bytes(pa.table(columns))


ABSENT = """<amit>
  <event name="a"><eventAttribute name="k" type="number"/></event>
  <event name="b"><eventAttribute name="k" type="number"/></event>
  <key name="K"><eventKey event="a" attribute="k"/><eventKey event="b" attribute="k"/></key>
  <lifespan name="L">
    <initiator><eventInitiator event="a" correlate="add"/></initiator>
    <terminator><expirationInterval timeInterval="9s"/></terminator>
    <keyBy name="K"/>
  </lifespan>
  <situation name="S" lifespan="L"><not detectionMode="deferred"><operandNot event="b"/></not></situation>
</amit>"""


@pytest.mark.brief(parameters=3)
@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("room", [0, 3_000, ROOM])
@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_workers_take_the_steps_that_they_missed(tier: str, room: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any worker is handed the bucket: each holds what it had when it was its turn."""
    monkeypatch.setattr(pages, "ROOM", room)
    rules, rng, rebuilt = loads(ABSENT, "amit"), random.Random(workers), list[int]()
    memories = [pages._Memory() for _ in range(workers)]
    rebuild = pages.Pages._rebuilt
    monkeypatch.setattr(pages.Pages, "_rebuilt", lambda self, *args: rebuilt.append(1) or rebuild(self, *args))
    events = sorted(random_events(800, 5), key=lambda e: e.hi)
    run = Run(rules, 0, tier=tier, timed=True)
    for start in range(0, len(events), 10):
        monkeypatch.setattr(pages, "MEMORY", rng.choice(memories))
        run.take(events[start : start + 10])
    if room == ROOM:  # else logs are short: the base is written again and again
        assert len(rebuilt) <= run.pages * 3 * workers, "each worker once, and where a log was folded, or long ago"
    assert all(len(memory.states) <= 2 * run.pages for memory in memories), "what cannot be gone on from is forgotten"
    run.take([], closing=FOREVER)
    assert texts(run.made) == expected(rules, events, math.inf)


@pytest.mark.parametrize("room", [3_000, ROOM])
def test_logs_that_tell_changes_are_read(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As earlier releases wrote them in the kernel tier."""
    monkeypatch.setattr(pages, "ROOM", room)
    rules = loads(ABSENT, "amit")
    events = sorted(random_events(400, 5), key=lambda e: e.hi)
    run = Run(rules, 0, tier="kernel", timed=True)
    with monkeypatch.context() as earlier:
        states = list[tuple[Any, Any]]()
        save = pages.Pages.save
        earlier.setattr(pages.Pages, "save", lambda self, *args: states.append((self.graph, args[1])) or save(self, *args))
        earlier.setattr(pages.Step, "to_bytes", lambda _: pages.CHANGED + states[-1][0].changes(states[-1][1]))
        for start in range(0, 200, 20):
            run.take(events[start : start + 20])
    entries = [data for name, data in run.store.data.items() if isinstance(name, tuple) and name[0] == "entry"]
    assert entries
    assert all(entry.startswith(pages.CHANGED) for entry in entries)
    for start in range(200, 400, 20):
        if start % 60 == 20:
            pages.MEMORY.forget()
        run.take(events[start : start + 20])
    run.take([], closing=FOREVER)
    assert texts(run.made) == expected(rules, events, math.inf)


KEYED = "monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } } monitor n by k = repeat { push(y) { x } }"


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize("room", [0, 10_000, pages.ROOM])
@pytest.mark.parametrize("forgetful", [False, True])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.matrix)])
def test_out_of_order_within_the_delay(seed: int, forgetful: bool, room: int, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a worker remembers states or not, and however soon logs are folded into bases."""
    monkeypatch.setattr(pages, "ROOM", room)
    rng = random.Random(seed)
    rules = loads(KEYED)
    events = random_events(600, seed)
    delay = rng.choice([0, 3_000_000, 50_000_000])
    arrival = sorted(events, key=lambda e: e.hi + rng.randrange(delay + 1))
    run = Run(rules, delay, tier=tier)
    while arrival:
        size = rng.randrange(1, 100)
        run.take(arrival[:size])
        arrival = arrival[size:]
        if forgetful and rng.random() < 0.5:
            pages.MEMORY.forget()
    run.take([], closing=FOREVER)
    assert run.late == 0
    assert texts(run.made) == expected(rules, events)


TIMED = {
    "pretty": 'Report alone when a not followed by b within "3s" for the same k.',
    "amit": """<amit>
  <event name="a"><eventAttribute name="k" type="number"/></event>
  <event name="b"><eventAttribute name="k" type="number"/></event>
  <key name="K"><eventKey event="a" attribute="k"/><eventKey event="b" attribute="k"/></key>
  <lifespan name="L">
    <initiator><eventInitiator event="a"/></initiator>
    <terminator><expirationInterval timeInterval="3s"/></terminator>
    <keyBy name="K"/>
  </lifespan>
  <situation name="alone" lifespan="L"><operator><not><operandNot event="b"/></not></operator></situation>
</amit>""",
}


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize("steps", [1, pytest.param(5, marks=pytest.mark.matrix), pages.STEPS])
@pytest.mark.parametrize("language", TIMED)
def test_logs_hold_the_steps_of_time(language: str, steps: int, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is rebuilt from its log has the timers that it had; those that fired without an event do not fire again."""
    monkeypatch.setattr(pages, "STEPS", steps)
    rng = random.Random(steps)
    rules = loads(TIMED[language], language)
    events = sorted(random_events(400, steps), key=lambda e: e.hi)
    run, rest = Run(rules, 0, tier=tier, timed=True), list(events)
    while rest:
        size = rng.randrange(1, 40)
        run.take(rest[:size])
        rest = rest[size:]
        if rng.random() < 0.7:
            pages.MEMORY.forget()
    run.take([], closing=FOREVER)
    assert run.made
    assert texts(run.made) == expected(rules, events, math.inf)


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_repeated_micro_batch_starts_from_what_is_stored(forgetful: bool) -> None:
    """A task that failed after it had run must leave no trace, also not in the memory of its worker."""
    rules = loads(KEYED)
    events = sorted(random_events(300), key=lambda e: e.hi)
    run = Run(rules, 0)
    run.take(events[:150])
    before = dict(run.store.data), list(run.made)
    run.take(events[150:])
    run.store.data, run.made = before
    if forgetful:
        pages.MEMORY.forget()
    run.take(events[150:])
    run.take([], closing=FOREVER)
    assert texts(run.made) == expected(rules, events)


@pytest.mark.parametrize("forgetful", [False, True])
def test_rules_that_change_keep_the_state_of_what_is_unchanged(forgetful: bool) -> None:
    events = [primitive(kind, n * 1000, n * 1000, str(n), {"k": 1.0}) for n, kind in enumerate("aadbb")]
    old = "monitor m by k = push(x) { sequential { a, b } }"
    run = Run(loads(old), 0)
    run.take(events[:3])
    run.change(loads("monitor n by k = push(y) { sequential { a, b } } " + old))
    if forgetful:
        pages.MEMORY.forget()
    run.take(events[3:])
    run.take([], closing=FOREVER)
    assert [event.type for event in run.made] == ["x"]  # the new one has not seen the a's


def test_global_rules_have_one_page() -> None:
    rules = chained()
    events = sorted(random_events(300), key=lambda e: e.hi)
    run = Run(rules, 0, pages=1)
    run.take(events[:100])
    run.take(events[100:])
    run.take([], closing=FOREVER)
    assert texts(run.made) == expected(rules, events)


def test_late_events_are_counted_and_left_out() -> None:
    rules = loads(KEYED)
    events = sorted(random_events(100), key=lambda e: e.hi)
    run = Run(rules, 1_000_000)
    run.take([e for e in events if e is not events[3]])
    run.take([events[3]])
    run.take([], closing=FOREVER)
    assert run.late == 1
    assert texts(run.made) == expected(rules, [e for e in events if e is not events[3]])


def test_only_pages_with_events_are_touched() -> None:
    events = sorted((e for e in random_events(200) if e.attributes.get("k") == 1.0), key=lambda e: e.hi)
    run = Run(loads(KEYED), 0, pages=3)
    run.take(events[:-2])
    assert {key[1] for key in run.store.data if isinstance(key, tuple) and key[0] == "entry"} == {hash(1.0) % 3}
    pages.MEMORY.forget()
    run.take(events[-2:])
    run.take([], closing=FOREVER)
    assert run.store.bases_read == 1
    assert not [key for key in run.store.data if isinstance(key, tuple) and key[0] == "segment"]


def test_a_checkpoint_of_another_division_is_refused() -> None:
    run = Run(loads(KEYED), 0)
    run.take(random_events(5))
    run.pages = 4
    with pytest.raises(RunError, match="3 pages"):
        run.take(random_events(5))


def test_buckets_are_spread_evenly() -> None:
    for count, partitions in ((2, 2), (8, 2), (8, 4), (8, 200), (200, 200)):
        chosen = balanced_buckets(count, "by user")
        assert chosen[0] == 0
        assert len(set(chosen)) == count
        hashes = [spark_hash(number.to_bytes(4, "little"), spark_hash(b"by user")) for number in chosen]
        loads_of = [sum(found % partitions == p for found in hashes) for p in range(partitions)]
        assert max(loads_of) <= -(-count // partitions)


def test_functions_that_keep_state_have_workers_of_their_own() -> None:
    from coincide.engines.spark.stateful import WORKERS, workers_of_their_own

    environment = {"PYTHONHASHSEED": "0"}
    with workers_of_their_own(SimpleNamespace(_sc=SimpleNamespace(environment=environment))):
        assert WORKERS in environment
    assert WORKERS not in environment
    with workers_of_their_own(object()):  # a client of Spark Connect
        pass


def test_delays() -> None:
    assert parse_delay("10 seconds") == 10_000_000
    assert parse_delay("1 hour 30 minutes") == 5_400_000_000
    assert parse_delay("0 seconds") == 0
    with pytest.raises(InputError):
        parse_delay("soon")


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_whatever_is_in_a_checkpoint(tier: str, in_full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone on with, or refused: meta data, pages, logs, events that wait, rules of before."""
    monkeypatch.setattr(pages, "ROOM", 3_000)
    events = random_events(300, 3)
    run = Run(loads(KEYED), 20_000_000, tier=tier)
    run.take(events[:100])
    run.take(events[100:200])
    run.change(loads(KEYED.replace("y)", "yy)")))  # pages are of other rules now
    kept = dict(run.store.data)
    assert len({str(key)[:5] for key in kept}) > 3
    rng, refused, tries = random.Random(1), 0, 200 if in_full else 60
    for _ in range(tries):
        pages.MEMORY.forget()
        run.store.data = dict(kept)
        key = rng.choice(list(kept))
        told = pages.CHANGED if kept[key].startswith(pages.CHANGED) else b""
        content = opened(kept[key].removeprefix(told))
        mutate = mutate_bytes if content[:4] == b"\xff\xff\xff\xff" or rng.random() < 0.3 else mutate_packed
        run.store.data[key] = told + sealed(mutate(content, rng)) if rng.random() < 0.8 else mutate_bytes(kept[key], rng)
        try:
            run.take(events[200:], closing=FOREVER)
        except CoincideError:
            refused += 1
    assert tries // 4 < refused < tries


@pytest.mark.parametrize(("rules", "tier"), [(ABSENT, "kernel"), (ABSENT, "interpreter"), (KEYED, "kernel")])
def test_what_is_stored_does_not_grow(rules: str, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule whose state is bounded, for as long as the job lives (`python -m benchmarks spark_flat` for longer)."""
    monkeypatch.setattr(pages, "ROOM", 2_000)
    run = Run(loads(rules, "amit" if rules is ABSENT else "ecl"), 2_000_000, tier=tier, timed=rules is ABSENT)
    sizes = []
    for number in range(50):
        moved = [primitive(e.type, e.lo + number * 5_000_000, e.hi + number * 5_000_000, e.id or "", e.attributes) for e in SOME]
        run.take(moved)
        sizes.append(sum(map(len, run.store.data.values())))
    assert max(sizes[30:]) <= 1.1 * max(sizes[10:30])


SOME = random_events(40, span=5_000)
