"""Killed at any moment, a live run goes on: nothing is lost, nothing comes twice.

`make kill` kills 200 times with files and 200 times with NATS (COINCIDE_KILLS), a quarter as often with the others."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import nats
import pyarrow.parquet
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import coincide

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
KILLS = int(os.environ.get("COINCIDE_KILLS", "0"))
PER_KILL = 400
PATIENCE = 180.0
RULES = """
detect Pair = [open(door = ?d)] ; [close(door = ?d)]
detect Left = ([open(door = ?d)], [T in {T, close(door = ?d)}]) T = 30s
"""


class World:
    """Somewhere that events come from, and detections go to."""

    events: str
    out: str
    ordered = True
    """Are detections found in the order in which they were made?"""
    kills = 1
    share = 4
    """Of COINCIDE_KILLS it gets one in so many."""
    options: tuple[str, ...] = ()

    def publish(self, lines: list[bytes]) -> None:
        raise NotImplementedError

    def found(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def count(self) -> int:
        return len(self.found())


class Files(World):
    kills, share = 3, 1

    def __init__(self, folder: Path) -> None:
        self._log, self._found = folder / "log.jsonl", folder / "found.jsonl"
        self.events, self.out = f"tail:{self._log}", str(self._found)

    def publish(self, lines: list[bytes]) -> None:
        with self._log.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))

    def found(self) -> list[dict[str, Any]]:
        whole = self._found.read_bytes().rpartition(b"\n")[0] if self._found.exists() else b""
        return [json.loads(line) for line in whole.splitlines()]

    def count(self) -> int:
        return self._found.read_bytes().count(b"\n") if self._found.exists() else 0


class Csv(Files):
    kills, share = 1, 4
    options = ("--columns", "type,time,from,d,_key")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._found = folder / "found.csv"
        self.out = str(self._found)

    def found(self) -> list[dict[str, Any]]:
        with self._found.open(newline="") as file:
            rows = [*csv.DictReader(file)]
        return [{**row, "time": json.loads(row["time"]), "from": json.loads(row["from"]), "d": int(row["d"])} for row in rows]

    def count(self) -> int:
        return max(0, super().count() - 1)


class Parquet(Files):
    """Files are there after checkpoints, and those that no checkpoint knows go when the run goes on."""

    kills, share = 1, 4

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._found = folder / "found.parquet"
        self.out = f"{self._found}/"

    def found(self) -> list[dict[str, Any]]:
        rows = [row for path in sorted(self._found.glob("*.parquet")) for row in pyarrow.parquet.read_table(path).to_pylist()]
        return [{"type": row["type"], "from": row["from"], "d": row["d"], "_key": row["_key"]} for row in rows]

    def count(self) -> int:
        with suppress(FileNotFoundError):
            return len(self.found())
        return 0


class Nats(World):
    kills, share = 3, 1

    def __init__(self, broker: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = self._do(nats.connect(f"nats://{broker}"))
        self._stream = self._client.jetstream()
        for name in ("IN", "OUT"):
            self._do(self._stream.add_stream(name=name, subjects=[name]))
        self.events, self.out = f"nats://{broker}/IN?stream=IN&durable=run", f"nats://{broker}/OUT?stream=OUT"
        self._seen: list[dict[str, Any]] = []

    def close(self) -> None:
        self._do(self._client.close())
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def publish(self, lines: list[bytes]) -> None:
        async def send() -> None:
            for begin in range(0, len(lines), 50):
                await self._stream.publish("IN", b"\n".join(lines[begin : begin + 50]))

        self._do(send())

    def found(self) -> list[dict[str, Any]]:
        async def read() -> None:
            count = (await self._stream.stream_info("OUT")).state.messages
            for number in range(len(self._seen) + 1, count + 1):
                self._seen.append(json.loads((await self._stream.get_msg("OUT", number)).data))

        self._do(read())
        return self._seen


class Kafka(World):
    """Detections are spread over partitions."""

    ordered = False

    def __init__(self, cluster: str) -> None:
        settings = {"bootstrap.servers": cluster, "log_level": 2, "linger.ms": 0}
        self._producer = Producer(settings)
        self.events, self.out = f"kafka://{cluster}/in?group=g", f"kafka://{cluster}/out"
        self._reader: Any = None
        self._settings = {**settings, "group.id": "look", "enable.auto.commit": False}
        self._seen: list[dict[str, Any]] = []
        for topic in ("in", "out"):  # the cluster makes those that somebody wants to write to
            self._producer.produce(topic, b"", partition=0)
        assert self._producer.flush(10) == 0

    def publish(self, lines: list[bytes]) -> None:
        for line in lines:
            self._producer.produce("in", line, partition=0)
        assert self._producer.flush(10) == 0

    def found(self) -> list[dict[str, Any]]:
        if self._reader is None:
            self._reader = Consumer(self._settings)
            self._reader.assign([TopicPartition("out", number, 0) for number in range(4)])
        came = [message for message in self._reader.consume(1000, 0.02) if message.error() is None]
        self._seen += [json.loads(message.value()) for message in came if message.value()]
        return self._seen


class Database(World):
    def __init__(self, folder: Path) -> None:
        self._file = folder / "world.db"
        self._seen: list[dict[str, Any]] = []
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, type TEXT, time INTEGER, door INTEGER)")
        self.events, self.out = f"sqlite:///{self._file}?by=number&every=10ms#log", f"sqlite:///{self._file}#found"

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._file, timeout=180)
        with connection:
            yield connection
        connection.close()

    def publish(self, lines: list[bytes]) -> None:
        with self._connected() as connection:
            rows = [json.loads(line) for line in lines]
            connection.executemany("INSERT INTO log (type, time, door) VALUES (:type, :time, :door)", rows)

    def found(self) -> list[dict[str, Any]]:
        with self._connected() as connection, suppress(sqlite3.OperationalError):  # before the table is made
            more = connection.execute("SELECT record FROM found WHERE rowid > ? ORDER BY rowid", [len(self._seen)])
            self._seen += [json.loads(text) for (text,) in more]
        return self._seen


IN_FILES: dict[str, Callable[[Path], World]] = {"files": Files, "csv": Csv, "parquet": Parquet, "database": Database}


def lines_of(events: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def generated(count: int) -> list[dict[str, Any]]:
    dice = random.Random(11)
    types = ("open", "close")
    return [{"type": dice.choice(types), "time": n * 100, "door": dice.randrange(40)} for n in range(count)]


@pytest.fixture(params=["files", "csv", "parquet", "nats", "kafka", "database"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param in IN_FILES:
        yield IN_FILES[request.param](tmp_path)
        return
    if request.param == "kafka":
        yield Kafka(request.getfixturevalue("cluster"))
        return
    there = Nats(request.getfixturevalue("broker"))
    yield there
    there.close()


def started(world: World, rules: Path, folder: Path) -> subprocess.Popen[bytes]:
    options = ["--checkpoint", str(folder), "--checkpoint-every", "20ms", "--clock", "event", "--keys"]
    return subprocess.Popen([*RUN, "run", str(rules), "--events", world.events, "--out", world.out, *options, *world.options])


def key_of(made: dict[str, Any]) -> str:
    return str(made["_key"])


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """It must not end meanwhile, nor take longer than a machine with much else to do needs to start it."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert process.poll() is None, "the run has ended"
        assert time.monotonic() < end, "the run stands still"
        time.sleep(0.02)  # another process is at work


def test_nothing_is_lost_and_nothing_is_doubled(world: World, tmp_path: Path, in_full: bool) -> None:
    rules, dice = tmp_path / "rules.ce", random.Random(5)
    rules.write_text(RULES)
    kills = KILLS // world.share or (world.kills if in_full else 1)
    events = generated(kills * PER_KILL + PER_KILL)
    lines = lines_of(events)
    expected = [{**made} for made in coincide.detect(str(rules), events, keys=True)]
    for begin in range(0, len(lines), PER_KILL):
        part = lines[begin : begin + PER_KILL]
        last = begin + PER_KILL >= len(lines)
        before = world.count()
        process = started(world, rules, tmp_path / "kept")
        try:
            if last:
                world.publish(part)
                until(lambda: world.count() >= len(expected), process)
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=180) == 128 + signal.SIGTERM
            else:
                world.publish(part[: PER_KILL // 2])
                until(lambda before=before: world.count() > before, process)  # type: ignore[misc]
                world.publish(part[PER_KILL // 2 :])
                time.sleep(dice.random() * 0.06)  # when it is killed must not depend on what it does
        finally:
            process.kill()
            process.wait()
    found = world.found()
    expected = [{name: made[name] for name in found[0]} for made in expected]
    assert (found == expected) if world.ordered else (sorted(found, key=key_of) == sorted(expected, key=key_of))
    assert len({made["_key"] for made in world.found()}) == len(expected) > PER_KILL // 4
    print(f"killed {len(lines) // PER_KILL - 1} times: of {len(expected):,} detections 0 lost, 0 doubled")
