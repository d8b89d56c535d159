"""Checkpoints are whole, or the one before is; what they tell of a state is what has changed, and leads to the same state."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
from live_support import Kept, Listed
from msgspec.structs import replace

from coincide import Engine, loads
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.parquet import ParquetDetections
from coincide.adapters.records import event_of
from coincide.detection.snapshots import opened as content
from coincide.detection.snapshots import sealed
from coincide.engines import deltas
from coincide.engines.live import LiveEngine
from coincide.engines.snapshots import GraphChanges
from coincide.errors import CoincideError, InputError
from coincide.model.batch import EventBatch
from coincide.streams.base import Made
from coincide.streams.checkpoints import HEAD, ROOM, Checkpoints
from coincide.streams.encode import Encoder
from coincide.streams.files import GrowingFile
from coincide.streams.parquetfolder import ParquetFolder
from coincide.streams.run import LiveRun, Pace


def kept(folder: Path, *states: bytes) -> Path:
    checkpoints = Checkpoints(folder)
    for state in states:
        checkpoints.keep(state, {"tail:log": ([1, 2], 3)}, {})
    checkpoints.close()
    return folder


def test_the_newest_is_taken_and_two_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(kept(tmp_path / "c", b"one", b"two", b"three"))
    newest = checkpoints.last()
    assert newest is not None
    assert (newest.state, newest.changes, newest.sources) == (b"three", (), {"tail:log": ([1, 2], 3)})
    assert len([*(tmp_path / "c").glob("checkpoint-*")]) == 2


def generation(folder: Path) -> Path:
    """Two of them: the newer has the whole state, and twice what has changed."""
    checkpoints = Checkpoints(folder)
    checkpoints.keep(b"old", {}, {}, b"k")
    checkpoints.keep(b"changed", {"s": (0, 0)}, {}, b"l", whole=False, all_keys=False)
    assert not checkpoints.wants_whole
    checkpoints.keep(b"whole", {"s": (1, 1)}, {}, b"a")
    checkpoints.keep(b"one", {"s": (2, 2)}, {}, b"b", whole=False, all_keys=False)
    checkpoints.keep(b"two", {"s": (3, 3)}, {}, b"c", whole=False, all_keys=False)
    checkpoints.close()
    return folder / "checkpoint-0"


def found_in(folder: Path) -> tuple[bytes, tuple[bytes, ...], bytes]:
    with closing(Checkpoints(folder)) as checkpoints:
        found = checkpoints.last()
    assert found is not None
    return found.state, found.changes, found.keys


def test_cut_off_anywhere_the_last_checkpoint_that_is_whole_is_taken(tmp_path: Path) -> None:
    path = generation(tmp_path)
    data, seen = path.read_bytes(), []
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        if (found := found_in(tmp_path)) not in seen:
            seen.append(found)
    assert seen == [
        (b"old", (b"changed",), b"kl"),
        (b"whole", (), b"a"),
        (b"whole", (b"one",), b"ab"),
        (b"whole", (b"one", b"two"), b"abc"),
    ]


def test_a_bit_turned_over_is_noticed_and_what_stands_before_it_is_taken(tmp_path: Path) -> None:
    path = generation(tmp_path)
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :])
        state, changes, _ = found_in(tmp_path)
        assert (state, changes) in [(b"old", (b"changed",)), (b"whole", ()), (b"whole", (b"one",))], place


def test_changes_that_follow_something_else_are_refused(tmp_path: Path) -> None:
    path = generation(tmp_path)
    data = path.read_bytes()
    other = (tmp_path / "checkpoint-1").read_bytes()
    (tmp_path / "checkpoint-1").unlink()
    begin = data.index(b"coincide\x01", data.index(b"one")) - 8
    for wrong in (data + data[begin:], data + other[len(HEAD) :], data[: len(HEAD)] + data[begin:]):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match="checkpoints are missing in it"):
            found_in(tmp_path)


def test_a_run_that_goes_on_does_not_touch_what_it_goes_on_from(tmp_path: Path) -> None:
    path = generation(tmp_path)
    before = path.read_bytes()
    checkpoints = Checkpoints(tmp_path)
    checkpoints.last()
    assert checkpoints.wants_whole
    checkpoints.keep(b"new", {}, {})
    checkpoints.close()
    assert path.read_bytes() == before
    assert found_in(tmp_path)[0] == b"new"


def test_when_changes_are_as_large_as_the_whole_a_generation_begins(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.keep(b"x" * ROOM, {}, {})
    written = 0
    while not checkpoints.wants_whole:
        checkpoints.keep(b"x" * (ROOM // 4), {}, {}, whole=False)
        written += 1
    assert written == 8


@pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: data[:-1] + b"x", lambda data: b""])
def test_one_that_is_damaged_is_passed_over(tmp_path: Path, harm: object) -> None:
    folder = kept(tmp_path / "c", b"one", b"two")
    newest = folder / "checkpoint-0"
    newest.write_bytes(harm(newest.read_bytes()))  # type: ignore[operator]
    checkpoints = Checkpoints(folder)
    found = checkpoints.last()
    assert found is not None
    assert found.state == b"one"
    (folder / "checkpoint-1").write_bytes(b"nothing")
    with pytest.raises(InputError, match="is not a checkpoint"):
        checkpoints.last()


def test_a_folder_is_of_one_run(tmp_path: Path) -> None:
    _first = Checkpoints(tmp_path)
    with pytest.raises(CoincideError, match="is in use"):
        Checkpoints(tmp_path)


def test_a_file_is_cut_back_to_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    sink = GrowingFile(str(path))
    sink.open(None)
    sink.write([Made("", "a", b"one\n")])
    position = sink.commit()
    sink.write([Made("", "a", b"two\n")])
    sink.close()
    sink.open(position)
    sink.write([Made("", "a", b"three\n")])
    sink.close()
    assert path.read_bytes() == b"one\nthree\n"


def test_the_first_turn_is_kept_if_the_start_was_long_ago(tmp_path: Path) -> None:
    """A run that is killed again and again soon after its start still comes on."""
    book = loads("monitor opens = repeat { push(opened) { open } }")
    events = [event_of({"type": "open", "time": number}, DEFAULT, number) for number in range(1, 4)]
    pace = Pace("event", latency=10.0, checkpoint_every=60.0)
    run = LiveRun(LiveEngine(Engine(book)), [Listed(events, 3)], [], Encoder(book), pace, tmp_path)
    run.kept_at -= 100
    list(run.detections())
    run.close()
    kept = Checkpoints(tmp_path).last()
    assert kept is not None
    assert kept.sources["listed"] == (3, 0)


RULES = """
detect Pair = [open(door = ?d)] ; [close(door = ?d)]
detect Left = ([open(door = ?d)], [T in {T, close(door = ?d)}]) T = 30ms
"""
MANY = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }"


def opened(count: int, first: int = 1) -> EventBatch:
    return EventBatch([event_of({"type": "open", "time": n, "door": f"d{n}"}, DEFAULT, n) for n in range(first, first + count)])


def test_of_a_large_state_only_what_was_touched_is_written() -> None:
    live = LiveEngine(Engine(loads(MANY), "kernel"))
    list(live.arrive(opened(5000)))
    whole, more = live.changes(), []
    for begin in (5001, 5011, 5021):
        list(live.arrive(opened(10, begin)))
        more.append(live.changes())
    assert [whole.whole, *(told.whole for told in more)] == [True, False, False, False]
    assert all(len(told.data) < len(whole.data) / 20 for told in more)
    other = LiveEngine(Engine(loads(MANY), "kernel"))
    other.restore(whole.data, [told.data for told in more])
    close = EventBatch(
        [event_of({"type": "close", "time": 9000, "door": door}, DEFAULT, n) for n, door in ((9000, "d1"), (9001, "d5015"))]
    )
    assert [event.type for batch in other.arrive(close) for event in batch.events] == ["pair", "pair"]


def test_of_rules_that_saw_nothing_nothing_is_written() -> None:
    live = LiveEngine(Engine(loads("monitor other by k = repeat { push(x) { sequential { p, q } } }\n" + MANY), "interpreter"))
    list(live.arrive(opened(3)))
    live.changes()
    list(live.arrive(opened(1, 4)))
    (told,) = msgspec.msgpack.decode(content(live.changes().data), type=deltas.Written).instances.values()
    assert len(msgspec.msgpack.decode(content(told.graph), type=GraphChanges).replaced) == 1


def harmed(told: bytes, harm: Callable[[deltas.InstanceChanges], deltas.InstanceChanges]) -> bytes:
    written = msgspec.msgpack.decode(content(told), type=deltas.Written)
    return sealed(msgspec.msgpack.encode(deltas.Written(1, {name: harm(own) for name, own in written.instances.items()})))


def of_the_graph(**fields: Any) -> Callable[[deltas.InstanceChanges], deltas.InstanceChanges]:
    def harm(own: deltas.InstanceChanges) -> deltas.InstanceChanges:
        graph = msgspec.msgpack.decode(content(own.graph), type=GraphChanges)
        return replace(own, graph=sealed(msgspec.msgpack.encode(replace(graph, **fields))))

    return harm


@pytest.mark.parametrize(
    "harm",
    [
        lambda own: replace(own, stage=replace(own.stage, kept=7)),
        lambda own: replace(own, stage=replace(own.stage, columns=b"columns")),
        lambda own: replace(own, stage=replace(own.stage, state=replace(own.stage.state, last=(1, 2, 3)))),
        lambda own: replace(own, graph=b""),
        lambda own: replace(own, graph=own.graph[:-1]),
        of_the_graph(version=9),
        of_the_graph(hi=-5),
        of_the_graph(hi=10**15),
    ],
)
def test_changes_that_mean_harm_are_refused(harm: Callable[[deltas.InstanceChanges], deltas.InstanceChanges]) -> None:
    live = LiveEngine(Engine(loads(RULES, "opera"), "interpreter"), 5000)
    list(live.arrive(opened(20)))
    whole = live.changes().data
    list(live.arrive(opened(10, 21)))
    more = live.changes().data
    LiveEngine(Engine(loads(RULES, "opera"))).restore(whole, [more])
    with pytest.raises(InputError, match="not a snapshot"):
        LiveEngine(Engine(loads(RULES, "opera"))).restore(whole, [harmed(more, harm)])


@pytest.mark.parametrize("place", range(5))
def test_a_delta_of_tables_that_was_turned_over_is_a_state_or_refused(place: int) -> None:
    live = LiveEngine(Engine(loads(MANY), "kernel"))
    list(live.arrive(opened(200)))
    whole = live.changes().data
    list(live.arrive(opened(10, 201)))
    told = live.changes().data
    dice = random.Random(place)

    def harm(own: deltas.InstanceChanges) -> deltas.InstanceChanges:
        graph = msgspec.msgpack.decode(content(own.graph), type=GraphChanges)
        added = {name: bytes(turned(data)) for name, data in graph.added.items()}
        return replace(own, graph=sealed(msgspec.msgpack.encode(replace(graph, added=added))))

    def turned(data: bytes) -> bytearray:
        changed = bytearray(data)
        changed[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        return changed

    for _ in range(30):
        other = LiveEngine(Engine(loads(MANY), "kernel"))
        with suppress(InputError):
            other.restore(whole, [harmed(told, harm)])
        list(other.arrive(opened(10, 400)))


def test_a_run_writes_changes_and_goes_on_from_them(tmp_path: Path) -> None:
    book = loads(RULES, "opera")
    events = [*opened(60).events]
    pace = Pace("event", latency=0.0, checkpoint_every=0.0)

    def ran(folder: Path | None, end: int) -> list[bytes]:
        sink = Kept()
        run = LiveRun(LiveEngine(Engine(book), 3000), [Listed(events, end)], [sink], Encoder(book, shown=True), pace, folder)
        list(run.detections())
        list(run.rest(ended=end == len(events)))
        run.close()
        return sink.lines

    whole = ran(None, 60)
    assert [line for end in (7, 20, 44, 60) for line in ran(tmp_path, end)] == whole
    assert len(whole) == 30
    found = found_in(tmp_path)
    assert found[1]


def test_a_folder_of_parquet_has_each_detection_once_whenever_the_run_ends(tmp_path: Path) -> None:
    book, folder = loads(RULES, "opera"), tmp_path / "found.parquet"
    events = [*opened(60).events]

    def run_to(end: int, every: float) -> LiveRun:
        pace = Pace("event", latency=0.0, checkpoint_every=every)
        sinks, encoder = [ParquetFolder(str(folder), keys=True)], Encoder(book, kept=True)
        run = LiveRun(LiveEngine(Engine(book)), [Listed(events, end)], sinks, encoder, pace, tmp_path / "kept")
        list(run.detections())
        return run

    for end, every in ((40, 0.0), (50, 1000.0), (55, 0.0)):
        run = run_to(end, every)
        run._writer.shutdown()
        run.sinks[0].close()  # it is written, and no checkpoint knows of it: as after a kill
        assert run._checkpoints is not None
        run._checkpoints.close()
    run = run_to(60, 0.0)
    list(run.rest())
    run.close()
    (folder / "notes.txt").write_text("not ours")
    ParquetDetections(folder / "part-00000099.parquet")  # one that was begun when a run was killed
    assert [*folder.glob(".*")]
    rows = pyarrow.parquet.read_table([*map(str, sorted(folder.glob("*.parquet")))])
    assert rows.column("d").to_pylist() == [f"d{n}" for n in range(1, 31)]
    assert len(set(rows.column("_key").to_pylist())) == 30
    ParquetFolder(str(folder)).open(None)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
