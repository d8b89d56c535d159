"""How the command starts and ends in the company of others: closed streams, signals, outputs that must not be replaced."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import FOUND, Coincide, written

ENTRY = "from coincide.cli.main import entry; entry()"
RUN = [sys.executable, "-c", ENTRY]
HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""A shell without job control starts its background processes with SIGINT ignored, and a test may run in one."""


def shell(*arguments: object, streams: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = " ".join(f"'{word}'" for word in [*RUN, *map(str, arguments)])
    return subprocess.run(["bash", "-c", f"{command} {streams}"], input=stdin, capture_output=True, timeout=180, check=False)


def test_standard_output_is_closed(rules: Path, events: Path) -> None:
    done = shell("run", rules, "--events", events, streams=">&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"error: standard output is closed\n")


def test_standard_output_is_closed_and_not_needed(rules: Path, events: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"
    done = shell("run", rules, "--events", events, "--out", out, streams=">&-")
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.read_text().count("\n") == len(FOUND)


@pytest.mark.parametrize("streams", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_standard_error_is_closed(rules: Path, events: Path, tmp_path: Path, streams: str) -> None:
    out = tmp_path / "found.jsonl"
    assert shell("run", rules, "--events", events, "--out", out, streams=streams).returncode == 0
    assert out.read_text().count("\n") == len(FOUND)
    done = shell("run", tmp_path / "none.ecl", "--events", events, streams=streams)
    assert (done.returncode, done.stdout) == (2, b"")


def test_standard_input_is_closed(rules: Path) -> None:
    done = shell("run", rules, "--events", "-", streams="<&-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: cannot read '-': ")


def test_the_reader_of_errors_goes_away(tmp_path: Path) -> None:
    rules = written(tmp_path / "wrong.ecl", "monitor m = lenght(name) > 3")
    done = shell("check", rules, streams="2>&1 | head -c 1; exit ${PIPESTATUS[0]}")
    assert (done.returncode, b"Traceback" in done.stdout + done.stderr) == (2, False)


@pytest.mark.parametrize(
    "arguments", [[], ["run"], ["run", "none.ecl", "--events", "none.jsonl"], ["check", "none.ecl"], ["fly"]]
)
def test_errors_are_never_on_standard_output(coincide: Coincide, arguments: list[str]) -> None:
    outcome = coincide(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err


SENDS = """
import os, signal, sys
{heed}
class Sends:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.{signal})
sys.meta_path.insert(0, Sends())
{entry}
"""


@pytest.mark.parametrize("module", ["coincide.access", "argparse", "coincide.cli.run", "coincide.rulebook", "msgspec"])
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_during_imports(rules: Path, events: Path, module: str, name: str, code: int) -> None:
    script = SENDS.format(heed=HEED, module=module, signal=name, entry=ENTRY)
    command = [sys.executable, "-c", script, "run", str(rules), "--events", str(events)]
    done = subprocess.run(command, capture_output=True, timeout=180, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


@pytest.mark.parametrize(("ending", "number"), [("jsonl", signal.SIGTERM), ("parquet", signal.SIGTERM), ("jsonl", signal.SIGHUP)])
def test_nothing_is_left_behind(tmp_path: Path, rules: Path, ending: str, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the signal is ignored here (nohup), and so by what is started here")
    places = [tmp_path / "out", tmp_path / "tmp"]
    for place in places:
        place.mkdir()
    out = [
        "--out",
        str(places[0] / f"found.{ending}"),
        "--rejects",
        str(places[0] / "bad.jsonl"),
        "--stats",
        str(places[0] / "s"),
    ]
    command = [*RUN, "run", str(rules), "--events", "-", "--sort", *out]
    environment = {**os.environ, "TMPDIR": str(places[1])}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"x" * 2_000_000)  # more than a pipe holds: it is reading now
        process.stdin.flush()
        for _ in range(100):
            time.sleep(0.1)  # a signal just before a read blocks is noticed by Python only after it
            if [*places[0].iterdir()]:
                break
        process.send_signal(number)
        try:
            process.wait(timeout=180)
        finally:
            process.kill()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + number
    assert [path.name for place in places for path in place.iterdir()] == []


def test_an_ignored_signal_stays_ignored(rules: Path) -> None:
    script = f"import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {ENTRY}"
    lines = b"".join(b'{"type": "open", "time": 1}\n' for _ in range(2))
    command = [sys.executable, "-c", script, "run", str(rules), "--events", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.send_signal(signal.SIGHUP) if _ignores(process.pid) else None
        process.communicate(lines, timeout=180)
    assert process.returncode == 0


def _ignores(process: int) -> bool:
    for _ in range(100):
        time.sleep(0.05)
        line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("SigIgn"))
        if int(line.split()[1], 16) & 1:
            return True
    return False


# Outputs


def test_a_link_is_written_through(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    target, link = tmp_path / "kept" / "real.jsonl", tmp_path / "found.jsonl"
    link.symlink_to(target)
    for _ in range(2):  # first it names nothing yet
        assert coincide("run", rules, "--events", events, "--out", link).code == 0
        assert link.is_symlink()
        assert target.read_text().count("\n") == len(FOUND)
    assert [path.name for path in target.parent.iterdir()] == ["real.jsonl"]


def test_permissions_are_kept(coincide: Coincide, rules: Path, events: Path, tmp_path: Path) -> None:
    out = written(tmp_path / "found.jsonl", "old")
    out.chmod(0o600)
    assert coincide("run", rules, "--events", events, "--out", out).code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    new = tmp_path / "new.jsonl"
    assert coincide("run", rules, "--events", events, "--out", new).code == 0
    written(tmp_path / "other", "")
    assert new.stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("option", ["out", "snapshot", "rejects", "stats", "late", "latencies"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_read_only_output_is_refused_before_the_run(
    coincide: Coincide, rules: Path, tmp_path: Path, option: str, linked: bool
) -> None:
    target = written(tmp_path / "kept.jsonl", "kept")
    target.chmod(0o444)
    given = target
    if linked:
        given = tmp_path / "link.jsonl"
        given.symlink_to(target)
    policy = ["--policy", "best-effort"] if option in ("late", "latencies") else []
    outcome = coincide("run", rules, "--events", tmp_path / "none.jsonl", *policy, f"--{option}", given)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: cannot write '{given}': it is read-only\n")
    assert target.read_text() == "kept"
