"""Killed at any moment, a live run goes on: nothing is lost, nothing comes twice.

`make kill` kills 200 times (COINCIDE_KILLS)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest

import coincide

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
KILLS = int(os.environ.get("COINCIDE_KILLS", "3"))
PER_KILL = 400
RULES = """
detect Pair = [open(door = ?d)] ; [close(door = ?d)]
detect Left = ([open(door = ?d)], [T in {T, close(door = ?d)}]) T = 30s
"""


class World:
    """Somewhere that events come from, and detections go to."""

    events: str
    out: str

    def publish(self, lines: list[bytes]) -> None:
        raise NotImplementedError

    def found(self) -> list[dict[str, Any]]:
        raise NotImplementedError


class Files(World):
    def __init__(self, folder: Path) -> None:
        self._log, self._found = folder / "log.jsonl", folder / "found.jsonl"
        self.events, self.out = f"tail:{self._log}", str(self._found)

    def publish(self, lines: list[bytes]) -> None:
        with self._log.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))

    def found(self) -> list[dict[str, Any]]:
        whole = self._found.read_bytes().rpartition(b"\n")[0] if self._found.exists() else b""
        return [json.loads(line) for line in whole.splitlines()]


class Nats(World):
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


def lines_of(events: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def generated(count: int) -> list[dict[str, Any]]:
    dice = random.Random(11)
    types = ("open", "close")
    return [{"type": dice.choice(types), "time": n * 100, "door": dice.randrange(40)} for n in range(count)]


@pytest.fixture(params=["files", "nats"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "files":
        yield Files(tmp_path)
        return
    there = Nats(request.getfixturevalue("broker"))
    yield there
    there.close()


def started(world: World, rules: Path, folder: Path) -> subprocess.Popen[bytes]:
    options = ["--checkpoint", str(folder), "--checkpoint-every", "20ms", "--clock", "event", "--keys"]
    return subprocess.Popen([*RUN, "run", str(rules), "--events", world.events, "--out", world.out, *options])


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)  # another process is at work


def test_nothing_is_lost_and_nothing_is_doubled(world: World, tmp_path: Path) -> None:
    rules, dice = tmp_path / "rules.ce", random.Random(5)
    rules.write_text(RULES)
    events = generated((KILLS + 1) * PER_KILL)
    lines = lines_of(events)
    expected = [{**made} for made in coincide.detect(str(rules), events, keys=True)]
    for begin in range(0, len(lines), PER_KILL):
        part = lines[begin : begin + PER_KILL]
        last = begin + PER_KILL >= len(lines)
        before = len(world.found())
        process = started(world, rules, tmp_path / "kept")
        try:
            if last:
                world.publish(part)
                until(lambda: len(world.found()) >= len(expected))
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=30) == 128 + signal.SIGTERM
            else:
                world.publish(part[: PER_KILL // 2])
                until(lambda before=before: len(world.found()) > before)  # type: ignore[misc]
                world.publish(part[PER_KILL // 2 :])
                time.sleep(dice.random() * 0.06)  # when it is killed must not depend on what it does
        finally:
            process.kill()
            process.wait()
    assert world.found() == expected
    assert len({made["_key"] for made in world.found()}) == len(expected) > PER_KILL // 4
