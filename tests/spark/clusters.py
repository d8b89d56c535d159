"""A standalone cluster of our own, on loopback: a master and workers, each a process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyspark
from brokers import free_port

from coincide.engines.spark.session import java_home

PATIENCE = 240.0
HOME = Path(pyspark.__file__).parent
SMALL = {
    "spark.executor.memory": "600m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
"""Settings of jobs: two cores are enough for everybody."""


def environment() -> dict[str, str]:
    home = java_home()
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **own, **({} if home is None else {"JAVA_HOME": str(home)})}


class Cluster:
    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("master", "master.Master", "--port", str(port))
        until(lambda: _listens(port), "the master does not listen")
        for number in range(workers):
            work = str(folder / f"worker-{number}")
            self._start(f"worker-{number}", "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", work, self.master)

    def executors(self) -> list[int]:
        """The processes of those that run: each does so in a folder of its worker."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                is_executor = b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in entry.read_bytes().split(b"\0")
                if is_executor and (entry.parent / "cwd").resolve().is_relative_to(self.folder.resolve()):
                    found.append(int(entry.parent.name))
        return found

    def stop(self) -> None:
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)  # workers end their executors
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, name: str, role: str, *arguments: str) -> None:
        command = [
            str(HOME / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{role}",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.log").open("wb") as log:
            made = subprocess.Popen([*command, *arguments], env=environment(), stdout=log, stderr=log, process_group=0)
        self._processes.append(made)


def until(done: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
