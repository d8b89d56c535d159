"""A job on a standalone cluster: the package is sent along, the answer is that of the embedded engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from clusters import SMALL, Cluster, environment
from support import random_events

from coincide.adapters.order import sort_batch
from coincide.adapters.write import KEY
from coincide.connectors.packaging import archive
from coincide.engines import embedded
from coincide.engines.identity import Keys, digests_of
from coincide.engines.spark.rows import events_of
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.rulebook import Rulebook, load

pytestmark = pytest.mark.spark

RULES = """
monitor m by k = repeat { push(x, v: v) { sequential { a, b, c } } }
monitor n by k = repeat { push(y) { sequential { x, x } } }
"""
COINCIDE = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]


def written(events: list[Event], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "type": pa.array([e.type for e in events]),
        "time": pa.array([e.hi for e in events], pa.timestamp("us", "UTC")),
        "id": pa.array([e.id for e in events]),
        "k": pa.array([e.attributes.get("k") for e in events], pa.float64()),
        "v": pa.array([e.attributes.get("v") for e in events], pa.float64()),
    }
    pq.write_table(pa.table(columns), path)
    return path


def keyed(rules: Rulebook, events: list[Event]) -> dict[str, object]:
    """What the embedded engine finds, by key."""
    keys, found = Keys(digests_of(rules)), {}
    for batch in embedded.run(rules, [sort_batch(EventBatch(events))], None, "interpreter"):
        found.update(zip(keys.of(batch), map(record, batch.events), strict=True))
    return found


def found_by_key(folder: Path) -> dict[str, object]:
    """What is in Parquet files; nothing is there twice."""
    table = ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_table()
    told = [record(event) for event in events_of(table, table.column_names)]
    found = {each.pop(KEY): each for each in told}
    assert len(found) == len(told)
    return found


SHIPPED = """
import sys
import pandas as pd
from pyspark.sql import SparkSession
from coincide.rulebook import loads
from coincide.spark import detect

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.addPyFile(sys.argv[1])

def where(frames):
    import coincide
    yield from (pd.DataFrame({"file": [coincide.__file__]}) for _ in frames)

print(spark.range(1).mapInPandas(where, "file string").first()["file"])
rows = [("a", 1000, 1), ("b", 2000, 1)]
rules = loads("monitor m by k = repeat { push(x) { sequential { a, b } } }")
print(detect(rules, spark.createDataFrame(rows, "type string, time long, k long")).count())
"""


def test_a_zip_given_with_add_py_file(tmp_path: Path) -> None:
    """Workers import the package from it."""
    package = archive(tmp_path / "coincide.zip")
    done = subprocess.run(
        [sys.executable, "-c", SHIPPED, str(package)], env=environment(), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    file, count = done.stdout.split()[-2:]
    assert "coincide.zip" in Path(file).parts
    assert count == "1"


@pytest.mark.matrix  # six processes of Java
def test_a_job_on_two_workers(tmp_path: Path) -> None:
    events = [event for event in random_events(600) if event.lo == event.hi and "k" in event.attributes]
    rules = tmp_path / "rules.ecl"
    rules.write_text(RULES, encoding="utf-8")
    end = primitive("heartbeat", 10**9, 10**9, "end", {})
    written([*events, end], tmp_path / "events" / "all.parquet")
    package = archive(tmp_path / "coincide.zip")
    with Cluster(tmp_path / "cluster") as cluster:
        job = ["--source", str(tmp_path / "events"), "--sink", str(tmp_path / "found"), "--checkpoint", str(tmp_path / "kept")]
        conf = [word for name, value in SMALL.items() for word in ("--conf", f"{name}={value}")]
        command = ["spark-submit", str(rules), "--master", cluster.master, "--zip", str(package), *conf, *job]
        done = subprocess.run([*COINCIDE, *command], env=environment(), capture_output=True, text=True, timeout=1000, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert found_by_key(tmp_path / "found") == keyed(load(rules), events) != {}
    shipped = {path.parts[-4] for path in (tmp_path / "cluster").glob("worker-*/app-*/*/coincide.zip")}
    assert shipped == {"worker-0", "worker-1"}


def test_the_same_files_make_the_same_zip(tmp_path: Path) -> None:
    first, second = (archive(tmp_path / name).read_bytes() for name in ("a.zip", "b.zip"))
    assert first == second


def test_kernels_of_a_zip_are_kept(tmp_path: Path) -> None:
    """Wherever Spark puts the zip: the second process compiles nothing."""
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from coincide.detection.columns.compiling import _Locator
from coincide.detection.machine import kernel
assert ".zip" in kernel.__file__, kernel.__file__
print(_Locator.from_function(None, kernel.__file__).folder)
"""
    folders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        package = archive(tmp_path / name / "coincide.zip")
        command = [sys.executable, "-c", program, str(package)]
        run = subprocess.run(
            command, capture_output=True, text=True, env={**environment(), "XDG_CACHE_HOME": str(tmp_path)}, check=False
        )
        assert not run.returncode, run.stderr
        folders.append(run.stdout)
    assert folders[0] == folders[1]
    assert str(tmp_path) in folders[0]
