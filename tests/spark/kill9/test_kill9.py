"""Queries on Spark that are killed again and again, executors that die, a disk that is full: nothing is lost, nothing doubled.

`make faults` kills 200 times (COINCIDE_SPARK_KILLS); without that variable these tests are left out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from clusters import SMALL, Cluster, environment, until
from world import World, kill_session

KILLS = int(os.environ.get("COINCIDE_SPARK_KILLS", "0"))
SEED = int(os.environ.get("COINCIDE_SEED", "1"))
STARTING, MOST, LONGEST = 10.0, 2, 4.0
"""A query is killed within so many seconds of its start; or when it has done up to so many micro-batches, within so many seconds,
in which one or two more are done."""
EARLY = 0.3
"""The share of queries that are killed while they start."""

pytestmark = [pytest.mark.spark, pytest.mark.skipif(not KILLS, reason="COINCIDE_SPARK_KILLS is not set")]


def compare(world: World) -> None:
    """With the embedded engine, and with a run that nobody disturbed."""
    found, expected = world.found(), world.expected()
    assert sum(expected.values()) > 50
    assert (found - expected, expected - found) == (Counter(), Counter()), "doubled or invented, and lost"
    (world.folder / "kept").rename(world.folder / "disturbed")
    (world.folder / "kept").mkdir()
    assert world.finish() == 0
    assert world.found() == found


def test_killed_at_any_moment(tmp_path: Path) -> None:
    world, begun, killed = World(tmp_path, SEED), time.monotonic(), 0
    world.add(2)
    assert world.finish("prepare") == 0, (tmp_path / "query.log").read_text()[-3000:]
    for _ in range(KILLS):
        process, longest = world.start("for ever"), STARTING
        if world.dice.random() >= EARLY:
            longest = LONGEST
            _await_micro_batches(world, process, world.dice.randint(0, MOST))
        end = time.monotonic() + world.dice.uniform(0, longest)
        while time.monotonic() < end and process.poll() is None:
            time.sleep(min(0.5, max(0.0, end - time.monotonic())))
            if world.dice.random() < 0.3:
                world.add()
        assert process.poll() is None, (tmp_path / "query.log").read_text()[-3000:]
        killed += kill_session(process)
        print(world.micro_batches(), end=" ", flush=True)
    done = world.micro_batches()
    world.end()
    assert world.finish() == 0, (tmp_path / "query.log").read_text()[-3000:]
    taken, expected = time.monotonic() - begun, sum(world.expected().values())
    print(
        f"\n{KILLS} kills of {killed} processes in {taken:.0f} s; {world.files} files, {world.poisoned} poisoned; "
        f"{done} micro-batches while it was killed, {expected} detections expected"
    )
    compare(world)


def _await_micro_batches(world: World, process: subprocess.Popen[bytes], count: int) -> None:
    """Until a query runs, and has done so many; there are files for that."""
    world.add(2 + 3 * count)
    wanted = world.micro_batches() + count
    until(lambda: world.running.exists() or process.poll() is not None, "it does not start")
    until(lambda: world.micro_batches() >= wanted or process.poll() is not None, "it does not go on")


def test_executors_that_die(tmp_path: Path) -> None:
    """On a standalone cluster: the job goes on with others."""
    world = World(tmp_path, SEED + 1)
    world.add(4)
    with Cluster(tmp_path / "cluster") as cluster:
        settings = {**SMALL, "spark.deploy.maxExecutorRetries": "-1", "spark.task.maxFailures": "20"}
        conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        source = [
            "--source",
            str(tmp_path / "events"),
            "--format",
            "json",
            "--schema",
            "type string, time long, id string, k string",
        ]
        sink = ["--sink", str(tmp_path / "kept" / "found"), "--checkpoint", str(tmp_path / "kept" / "checkpoint")]
        job = ["--master", cluster.master, *conf, *source, *sink, "--option", "maxFilesPerTrigger=2", "--delay", "3 seconds"]
        command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "spark-submit", *world.rules, *job]
        with (tmp_path / "submit.log").open("wb") as log:
            driver = subprocess.Popen(
                [*command, "--every", "0 seconds"], env=environment(), stdout=log, stderr=log, start_new_session=True
            )
        killed = 0
        try:
            for _ in range(max(2, KILLS // 20)):
                done = world.micro_batches()
                until(lambda done=done: world.micro_batches() > done, "no progress")
                world.add(3)
                time.sleep(world.dice.uniform(0, 3))
                for victim in world.dice.sample(running, 1) if (running := cluster.executors()) else []:
                    with suppress(ProcessLookupError):
                        os.kill(victim, 9)
                        killed += 1
            world.end()
            last = world.files
            until(lambda: world.micro_batches() * 2 >= last, "it does not come to the end")
            time.sleep(5)
        finally:
            kill_session(driver)
    assert killed
    print(f"\n{killed} executors killed, {world.micro_batches()} micro-batches")
    assert world.finish() == 0
    compare(world)


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Sink and checkpoint on one that is too small; then there is room."""
    world = World(tmp_path, SEED + 2)
    disk = tmp_path / "kept"
    mount = ["mount", "-t", "tmpfs", "-o"]
    if subprocess.run([*mount, "size=200k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        world.add(30)
        world.end()
        assert world.finish() != 0
        assert "No space left" in (tmp_path / "query.log").read_text()
        subprocess.run([*mount, "remount,size=200m", str(disk)], check=True)
        assert world.finish() == 0, (tmp_path / "query.log").read_text()[-3000:]
        found, expected = world.found(), world.expected()
        assert (found - expected, expected - found) == (Counter(), Counter())
    finally:
        subprocess.run(["umount", str(disk)], check=True)
