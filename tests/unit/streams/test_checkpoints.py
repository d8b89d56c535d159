"""Checkpoints are whole, or the one before is."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_support import Listed

from coincide import Engine, loads
from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.engines.live import LiveEngine
from coincide.errors import CoincideError, InputError
from coincide.streams.base import Made
from coincide.streams.checkpoints import Checkpoints
from coincide.streams.encode import Encoder
from coincide.streams.files import GrowingFile
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
    assert (newest.state, newest.sources) == (b"three", {"tail:log": ([1, 2], 3)})
    assert len([*(tmp_path / "c").glob("checkpoint-*")]) == 2


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
