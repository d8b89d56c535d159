"""`coincide run` in the order of arrival: policies of the command and of the rules, late events, latencies, in any language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_support import Coincide, jsonl, written

import coincide as package
from coincide.errors import CoincideError

ARRIVALS = [
    {"type": "A", "id": "a1", "time": 10, "source": "s", "arrival": 11},
    {"type": "B", "id": "b1", "time": 20, "source": "t", "arrival": 60},
    {"type": "A", "id": "a2", "time": 15, "source": "t", "arrival": 61},  # breaks the order of t
    {"type": "A", "id": "a3", "time": 18, "source": "s", "arrival": 62},
    {"type": "heartbeat", "time": 90, "source": "s", "arrival": 91},
    {"type": "heartbeat", "time": 90, "source": "t", "arrival": 95},
]
OPERA = "sources s, t\ndetect X = [A] ; [B]\n"
ECL = "monitor m by kind = repeat { push(X) { sequential { A, B } } }\n"


@pytest.fixture
def arrivals(tmp_path: Path) -> Path:
    return jsonl(tmp_path / "arrivals.jsonl", ARRIVALS)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_guaranteed(coincide: Coincide, arrivals: Path, tmp_path: Path) -> None:
    rules = written(tmp_path / "rules.ce", OPERA)
    late, latencies = tmp_path / "late.jsonl", tmp_path / "latencies.jsonl"
    outcome = coincide("run", rules, "--events", arrivals, "--policy", "guaranteed", "--late", late, "--latencies", latencies)
    assert outcome.code == 0
    assert [d["from"] for d in outcome.records] == [["a1", "b1"], ["a3", "b1"]]
    assert lines(late) == [ARRIVALS[2]]
    assert lines(latencies) == [{"type": "X", "from": [a, "b1"], "latency": 75} for a in ("a1", "a3")]
    told = "guaranteed: 2 detections, latency: median 75 ms, 95 % 75 ms, maximum 75 ms; 1 late event"
    assert outcome.err.splitlines()[-1] == told


def test_best_effort_takes_what_comes(coincide: Coincide, arrivals: Path, tmp_path: Path) -> None:
    outcome = coincide("run", written(tmp_path / "rules.ce", OPERA), "--events", arrivals, "--policy", "best-effort")
    assert [d["from"] for d in outcome.records] == [["a1", "b1"]]
    assert outcome.err.splitlines()[-1].startswith("best-effort: 1 detection, latency: median 40 ms")


@pytest.mark.parametrize(("policy", "found"), [("best-effort", ["b1"]), ("guaranteed", ["b1"]), ("probabilistic 0.3", ["b1"])])
def test_a_policy_is_for_every_language(coincide: Coincide, tmp_path: Path, policy: str, found: list[str]) -> None:
    events = jsonl(tmp_path / "events.jsonl", [{**record, "kind": "k"} for record in ARRIVALS])
    outcome = coincide("run", written(tmp_path / "rules.ecl", ECL), "--events", events, "--policy", policy)
    assert outcome.code == 0
    assert [d["from"] for d in outcome.records] == [found]
    assert ("without 'sources'" in outcome.err) == (policy != "best-effort")


def test_a_policy_in_the_rules_needs_no_option(coincide: Coincide, arrivals: Path, tmp_path: Path) -> None:
    """What names none is then detected as without policies: in total order, at the end."""
    text = "sources s, t\ndetect Now policy best-effort = [A]\ndetect Later = [A] ; [B]\n"
    rules = written(tmp_path / "rules.ce", text)
    outcome = coincide("run", rules, "--events", arrivals)
    assert [(d["type"], *d["from"]) for d in outcome.records] == [
        ("Now", "a1"), ("Now", "a2"), ("Now", "a3"), ("Later", "a1", "b1"), ("Later", "a2", "b1"), ("Later", "a3", "b1"),
    ]  # fmt: skip
    assert [line.partition(":")[0] for line in outcome.err.splitlines()[3:]] == ["best-effort"]
    assert package.detect(rules, ARRIVALS) == outcome.records


def test_a_run_in_two_parts(coincide: Coincide, tmp_path: Path) -> None:
    rules, state, late = written(tmp_path / "rules.ce", OPERA), tmp_path / "state", tmp_path / "late.jsonl"
    whole = coincide("run", rules, "--events", jsonl(tmp_path / "all.jsonl", ARRIVALS), "--policy", "guaranteed")
    for cut in range(len(ARRIVALS) + 1):
        parts = [jsonl(tmp_path / f"{n}.jsonl", some) for n, some in enumerate((ARRIVALS[:cut], ARRIVALS[cut:]))]
        options = ("--policy", "guaranteed", "--late", late)
        first = coincide("run", rules, "--events", parts[0], *options, "--snapshot", state)
        second = coincide("run", rules, "--events", parts[1], *options, "--resume", state)
        assert first.out + second.out == whole.out
        assert second.err.endswith("; 1 late event\n")
        assert len(lines(late)) == (cut <= 2)


def test_files_are_complete_or_absent(coincide: Coincide, tmp_path: Path) -> None:
    rules, events = written(tmp_path / "rules.ce", OPERA), jsonl(tmp_path / "bad.jsonl", [*ARRIVALS, {"type": "A"}])
    folder = tmp_path / "out"
    folder.mkdir()
    files = ["--late", folder / "late.jsonl", "--latencies", folder / "latencies.jsonl", "--out", folder / "found.jsonl"]
    assert coincide("run", rules, "--events", events, "--policy", "guaranteed", *files, "--strict").code == 2
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "sometimes"], "unknown policy 'sometimes'"),
        (["--policy", "guaranteed", "--engine", "spark", "--snapshot", "state"], "Spark keeps its own checkpoints"),
        (["--late", "late.jsonl"], "--late needs --delay, or a policy"),
    ],
)
def test_options_that_are_refused(coincide: Coincide, arrivals: Path, tmp_path: Path, options: list[str], message: str) -> None:
    outcome = coincide("run", written(tmp_path / "rules.ce", OPERA), "--events", arrivals, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_snapshot_of_the_other_kind_is_none(coincide: Coincide, arrivals: Path, tmp_path: Path) -> None:
    rules, state = written(tmp_path / "rules.ce", OPERA), tmp_path / "state"
    assert coincide("run", rules, "--events", arrivals, "--snapshot", state).code == 0
    outcome = coincide("run", rules, "--events", arrivals, "--policy", "guaranteed", "--resume", state)
    assert outcome.code == 2
    assert f"'{state}' is not a snapshot that this run can go on from: it was taken without a policy" in outcome.err


def test_from_python() -> None:
    rules = package.loads(OPERA, "ce")
    assert [d["from"] for d in package.detect(rules, ARRIVALS, policy="guaranteed")] == [["a1", "b1"], ["a3", "b1"]]
    with pytest.raises(CoincideError, match="unknown policy"):
        package.detect(rules, ARRIVALS, policy="often")


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark", "spark-streaming"])
def test_on_spark(coincide: Coincide, arrivals: Path, tmp_path: Path, engine: str, spark: object) -> None:
    """Detections, files and summary are those of the embedded engine; also where only some definitions name a policy."""
    text = f"{OPERA}detect Now policy best-effort = [A]\n"
    rules = written(tmp_path / "rules.ce", text)
    for policy in (["--policy", "guaranteed"], []):
        told = []
        for engine_options in ([], ["--engine", engine]):
            late, latencies = tmp_path / "late.jsonl", tmp_path / "latencies.jsonl"
            files = ["--late", late, "--latencies", latencies]
            outcome = coincide("run", rules, "--events", arrivals, *policy, *files, *engine_options)
            summary = [line for line in outcome.err.splitlines() if line.startswith(("guaranteed:", "best-effort:"))]
            told.append(
                (outcome.code, sorted(outcome.out.splitlines()), summary, lines(late), sorted(map(str, lines(latencies))))
            )
        assert told[0] == told[1]
    if engine == "spark":  # on a stream the cases of policies ask the same
        assert len(package.detect(rules, ARRIVALS, policy="guaranteed", engine=engine)) == 5
