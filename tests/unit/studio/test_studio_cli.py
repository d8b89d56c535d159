"""The command: what it refuses, and how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from studio_support import write_folder

from coincide.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nosuch.say"], "nosuch.say: No such file or directory"),
        (["guessing.say", "--events", "nosuch.jsonl"], "cannot read 'nosuch.jsonl'"),
        (["guessing.say", "--events", "logins.jsonl", "nats://127.0.0.1/x"], "cannot be mixed"),
        (["guessing.say", "--port", "70000"], "70000 is not a port"),
        (["guessing.say", "--clock", "sun"], "clock"),
        (["guessing.say", "--delay", "soon"], "soon"),
    ],
)
def test_what_is_refused(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(write_folder(tmp_path, 1))
    assert main(["studio", "--no-browser", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["studio", str(write_folder(tmp_path, 1)), "--no-browser", "--port", port]) == 2
    assert f"cannot listen at 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "studio", "--no-browser"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("coincide studio: http://127.0.0.1:")
        assert process.stdout.readline() == "Ctrl-C ends it.\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=180)
    assert process.returncode in (0, 128 + number)
    assert "Traceback" not in errors
