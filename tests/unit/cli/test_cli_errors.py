"""Everything that can be wrong with a command line, rules or data: a message, an exit code, never a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_support import Coincide, jsonl, written

from coincide.engines.warming import EXAMPLES
from coincide.languages.registry import MODULES

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]


def test_an_error_in_the_rules(coincide: Coincide, tmp_path: Path, events: Path) -> None:
    rules = written(tmp_path / "wrong.ecl", "monitor ok = a\nmonitor m = repeat { accumlate { a, b } }\n")
    outcome = coincide("run", rules, "--events", events)
    assert (outcome.code, outcome.out) == (2, "")
    head, line, caret, *hint = outcome.err.splitlines()
    assert head.startswith(f"{rules}:2:32: error: expected ")
    assert line == "    monitor m = repeat { accumlate { a, b } }"
    assert caret.index("^") == 4 + 31
    assert hint == [] or hint[0].startswith("    hint: ")


def test_an_unknown_name_gets_a_hint(coincide: Coincide, tmp_path: Path) -> None:
    rules = written(tmp_path / "wrong.ecl", "monitor m = lenght(name) > 3")
    outcome = coincide("check", rules)
    assert outcome.code == 2
    assert f"{rules}:1:13: error: unknown function 'lenght'" in outcome.err
    assert "hint: did you mean 'length'?" in outcome.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("binary.ecl", bytes(range(256)), "not a text file"),
        ("nul.ecl", b"\0\0\0", "unexpected character"),
        ("deep.ecl", b"monitor m = " + b"(" * 10_000_000, "nested"),
        ("deeper.ecl", b"monitor m = " + b"repeat {" * 100_000, "nested"),
        ("rules.txt", b"monitor m = a", "not a rule file"),
        ("open.ecl", b"monitor m = 'text", "text is not closed"),
    ],
)
def test_hostile_rule_files(coincide: Coincide, tmp_path: Path, events: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    outcome = coincide("run", path, "--events", events)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert len(outcome.err) < 1000


def test_an_empty_rule_file_detects_nothing(coincide: Coincide, tmp_path: Path, events: Path) -> None:
    outcome = coincide("run", written(tmp_path / "empty.ecl", ""), "--events", events)
    assert (outcome.code, outcome.out) == (0, "")


@pytest.mark.parametrize(
    "command", [["run", "{}", "--events", "e.jsonl"], ["check", "{}"], ["explain", "{}"], ["debug", "parse", "{}"]]
)
def test_rule_files_that_cannot_be_read(coincide: Coincide, tmp_path: Path, command: list[str]) -> None:
    for path, reason in (
        (tmp_path / "none.ecl", "No such file or directory"),
        (tmp_path, f"there are no rule files in this folder (endings: {', '.join(MODULES)})"),
    ):
        outcome = coincide(*(str(path) if word == "{}" else word for word in command))
        assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {path}: {reason}\n")


def test_event_files_that_cannot_be_read(coincide: Coincide, tmp_path: Path, rules: Path) -> None:
    noise = bytes(range(256)) * 20
    for name in ("noise.parquet", "noise.arrow", "noise.jsonl.gz", "noise.csv"):
        (tmp_path / name).write_bytes(noise)
        outcome = coincide("run", rules, "--events", tmp_path / name)
        assert outcome.code in (0, 2), name
        assert name in outcome.err
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("none.jsonl", "folder.jsonl", "events.xyz"):
        outcome = coincide("run", rules, "--events", tmp_path / name)
        assert outcome.code == 2
        assert name in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--until", "tomorrow"], "'tomorrow' is not a time"),
        (["--until", "nan"], "'nan' is not a time"),
        (["--engine", "sprak"], "did you mean 'spark'?"),
        (["--tier", "fast"], "one of auto, interpreter, kernel"),
        (["--time-unit", "h"], "unknown time unit 'h'"),
        (["--type", "no name"], "not a name of an event type"),
        (["--out", "found.txt"], "cannot tell the format"),
        (["--out", "no/such/folder/found.jsonl"], "cannot write"),
        (["--rejects", "no/such/folder/rejects.jsonl"], "cannot write"),
        (["--resume", "none"], "cannot read 'none'"),
        (["--engine", "spark", "--snapshot", "s"], "embedded engine"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_wrong_options(coincide: Coincide, rules: Path, events: Path, arguments: list[str], message: str) -> None:
    outcome = coincide("run", rules, "--events", events, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_wrong_commands(coincide: Coincide, events: Path) -> None:
    assert coincide().code == 2
    assert coincide("frobnicate").code == 2
    assert coincide("run", "--events", events).code == 2
    assert coincide("run", "rules.ecl").code == 2
    assert coincide("test", "no/such/folder").code == 2


def test_an_unknown_monitor(coincide: Coincide, rules: Path) -> None:
    outcome = coincide("debug", "machine", rules, "--only", "pair")
    assert outcome.code == 2
    assert outcome.err == "error: nothing of the name 'pair' is defined\n    hint: did you mean 'pairs'?\n"


def test_a_mistake_of_ours_leaves_its_trace_in_a_file(coincide: Coincide, rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coincide.rulebook.load", lambda *_, **__: 1 // 0)
    outcome = coincide("check", rules)
    assert outcome.code == 1
    assert outcome.err.startswith("error: internal error (ZeroDivisionError: ")
    trace = Path(outcome.err.split()[-1])
    assert "Traceback" in trace.read_text()
    trace.unlink()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbuffered: str) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    pushes = ", ".join(["repeat { push(x) { true } }"] * 100)  # much more than any pipe holds
    rules = written(tmp_path / "all.ecl", f"monitor m = parallel {{ {pushes} }}")
    events = jsonl(tmp_path / "events.jsonl", [{"type": "a", "time": n} for n in range(1000)])
    with subprocess.Popen([*RUN, "run", rules, "--events", events], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"type":"x"')
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_interrupted(tmp_path: Path, rules: Path) -> None:
    out = tmp_path / "found.jsonl"
    # a shell without job control starts its background processes with SIGINT ignored, and a test may run in one
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = [sys.executable, "-c", heed + RUN[2], "run", str(rules), "--events", "-", "--sort", "--out", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"x" * 2_000_000)  # more than a pipe holds: it is reading now
        process.stdin.flush()
        time.sleep(0.5)  # a signal just before a read blocks is noticed by Python only after it
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=180)
        finally:
            process.kill()
        assert process.stderr.read() == b""
    assert process.returncode == 130
    assert not [path for path in tmp_path.iterdir() if "found" in path.name]


def test_a_small_run_does_not_wait_for_large_libraries(rules: Path, events: Path, tmp_path: Path) -> None:
    texts = [(language.replace("opera", "ce"), text) for language, text in EXAMPLES]
    files = [rules, *(written(tmp_path / f"{n}.{ending}", text) for n, (ending, text) in enumerate(texts))]
    script = (
        "import sys; from coincide.cli.main import main; "
        f"codes = [main(['run', rules, '--events', {str(events)!r}]) for rules in {[str(file) for file in files]!r}]; "
        "large = {'numpy', 'pyarrow', 'numba', 'pyspark', 'rich', 'pandas', 'typer', 'asyncio', 'ssl'} & set(sys.modules); "
        "print(sorted(large)); sys.exit(max(codes))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 3 + 1
    assert done.stdout.endswith("[]\n")


def test_a_run_that_reads_columns_does_not_wait_for_pandas(rules: Path, tmp_path: Path) -> None:
    """Which pyarrow imports whatever it is asked for; a program that calls us keeps it."""
    table = pa.table({"type": ["x"], "time": [1]})
    pq.write_table(table, tmp_path / "e.parquet")
    script = (
        "import sys; from coincide.cli.main import main; "
        f"code = main(['run', {str(rules)!r}, '--events', {str(tmp_path / 'e.parquet')!r}], alone=True); "
        "print(sorted({'pyarrow', 'pandas'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['pyarrow']\n"


def test_a_misspelt_action_and_a_wrong_duration(coincide: Coincide, tmp_path: Path) -> None:
    rules, events = tmp_path / "m.ecl", tmp_path / "events.jsonl"
    rules.write_text("monitor m = repeat { psh(x) { a } }", encoding="utf-8")
    events.write_text('{"type": "a", "time": 1}\n', encoding="utf-8")
    assert "did you mean 'push'?" in coincide("check", rules).err
    assert coincide("run", rules, "--events", events, "--delay", "xx").err == "error: --delay: 'xx' is not a duration\n"
