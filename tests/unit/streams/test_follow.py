"""Files that grow, are rotated and cut off; folders that files are put into."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event as Flag

import pytest

from coincide.errors import InputError
from coincide.streams.base import Reading
from coincide.streams.folder import WatchedFolder
from coincide.streams.follow import Followed
from coincide.streams.registry import open_source

SIZE = 1 << 16


def closed() -> Flag:
    """With this a read ends where it would wait."""
    flag = Flag()
    flag.set()
    return flag


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_whole_lines_as_they_are_added(tmp_path: Path) -> None:
    log = tmp_path / "log"
    followed = Followed(log, closed())
    assert followed.read(SIZE) == b""  # it need not be there yet
    add(log, "one\ntw")
    assert followed.read(SIZE) == b"one\n"
    assert followed.read(SIZE) == b""
    add(log, "o\nthree\n")
    assert followed.read(SIZE) == b"two\nthree\n"


def test_rotation(tmp_path: Path) -> None:
    log = tmp_path / "log"
    add(log, "one\n")
    followed = Followed(log, closed())
    assert followed.read(SIZE) == b"one\n"
    add(log, "two\nthree")
    log.rename(tmp_path / "log.1")
    add(log, "four\n")
    assert [followed.read(SIZE) for _ in range(4)] == [b"two\n", b"three\n", b"four\n", b""]


def test_a_file_that_is_cut_off_is_read_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    add(log, "one\ntwo\n")
    followed = Followed(log, closed())
    assert followed.read(SIZE) == b"one\ntwo\n"
    log.write_text("new\n")
    assert followed.read(SIZE) == b"new\n"


def test_going_on_from_a_position_after_two_rotations(tmp_path: Path) -> None:
    log = tmp_path / "log"
    add(log, "one\n")
    before = Followed(log, closed())
    before.read(SIZE)
    add(log, "two\n")
    log.rename(tmp_path / "log.2")
    add(log, "three\n")
    log.rename(tmp_path / "log.1")
    add(log, "four\n")
    later = Followed(log, closed(), before.position)
    assert [later.read(SIZE) for _ in range(4)] == [b"two\n", b"three\n", b"four\n", b""]
    (tmp_path / "log.2").unlink()
    with pytest.raises(InputError, match="the file that was being read is gone"):
        Followed(log, closed(), before.position)


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    def put(name: str, *times: int) -> None:
        (tmp_path / name).write_text("".join(json.dumps({"type": "a", "time": time}) + "\n" for time in times))

    put("1.jsonl", 1, 2)
    put("2.jsonl", 3)
    (tmp_path / "notes.txt").write_text("no events")
    source = open_source(f"watch:{tmp_path}", Reading())
    assert isinstance(source, WatchedFolder)
    deliveries = source.deliveries(None)
    first = next(deliveries)
    assert [event.id for event in first.batch.events] == ["1", "2"]
    assert [event.id for event in next(deliveries).batch.events] == ["3"]
    put("3.jsonl", 4)
    assert [event.id for event in next(deliveries).batch.events] == ["4"]
    again = open_source(f"watch:{tmp_path}", Reading()).deliveries(first.position)
    assert [[event.id for event in next(again).batch.events] for _ in range(2)] == [["3"], ["4"]]


def test_a_followed_file_knows_whether_there_is_more(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"type": "a", "time": 1}\n')
    source = open_source(f"tail:{path}", Reading())
    deliveries = source.deliveries(None)
    assert not source.more()
    next(deliveries)
    assert not source.more()
    with path.open("a") as file:
        file.write('{"type": "a", "time": 2}\n')
    assert source.more()
    next(deliveries)
    assert not source.more()
