"""Checkpoints that live as long as the job: rules come, go and change, so do cores; nothing unchanged is forgotten."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace as Told
from typing import Any

import pytest

from coincide import spark as on_spark
from coincide.cli.main import main
from coincide.engines.spark import progress as progressing
from coincide.engines.spark.progress import Progress, Waiting
from coincide.errors import CoincideError
from coincide.rulebook import Rulebook, loads

pytestmark = pytest.mark.spark

SCHEMA = "type string, time bigint, k bigint, s string"
PAIRS = "monitor pairs by k = repeat { push(pair) { sequential { a, b } } }"
SAME = "monitor same by k = repeat { push(twice) { sequential { a, a } } }"
OTHERS = "monitor others by s = repeat { push(other) { sequential { a, b } } }"
ALL = "monitor all = repeat { push(any) { sequential { c, c } } }"


class Job:
    """A query over files that come one by one."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.events, self.checkpoint = folder / "events", str(folder / "checkpoint")
        self.events.mkdir()
        self.found: list[tuple[str, str]] = []

    def add(self, *rows: tuple[str, int, int, str]) -> None:
        number = len([*self.events.glob("*.json")])
        part = self.folder / "part.json"
        names = ("type", "time", "k", "s")
        part.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows), encoding="utf-8")
        os.utime(part, (1000 + number, 1000 + number))
        part.rename(self.events / f"{number}.json")

    def start(self, rules: Rulebook, trigger: dict[str, Any], **options: Any) -> Any:
        stream = self.spark.readStream.schema(SCHEMA).json(str(self.events))
        options = {"delay": "0 s", "versions": True, "checkpoint": self.checkpoint} | options
        found = on_spark.detect(rules, stream, **options)
        writer = found.writeStream.foreachBatch(self._keep).option("checkpointLocation", self.checkpoint)
        return writer.trigger(**trigger).start()

    def run(self, rules: str, **options: Any) -> list[tuple[str, str]]:
        self.found.clear()
        query = self.start(loads(rules), {"availableNow": True}, **options)
        query.awaitTermination()
        return sorted(self.found)

    def _keep(self, batch: Any, number: int) -> None:
        self.found += [(row.type, row._version) for row in batch.collect()]


def test_rules_and_cores_change(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    job = Job(spark, tmp_path)
    job.add(("a", 1, 1, "x"), ("c", 2, 1, "x"), ("heartbeat", 3, 1, "x"))
    assert job.run(f"{PAIRS}\n{SAME}") == []
    # The checkpoint in words.
    assert main(["state", job.checkpoint, "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["part"], each["rule"], each["key"]) for each in shown] == [("by k", "pairs", [1]), ("by k", "same", [1])]
    # Another order, a new key, one edited, and another number of partitions.
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        job.add(("b", 11, 1, "x"), ("a", 12, 1, "x"), ("c", 13, 1, "x"), ("heartbeat", 20, 1, "x"))
        edited = SAME.replace("{ a, a }", "{ a, a, a }")
        with caplog.at_level(logging.WARNING, "coincide.spark"):
            found = job.run(f"{ALL}\n{OTHERS}\n{edited}\n{PAIRS}")
        assert [kind for kind, _ in found] == ["pair"], "its state was kept; the edited rule has seen one a"
        (line,) = [record.getMessage() for record in caplog.records if record.name == "coincide.spark"]
        assert "same start afresh, as they have changed; " in line
        assert line.endswith("are new; 1 keep their state")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    # What the new ones have seen is kept, and one may go.
    job.add(("b", 21, 1, "x"), ("c", 22, 1, "x"), ("heartbeat", 30, 1, "x"))
    again = job.run(f"{OTHERS}\n{ALL}")
    assert [kind for kind, _ in again] == ["any", "other"]
    assert len({version for _, version in [*found, *again]}) == 3, "each rule has a version of its own"
    # What does not fit is said at once.
    with pytest.raises(CoincideError, match="keeps the state by s in at most 64 buckets"):
        job.run(OTHERS, buckets=65)
    with pytest.raises(CoincideError, match="keeps the state by s in 8 pages, not in 5"):
        job.run(OTHERS, pages=5)
    with pytest.raises(CoincideError, match="is of a query without `idle`"):
        job.run(OTHERS, idle="1 s")


@pytest.mark.matrix
def test_another_number_of_buckets(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Fewer, and more: what waits and what is open moves, each part once."""
    job = Job(spark, tmp_path)
    rules = f"{PAIRS}\n{SAME}"
    job.add(*(("a", 1 + key, key, "x") for key in range(20)), ("b", 60, 3, "x"))  # the last waits
    assert job.run(rules, delay="20 ms") == []
    found = []
    for start, buckets in ((100, 3), (200, None), (300, 13)):
        job.add(*(("b", start + key, key, "x") for key in range(start // 100 - 1, 20, 3)), ("heartbeat", start + 90, 1, "x"))
        with caplog.at_level(logging.WARNING, "coincide.spark"):
            found += job.run(rules, delay="20 ms", buckets=buckets)
    assert [kind for kind, _ in found] == ["pair"] * 20
    lines = [record.getMessage() for record in caplog.records if record.name == "coincide.spark"]
    assert [line[line.index("moves") :] for line in lines] == ["moves from 8 buckets to 3", "moves from 3 buckets to 13"]


NO_STREAM = "SELECT * FROM a MATCH_RECOGNIZE (ORDER BY k MEASURES COUNT(*) AS n PATTERN (A) DEFINE A AS k > 0) AS sorted"


def test_rules_of_a_folder_change_while_the_stream_goes_on(spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(spark, tmp_path)
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "pairs.ecl").write_text(PAIRS, encoding="utf-8")
    job.add(("a", 1, 1, "x"), ("heartbeat", 2, 1, "x"))
    stream = on_spark.watched(rules, lambda book: job.start(book, {"processingTime": "0 seconds"}), every="50 ms")
    lines = io.StringIO()
    progress = on_spark.progress(stream, lines)
    try:
        stream.query.processAllAvailable()
        (rules / "wrong.ecl").write_text("monitor = ", encoding="utf-8")
        _wait(lambda: "the rules stay as they are" in caplog.text)
        first = stream.query
        (rules / "wrong.ecl").write_text(ALL, encoding="utf-8")
        _wait(lambda: stream.query is not first)
        (rules / "refused.mr.sql").write_text(NO_STREAM, encoding="utf-8")
        _wait(lambda: "ORDER BY" in caplog.text)
        (rules / "refused.mr.sql").unlink()
        _wait(lambda: stream.query.isActive)
        job.add(("b", 11, 1, "x"), ("c", 12, 1, "x"), ("c", 13, 1, "x"), ("heartbeat", 20, 1, "x"))
        stream.query.processAllAvailable()
        assert sorted(kind for kind, _ in job.found) == ["any", "pair"]
        _wait(lambda: "micro-batch 1: 4 rows, 3 consumed, 0 waiting; " in lines.getvalue())
    finally:
        progress.stop()
        stream.stop()
    assert stream.awaitTermination(1)


class Idle:
    """A query with nothing to do."""

    isActive, status = True, {"isTriggerActive": False}

    def stop(self) -> None:
        self.isActive = False

    def exception(self) -> None: ...


def test_rules_of_a_table_that_cannot_always_be_read(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    tables = [[("m.ecl", PAIRS)], OSError("no route to the catalog"), [], [("n.ecl", SAME), ("m.ecl", PAIRS)]]
    looks: Iterator[Any] = chain(*(repeat(each, 3) for each in tables), repeat(tables[-1]))
    begun: list[list[str]] = []

    def table() -> Any:
        found = next(looks)
        if isinstance(found, OSError):
            raise found
        return spark.createDataFrame(found, "name string, text string")

    def start(book: Rulebook) -> Any:
        begun.append([detector.name for detector in book.detectors])
        return Idle()

    stream = on_spark.watched(table, start, every="10 ms")
    _wait(lambda: len(begun) == 2)
    stream.stop()
    assert begun == [["pairs"], ["pairs", "same"]]
    told = [record.getMessage().removeprefix("the rules stay as they are: ") for record in caplog.records]
    assert told == ["no route to the catalog", "error: there are no rules"], "each once"


def _wait(until: Any, seconds: float = 180.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


CHAIN = """
monitor first by k = repeat { push(x, s: s) { sequential { a, b } } }
monitor second by s = repeat { push(y, k: k) { sequential { x, c } } }
"""


@pytest.mark.matrix  # `test_stages_of_a_stream` has some, and others live on
def test_stages_are_chained_and_live_on(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rules whose keys differ, the one fed by the other, restarted in the midst of all."""
    job = Job(spark, tmp_path)
    job.add(("a", 1, 1, "p"), ("a", 1, 2, "q"), ("heartbeat", 2, 1, "p"))
    assert job.run(CHAIN) == []
    job.add(("b", 11, 1, "p"), ("b", 11, 2, "q"), ("heartbeat", 12, 1, "p"))
    assert [kind for kind, _ in job.run(CHAIN)] == ["x", "x"]
    assert len(spark.read.format("state-metadata").load(job.checkpoint).select("operatorId").distinct().collect()) == 2
    job.add(("c", 21, 9, "p"), ("c", 21, 9, "q"), ("heartbeat", 22, 1, "p"))
    assert [kind for kind, _ in job.run(CHAIN)] == ["y", "y"], "what had come from the first stage was kept"
    # Without the second rule its stage stays, and has nothing to do; the first goes on.
    job.add(("a", 31, 1, "p"), ("heartbeat", 32, 1, "p"))
    assert job.run(CHAIN.strip().splitlines()[0]) == []
    assert main(["state", job.checkpoint, "--json"]) == 0
    assert [json.loads(line)["part"] for line in capsys.readouterr().out.splitlines()] == ["by k"]


def test_who_waits_for_a_first_detection_is_told_why_once() -> None:
    waiting = Waiting()
    counts = [{"waiting": 0, "consumed": 0}, {"waiting": 3, "consumed": 0}, {"waiting": 3, "consumed": 0}]
    assert [waiting.puzzles(count) for count in counts] == [False, True, False]
    assert not Waiting().puzzles({"waiting": 3, "consumed": 1})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def micro_batches(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Two, told to who writes there."""
    streams = Told(addListener=lambda listener: None, removeListener=lambda listener: None)
    monkeypatch.setattr(progressing, "SparkSession", Told(active=lambda: Told(streams=streams)))

    def tell(out: Any) -> None:
        listener = Progress(Told(id=7), out)
        for number in range(2):
            told = Told(id=7, batchId=number, numInputRows=3, observedMetrics={}, batchDuration=1200)
            listener.onQueryProgress(Told(progress=told))
        listener.onQueryTerminated(Told(id=7))

    return tell


def test_a_bar_stays_below_the_lines(micro_batches: Any) -> None:
    out = Terminal()
    micro_batches(out)
    for number in range(2):
        assert f"\r\x1b[2Kmicro-batch {number}: 3 rows, 0 consumed, 0 waiting; 1.2 s\n" in out.getvalue(), "not behind the bar"
    assert "2 micro-batches, 6 rows" in out.getvalue()


def test_a_bar_in_a_notebook(micro_batches: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    cell = Told(update=lambda html: shown.append(html.data))
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    monkeypatch.setattr("IPython.get_ipython", lambda: Told(kernel=None))
    monkeypatch.setattr("IPython.display.display", lambda html, display_id: shown.append(html.data) or cell)
    out = io.StringIO()
    micro_batches(out)
    assert len(out.getvalue().splitlines()) == 2
    assert shown == [
        "<progress></progress> no micro-batch yet",
        "<progress></progress> 1 micro-batches, 3 rows",
        "<progress></progress> 2 micro-batches, 6 rows",
        '<progress value="1"></progress> 2 micro-batches, 6 rows',
    ]
