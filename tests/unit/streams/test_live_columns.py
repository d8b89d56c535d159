"""Events that come as columns are dealt with as the same events as objects are, whatever their order, however they are cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import loads
from coincide.engines.embedded import PATIENCE, WORTH, Engine
from coincide.engines.live import LiveEngine
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.model.table import table_of

BOOK = loads(
    "detect Pair = [open(door = ?d)] ; [close(door = ?d)]\n"
    "detect Left = ([open(door = ?d)], [T in {T, close(door = ?d)}]) T = 3ms",
    "opera",
)
EVENT = st.tuples(st.sampled_from(["open", "close"]), st.integers(-1, 4), st.integers(0, 1), st.integers(1, 3))


def stream(steps: list[tuple[str, int, int, int]], counted: bool) -> list[Event]:
    """Times mostly grow; ids count up, or go anywhere."""
    time, events = 10, []
    for number, (kind, step, door, identifier) in enumerate(steps, 1):
        time = max(0, time + step)
        name = str(number if counted else identifier)
        events.append(primitive(kind, time * 1000, time * 1000, name, {"door": float(door)}, None, None, None))
    return events


def started(delay: int) -> LiveEngine:
    live = LiveEngine(Engine(BOOK, "interpreter"), delay)
    live._suits_columns = lambda batch: batch.has_table  # type: ignore[method-assign]  # however small
    return live


def ran(batches: list[EventBatch], delay: int, restart: int = -1) -> tuple[object, ...]:
    """Before a batch with the number of `restart` it goes on from what was told after each one before."""
    live = started(delay)
    made, late = [], []
    told = [live.changes(everything=True).data]
    for number, batch in enumerate(batches):
        if number == restart:
            late += [event.id for event in live.latecomers()]
            live = started(delay)
            live.restore(told[0], told[1:])
        made += [record(event) for found in live.arrive(batch) for event in found.events]
        made += [record(event) for found in live.pass_time((live.stage.mark or 0) + 1000) for event in found.events]
        data, whole = live.changes()
        told = [data] if whole else [*told, data]
    late += [event.id for event in live.latecomers()]
    made += [record(event) for found in live.finish(None, closed=True) for event in found.events]
    return made, late, live.stage.clock, live.stage.mark, live.stage.sufficient


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENT, max_size=14), st.integers(1, 5), st.sampled_from([0, 2000, 5000]), st.booleans(), st.integers(-1, 6))
def test_columns_are_dealt_with_as_objects_are(
    steps: list[tuple[str, int, int, int]], size: int, delay: int, counted: bool, restart: int
) -> None:
    events = stream(steps, counted)
    parts = [events[begin : begin + size] for begin in range(0, len(events), size)]
    columns = [EventBatch(table=table_of(part)) if number % 3 else EventBatch(part) for number, part in enumerate(parts, 1)]
    assert ran(columns, delay, restart) == ran([EventBatch(part) for part in parts], delay)


def test_columns_stay_columns() -> None:
    live = LiveEngine(Engine(BOOK, "interpreter"), delay=2000)
    events = stream([("open", 1, 0, 0), ("close", 1, 0, 0), ("open", -1, 0, 0), ("open", 2, 0, 0)], counted=True)
    table = table_of(events)
    assert live.stage.arrive_columns(table)
    assert (live.stage.buffer, live.waiting) == ([], 2)  # what waits for the clock to be at 12 and 13
    assert not live.stage.arrive_columns(table)


def test_small_batches_follow_what_waits() -> None:
    live = LiveEngine(Engine(BOOK, "interpreter"), delay=10**9)
    events = stream([("open", 1, 0, 0)] * (WORTH + 2 * PATIENCE), counted=True)
    list(live.arrive(EventBatch(table=table_of(events[:WORTH]))))
    held = []
    for event in events[WORTH:]:
        list(live.arrive(EventBatch([event])))
        held.append(live.stage.columns is not None)
    assert held == [True] * PATIENCE + [False] * PATIENCE
    assert live.waiting == len(events)
