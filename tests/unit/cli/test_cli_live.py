"""Events that come while the command runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from cli_support import written

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
PAIR = "monitor pairs by door = repeat { push(pair) { sequential { open, close } } }"


def live(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*RUN, "run", *map(str, arguments)], **{**streams, **options})


def line(type: str, at: int, **more: object) -> bytes:
    return json.dumps({"type": type, "time": at, "door": "a", **more}).encode() + b"\n"


def test_a_detection_leaves_at_once(tmp_path: Path) -> None:
    rules = written(tmp_path / "pair.ecl", PAIR)
    with live(rules, "--events", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for at in (0, 10):
            process.stdin.write(line("open", at) + line("close", at + 5))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["time"] == at + 5  # the input has not ended, nor gone on
        process.communicate(timeout=180)
    assert process.returncode == 0


def given(*arguments: object, lines: bytes) -> tuple[list[dict[str, Any]], str, int]:
    done = subprocess.run([*RUN, "run", *map(str, arguments)], input=lines, capture_output=True, timeout=180, check=False)
    return [json.loads(found) for found in done.stdout.splitlines()], done.stderr.decode(), done.returncode


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_file_with_a_delay_has_late_events_too(tmp_path: Path, ending: str) -> None:
    rules, late = written(tmp_path / "pair.ecl", PAIR), tmp_path / "late.jsonl"
    rows = [("open", 1000, "a"), ("open", 4000, "b"), ("close", 2500, "a"), ("close", 5000, "b")]
    table = pa.table({name: [row[n] for row in rows] for n, name in enumerate(["type", "time", "door"])})
    table = table.append_column("more", [["x"] * 4])  # late events are kept with what no rule reads
    events = tmp_path / f"events.{ending}"
    if ending == "jsonl":
        events.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        (pcsv.write_csv if ending == "csv" else pq.write_table)(table, events)
    found, errors, code = given(rules, "--events", events, "--delay", "1s", "--late", late, lines=b"")
    assert ([made["door"] for made in found], code) == (["b"], 0)
    assert "1 event came too late: left out, kept in" in errors
    assert "a delay of 1500ms would have sufficed" in errors
    assert json.loads(late.read_text()) == {"type": "close", "time": 2500, "id": "3", "door": "a", "more": "x"}
    for option in (["--delay", "1500ms"], [], ["--delay", "1s", "--sort"]):
        found, errors, code = given(rules, "--events", events, *option, lines=b"")
        assert ([made["door"] for made in found], errors, code) == (["a", "b"], "", 0)
    found, errors, code = given(rules, "--events", events, "--late", late, lines=b"")
    assert ("--late needs --delay, or a policy" in errors, code) == (True, 2)


def test_what_is_late_is_kept_and_told(tmp_path: Path) -> None:
    rules, late = written(tmp_path / "pair.ecl", PAIR), tmp_path / "late.jsonl"
    lines = line("open", 1000) + line("open", 4000, door="b") + line("close", 2500) + line("close", 5000, door="b")
    found, errors, code = given(rules, "--events", "-", "--late", late, lines=lines)
    assert ([made["door"] for made in found], code) == (["b"], 0)
    assert "1 event came too late: left out, kept in" in errors
    assert "a delay of 1500ms would have sufficed" in errors
    assert json.loads(late.read_text())["time"] == 2500
    for option in (["--delay", "1500ms"], ["--sort"]):
        found, errors, code = given(rules, "--events", "-", *option, lines=lines)
        assert ([made["door"] for made in found], errors, code) == (["a", "b"], "", 0)


def test_what_is_too_far_in_the_future_is_rejected(tmp_path: Path) -> None:
    rules, rejects = written(tmp_path / "pair.ecl", PAIR), tmp_path / "rejects.jsonl"
    now = int(time.time() * 1000)
    lines = line("open", now) + line("open", now + 9 * 86_400_000, door="far") + line("close", now + 1)
    found, errors, code = given(rules, "--events", "-", "--clock", "wall", "--rejects", rejects, lines=lines)
    assert ([made["door"] for made in found], code) == (["a"], 0)
    assert "event 2: time is more than 1d ahead of other events, or of the wall clock" in errors
    assert json.loads(rejects.read_text())["door"] == "far"
    for options in (["--clock", "wall", "--ahead", "off"], ["--clock", "event"], ["--ahead", "10d"]):
        found, errors, code = given(rules, "--events", "-", *options, lines=lines)
        assert (found, code) == ([], 0)
        assert "1 event came too late" in errors


def test_csv_has_the_types_of_its_first_cells(tmp_path: Path) -> None:
    rules = written(tmp_path / "hot.ecl", "monitor hot = repeat { push(hot, celsius: celsius) { celsius > 30 } }")
    lines = b"type,time,celsius,zip\nt,1,20,007\nt,2,40,12\nt,3,warm,12\n"
    found, errors, _ = given(rules, "--events", "-", "--format", "csv", lines=lines)
    assert [made["celsius"] for made in found] == [40]
    assert "'celsius' must be a number" in errors


def test_csv_in_and_out(tmp_path: Path) -> None:
    rules, out = written(tmp_path / "pair.ecl", PAIR), tmp_path / "found.csv"
    events = written(tmp_path / "doors.csv", 'type,time,door\nopen,1,"a, ""left"""\nclose,5,"a, ""left"""\n')
    expected = 'time,door,none,from\n5,"a, ""left""",,"[""2""]"\n'
    columns = ["--columns", "time,door,none,from"]
    with live(rules, "--events", "-", "--format", "csv", *columns) as process:
        assert process.communicate(Path(events).read_bytes(), timeout=180)[0].decode() == expected
    subprocess.run([*RUN, "run", rules, "--events", events, "--out", out, *columns], check=True, timeout=180)
    assert out.read_text() == expected
    _, errors, code = given(rules, "--events", "-", *columns, "--out", "nats://x/y", lines=b"")
    assert (code, "--columns is for standard output and files of CSV" in errors) == (2, True)


def has_read(process: subprocess.Popen[bytes], file: Path) -> bool:
    """Has it come to the end of the file?"""
    for number in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            if number.readlink() == file:
                place = Path(f"/proc/{process.pid}/fdinfo/{number.name}").read_text()
                return int(place.partition("pos:")[2].split()[0]) == file.stat().st_size
    return False


def test_several_sources_at_once(tmp_path: Path) -> None:
    rules, out = written(tmp_path / "pair.ecl", PAIR), tmp_path / "found.jsonl"
    logs = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for log, kind, at in zip(logs, ("open", "close"), (1, 2), strict=True):
        log.write_bytes(line(kind, at))
    sources = [f"tail:{log}" for log in logs]
    with live(rules, "--events", *sources, "--delay", "1min", "--clock", "event", "--out", out, stdout=None) as process:
        for _ in range(200):
            if all(has_read(process, log) for log in logs):  # else what is in one may come after what is added to the other
                break
            time.sleep(0.05)
        logs[0].open("ab").write(line("other", 100_000))
        for _ in range(200):
            if out.read_bytes():
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=180)
    assert process.returncode == 128 + signal.SIGTERM
    assert [json.loads(made)["from"] for made in out.read_text().splitlines()] == [["1000000000001"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--events", "gnats://x/y"], "no streams of the kind 'gnats'"),
        (["--events", "-", "--delay", "5 lightyears"], "--delay: "),
        (["--events", "-", "--clock", "wal"], "unknown clock 'wal'"),
        (["--events", "-", "--checkpoint", "kept"], "'-' cannot be read again"),
        (["--events", "events.jsonl", "--checkpoint", "kept"], "--checkpoint is for live events"),
        (["--events", "tail:log.jsonl", "events.jsonl"], "one run cannot read both"),
        (["--events", "watch:nowhere"], "'nowhere' is not a folder"),
        (["--events", "tail:log.parquet"], "cannot be read while it is written"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    rules = written(tmp_path / "pair.ecl", PAIR)
    found, errors, code = given(rules, *options, lines=b"")
    assert (found, code) == ([], 2)
    assert message in errors
    assert "Traceback" not in errors
