"""Events that come while the command runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cli_support import written

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
PAIR = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }"


def live(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*RUN, "run", *map(str, arguments)], **{**streams, **options})


def line(type: str, time: int, **more: object) -> bytes:
    return json.dumps({"type": type, "time": time, "door": "a", **more}).encode() + b"\n"


def test_a_detection_leaves_at_once(tmp_path: Path) -> None:
    rules = written(tmp_path / "pair.ecl", PAIR)
    with live(rules, "--events", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for time in (0, 10):
            process.stdin.write(line("open", time) + line("close", time + 5))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["time"] == time + 5  # the input has not ended, nor gone on
        process.communicate(timeout=60)
    assert process.returncode == 0
