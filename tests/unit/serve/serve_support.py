"""A real server, in a process of its own, on a port that is free."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
PAIR = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }\n"
LINES = {"content-type": "application/x-ndjson"}


@dataclass
class Served:
    """Its client, its process, and what it logs."""

    http: httpx.Client
    process: subprocess.Popen[str]
    logs: list[dict[str, Any]] = field(default_factory=list)

    def post(self, *events: dict[str, Any]) -> httpx.Response:
        return self.http.post("/events", json=list(events))

    def made(self, **asked: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/detections", params={"limit": 1000, **asked}).json()["detections"]
        return found

    def until(self, holds: Callable[[], Any]) -> Any:
        for _ in range(1500):
            if found := holds():
                return found
            assert self.process.poll() is None, self.logs
            threading.Event().wait(0.02)  # another process is at work
        raise AssertionError(self.logs)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=180)


@contextmanager
def served(*arguments: object, token: str | None = None, environment: dict[str, str] | None = None) -> Iterator[Served]:
    command = [*RUN, "serve", *map(str, arguments), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    logs: list[dict[str, Any]] = []
    try:
        for line in process.stderr:
            logs.append(json.loads(line) if line.startswith("{") else {"text": line})
            if "address" in logs[-1]:
                break
        assert "address" in logs[-1], logs
        rest = threading.Thread(target=lambda: logs.extend(map(json.loads, process.stderr or ())), daemon=True)
        rest.start()
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=logs[-1]["address"], timeout=180, headers=headers) as http:
            yield Served(http, process, logs)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def refused(*arguments: object) -> str:
    done = subprocess.run([*RUN, "serve", *map(str, arguments)], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def rules(folder: Path, text: str = PAIR, name: str = "pair.ecl") -> Path:
    (folder / name).write_text(text)
    return folder / name


def pair(time: int, door: str = "a") -> tuple[dict[str, Any], dict[str, Any]]:
    return {"type": "open", "time": time, "door": door}, {"type": "close", "time": time + 1, "door": door}
