"""A studio as users have it: a process with a link, and a browser that shows its page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

RULES = """\
# Three failed logins, then a success, by one user.
Report guessed when login where ok = false 3 times within "10 min" followed by login where ok = true called entry within "10 min"
    for the same user with host = entry.host.
"""
START = 1_772_438_400_000


def logins(rounds: int = 20) -> list[dict[str, Any]]:
    """In each round somebody guesses a password, somebody else fails twice only, and others work."""
    found: list[dict[str, Any]] = []
    for n in range(rounds):
        begin = START + n * 600_000
        for k in range(3):
            found.append({"type": "login", "time": begin + 2_000 * k, "user": f"eve{n}", "ok": False})
        for k in range(2):
            found.append({"type": "login", "time": begin + 500 + 3_000 * k, "user": f"bob{n}", "ok": False})
        found.append({"type": "login", "time": begin + 20_000, "user": f"eve{n}", "ok": True, "host": "db1"})
        found.append({"type": "login", "time": begin + 25_000, "user": f"bob{n}", "ok": True, "host": "web"})
        found += [{"type": "transfer", "time": begin + 40_000 + 9_000 * k, "user": f"ann{k}", "megabytes": k} for k in range(40)]
    return [{"id": f"e{n}", **record} for n, record in enumerate(found, 1)]


def write_folder(folder: Path, rounds: int = 20) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "guessing.say").write_text(RULES, encoding="utf-8")
    (folder / "logins.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(logins(rounds)))
    return folder


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[str]:
    """A studio in a folder; gives its link."""
    command = [sys.executable, "-c", "from coincide.cli.main import entry; entry()", "studio", "--no-browser", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "COINCIDE_TOKEN"}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("coincide studio: http://127.0.0.1:"), line + (process.stderr.read() if process.stderr else "")
        yield line.partition(": ")[2].strip()
    finally:
        process.terminate()
        process.wait(20)


def client(link: str) -> httpx.Client:
    address, _, token = link.partition("/#")
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=180)


def browser_path() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
