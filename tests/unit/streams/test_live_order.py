"""Order and time of live runs: the answers of the file, whatever the order of arrival and however the input is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_support import Script

import coincide
from coincide import Engine, Rulebook
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.engines.live import LiveEngine
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.streams.loop import LiveLoop

RULES = coincide.loads(
    """
    detect Pair = [a(k = ?k)] ; [b(k = ?k)]
    detect Silent = ([a(k = ?k)], [T in {T, b(k = ?k)}]) T = 5ms
    """,
    "opera",
)
MS = 1000


def event(position: int, **fields: Any) -> Event:
    return event_of(fields, DEFAULT, position)


@st.composite
def arrivals(draw: st.DrawFn) -> list[Event]:
    """Events in about the order of their times, with ids that count up or not."""
    own = draw(st.booleans())
    times = draw(st.lists(st.integers(0, 30), max_size=14))
    if draw(st.booleans()):
        times.sort()
    ids = draw(st.permutations([f"x{n}" for n in range(len(times))])) if own else [None] * len(times)
    kinds = st.sampled_from("ab")
    return [
        event(n, type=draw(kinds), time=time, id=identifier, k=draw(st.integers(0, 1)))
        for n, (time, identifier) in enumerate(zip(times, ids, strict=True), 1)
    ]


def cut(events: Sequence[Event], places: set[int]) -> Iterator[EventBatch]:
    begin = 0
    for end in [*sorted(p for p in places if p < len(events)), len(events)]:
        if end > begin:
            yield EventBatch(events[begin:end])
        begin = max(begin, end)


def run_live(events: Sequence[Event], delay: int, places: set[int], restart: int = -1) -> tuple[list[dict[str, Any]], list[str]]:
    """What changes is told after every batch; a restart goes on from that."""
    live = LiveEngine(Engine(RULES), delay * MS)
    made: list[EventBatch] = []
    late: list[Event] = []
    told = [live.changes(everything=True).data]
    for number, batch in enumerate(cut(events, places)):
        if number == restart:
            late += live.latecomers()
            live = LiveEngine(Engine(RULES), delay * MS)
            live.restore(told[0], told[1:])
        made += live.arrive(batch)
        data, whole = live.changes()
        told = [data] if whole else [*told, data]
    made += live.finish(None, closed=True)
    late += live.latecomers()
    return [record(e) for batch in made for e in batch.events], [str(e.id) for e in late]


@pytest.mark.filterwarnings("ignore::coincide.DataWarning")
@settings(max_examples=60, deadline=None)
@given(arrivals(), st.integers(0, 30), st.sets(st.integers(0, 14), max_size=5), st.integers(-1, 4))
def test_answers_are_those_of_the_file_without_what_was_late(
    events: list[Event], delay: int, places: set[int], restart: int
) -> None:
    found, late = run_live(events, delay, places, restart)
    timely = [e for e in events if e.id not in late]
    latest = max((e.hi for e in events), default=0) / MS
    assert found == coincide.detect(RULES, timely, latest, mapping=DEFAULT)
    assert (found, late) == run_live(events, delay, set())
    live = LiveEngine(Engine(RULES), delay * MS)
    for batch in cut(events, places):
        list(live.arrive(batch))
    sufficient = max(live.stage.sufficient, 0) // MS
    assert not late or not run_live(events, max(sufficient, 1), places)[1]


def test_an_event_does_not_wait_where_ids_count_up() -> None:
    live = LiveEngine(Engine(RULES))
    list(live.arrive(EventBatch([event(1, type="a", time=1, k=1)])))
    assert [len(batch) for batch in live.arrive(EventBatch([event(2, type="b", time=3, k=1)]))] == [1]


def test_an_event_with_an_id_of_its_own_waits_for_its_instant_to_pass() -> None:
    live = LiveEngine(Engine(RULES))
    list(live.arrive(EventBatch([event(1, type="a", time=1, id="z", k=1), event(2, type="b", time=3, id="y", k=1)])))
    assert list(live.arrive(EventBatch([event(3, type="a", time=3, id="x", k=1)]))) == []
    (batch,) = live.pass_time(4 * MS)
    assert [e.origin[0][4] for e in batch.events] == ["z"]


def detected(script: Script, clock: str, delay: int = 0, rules: Rulebook = RULES) -> list[tuple[float, str]]:
    """What is made while events come, with the second in which it is."""
    made = LiveLoop(LiveEngine(Engine(rules), delay), clock, script.now).detections(script)
    return [(round(script.now(), 4), e.type) for batch in made for e in batch.events]


def test_absence_ends_by_the_wall_when_it_ends() -> None:
    a = event(1, type="a", time=1_000_000, k=1)
    assert detected(Script(a, 60.0), "wall") == [(0.005, "Silent")]
    assert detected(Script(a, 60.0), "event") == []
    assert detected(Script(a, 60.0), "wall", delay=2_000_000) == [(2.005, "Silent")]


def test_the_wall_goes_on_from_the_latest_event() -> None:
    first, second = event(1, type="a", time=10, k=1), event(2, type="a", time=1_000, k=2)
    assert detected(Script(first, 0.003, second, 1.0), "wall") == [(0.003, "Silent"), (0.008, "Silent")]


def test_that_time_passes_makes_nothing_late() -> None:
    """Only what was consumed meanwhile does."""
    first, second = event(1, type="a", time=10, k=1), event(2, type="b", time=12, k=1)
    assert detected(Script(first, 0.004, second, 1.0), "wall") == [(0.004, "Pair")]
    script = Script(first, 0.007, second)
    live = LiveEngine(Engine(RULES))
    loop = LiveLoop(live, "wall", script.now)
    assert [e.type for batch in loop.detections(script) for e in batch.events] == ["Silent"]
    assert (live.stage.refused, live.stage.sufficient) == (1, 5_000)


def test_what_has_not_been_read_yet_is_not_absent() -> None:
    """A run that is behind: the wall goes on, and what comes next is there already."""
    first, second = event(1, type="a", time=10, k=1), event(2, type="b", time=12, k=1)
    script = Script(first, 1.0, second, 1.0)
    script.more = lambda: len(script._steps) > 1  # type: ignore[method-assign]
    live = LiveEngine(Engine(RULES))
    found = [e.type for batch in LiveLoop(live, "wall", script.now).detections(script) for e in batch.events]
    assert (found, live.refused) == (["Pair"], 0)
    assert max(wait or 0 for wait in script.waits[1:3]) <= 0.005  # it looks again soon, and does not turn in circles


def test_the_loop_sleeps_until_something_is_due() -> None:
    script = Script(event(1, type="a", time=10, k=1), 0.1)
    detected(script, "wall")
    assert script.waits[1] is not None
    assert 0.004 < script.waits[1] < 0.006
