"""Of a large page, a worker that has just started reads only the keys that events touch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import inf

import pyarrow as pa
import pytest
from support import Memory, expected, texts

from coincide.detection.columns import codec
from coincide.detection.snapshots import opened, sealed
from coincide.engines.spark import pages
from coincide.engines.spark.bucket import FOREVER, Arrived, Bucket
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.packing import to_bytes
from coincide.engines.spark.timing import Timing
from coincide.engines.spark.worker import Task, sources_of
from coincide.errors import CoincideError
from coincide.model.batch import merged
from coincide.model.event import Event, primitive
from coincide.model.table import table_of
from coincide.rulebook import Rulebook, loads
from coincide.testing.fuzz.mutation import mutate_bytes, mutate_packed

FIELDS = ("hi", "lo", "type", "id", ".k")
KEYS = [f"key {number}" for number in range(30)]
RULES = {
    "ecl": "monitor m by k = repeat { push(x) { sequential { a, b, c } } }",
    "eql": "sequence by k with maxspan=20s [a where true] [b where true] [c where true]",
    "ecco": "detect x per k = (a ; b ; c) within 20s with recent",
    "amit": """<amit>
      <event name="a"><eventAttribute name="k" type="string"/></event>
      <event name="b"><eventAttribute name="k" type="string"/></event>
      <key name="K"><eventKey event="a" attribute="k"/><eventKey event="b" attribute="k"/></key>
      <lifespan name="L">
        <initiator><eventInitiator event="a" correlate="add"/></initiator>
        <terminator><eventTerminator event="b" terminationType="discard"/><expirationInterval timeInterval="9s"/></terminator>
        <keyBy name="K"/>
      </lifespan>
      <situation name="S" lifespan="L"><not detectionMode="deferred"><operandNot event="b"/></not></situation>
    </amit>""",
    "cdl.xml": """<cd id="x" version="1" within="20 s">
      <sources>
        <source class="a" anchor="A"><attribute name="k" type="string"/></source>
        <source class="b" anchor="B" within="9 s"><attribute name="k" type="string"/></source>
        <source class="c" anchor="C"><attribute name="k" type="string"/></source>
      </sources>
      <predicates>
        <predicate name="equal" anchor="ab">A.k, B.k</predicate>
        <predicate name="equal" anchor="bc">B.k, C.k</predicate>
        <predicate name="before" anchor="order">A, B</predicate>
      </predicates>
      <expressions><expression anchor="X">ab and bc and order</expression></expressions>
      <events><event class="x" trigger="X"/></events>
    </cd>""",
    "ce": "detect X = ([a(k = ?k)], [b(k = ?k)] | [T]) T = 4s",
    "matchrecognize": """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY time MEASURES LAST(B.time) AS last
      PATTERN (A B+ C?) WITHIN INTERVAL '4' SECOND DEFINE A AS type = 'a', B AS type = 'b', C AS type = 'c') AS x""",
}
MISSING = "sequence by k with maxspan=4s [a where true] ![b where true]"
SILENCE = "detect x per k = a ; not b over 4s"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if pages were large."""
    monkeypatch.setattr(codec, "MANY", 1)
    monkeypatch.setattr(pages, "LARGE", 1)
    monkeypatch.setattr(pages, "SHARE", 0)
    monkeypatch.setattr(pages, "ROOM", 20_000)


def events_in_order(seed: int) -> list[Event]:
    rng, now, made = random.Random(seed), 0, []
    for number in range(400):
        now += rng.choice([0, 20_000, 20_000, 500_000])
        made.append(primitive(rng.choice("abc"), now, now, f"e{number:03}", {"k": rng.choice(KEYS)}))
    return made


def in_micro_batches(events: list[Event], seed: int) -> Iterator[list[Event]]:
    rng, start = random.Random(seed), 0
    while start < len(events):
        end = start + rng.randrange(1, 12)
        yield events[start:end]
        start = end


def blob(events: list[Event]) -> bytes:
    table = table_of(events)
    columns = {"hi": pa.array(table.hi), "lo": pa.array(table.lo)}
    columns |= {field: table.fields[field.removeprefix(".")] for field in FIELDS[2:]}
    columns["page"] = pa.array([KEYS.index(str(event.attributes["k"])) % 2 for event in events], pa.int32())
    return to_bytes(pa.table(columns))


def run(rules: Rulebook, events: list[Event], seed: int, store: Memory, closing: bool = True) -> list[Event]:
    """Each micro-batch, or nearly, in a worker that has just started."""
    task = Task(sources_of(rules), tuple(d.order for d in rules.detectors), "kernel", Layout(FIELDS), Outputs(()))
    timed = any(plan.timed for plan in rules.plans("kernel"))
    rng, made = random.Random(seed), list[Event]()
    for part in (*in_micro_batches(events, seed), *([[]] if closing else [])):
        if rng.random() < 0.9:
            pages.MEMORY.forget()
        told = [(part[0].hi, part[-1].hi, len(part))] if part else []
        arrived = Arrived(told, [blob(part)] if part else [], None if part else FOREVER, firsts=[event.hi for event in part])
        made += merged(Bucket(task, Timing(0), timed, Division(["k"], 1, 2), store).advance(arrived).made).events
    return made


@pytest.mark.parametrize(("language", "text"), [*RULES.items(), ("eql", MISSING)])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.matrix)])
def test_portions_and_wholes_lead_to_the_same(language: str, text: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    portions = []
    save = pages.Pages.save_step

    def counted(self: pages.Pages, number: int, portion: pages.Portion, step: pages.Step) -> None:
        portions.append(len(portion.hashes))
        save(self, number, portion, step)

    monkeypatch.setattr(pages.Pages, "save_step", counted)
    rules, events, store = loads(text, language), events_in_order(seed), Memory()
    assert texts(run(rules, events, seed, store)) == expected(rules, events, inf)
    assert len(portions) > 20
    assert min(portions) < len(KEYS) // 4


@pytest.mark.parametrize(("language", "text"), [("amit", RULES["amit"]), ("eql", MISSING), ("ecco", SILENCE)])
def test_what_is_due(language: str, text: str) -> None:
    """A timer of a key that nothing touches."""
    rules, store = loads(text, language), Memory()
    second = 1_000_000
    a, b = (primitive(kind, at * second, at * second, f"{kind}{at}", {"k": KEYS[0]}) for kind, at in (("a", 1), ("b", 8)))
    other = [primitive("a", at * second, at * second, f"o{at}", {"k": KEYS[2]}) for at in (2, 3, 4, 20)]
    events = sorted([a, b, *other], key=lambda event: event.hi)
    assert texts(run(rules, events, 3, store)) == expected(rules, events, inf)


@pytest.mark.brief(parameters=2)
@pytest.mark.parametrize("language", ["ecl", "eql", "cdl.xml"])
def test_whatever_is_in_a_base(language: str, in_full: bool) -> None:
    """It is gone on with, or refused."""
    rules, store = loads(RULES[language], language), Memory()
    events = events_in_order(5)
    run(rules, events[:300], 5, store, closing=False)
    kept = dict(store.data)
    rng, bases, refused = random.Random(1), [name for name in kept if isinstance(name, tuple) and name[0] == "base"], 0
    assert bases
    tries = 60 if in_full else 24
    for _ in range(tries):
        store.data = dict(kept)
        name = rng.choice(bases)
        mutate = mutate_bytes if rng.random() < 0.3 else mutate_packed
        store.data[name] = sealed(mutate(opened(kept[name]), rng))
        try:
            run(rules, events[300:308], 5, store, closing=False)
        except CoincideError:
            refused += 1
    assert tries // 6 < refused <= tries
