"""Through Spark Connect: a process of its own, since one process has sessions of one kind only."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import os, sys, tempfile
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
from pyspark.sql import SparkSession
from coincide.errors import CoincideError
from coincide.rulebook import loads
from coincide.spark import Report, by_batch, by_type, detect, match_recognize, progress, split, sql, watched, why

spark = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
assert "connect" in type(spark).__module__
ticks = spark.createDataFrame([("a", n, v) for n, v in enumerate([3, 2, 5, 1, 4])], "sym string, t long, price long")
ticks.createOrReplaceTempView("ticks")
CLAUSE = '''PARTITION BY sym ORDER BY t MEASURES FIRST(price) AS top, LAST(price) AS last
    PATTERN (S D+ U) DEFINE D AS price < PREV(price), U AS price > PREV(price) AND year(timestamp_seconds(t)) = 1970'''
assert [tuple(row) for row in match_recognize(ticks, CLAUSE).collect()] == [("a", 3, 5)]
found = sql(spark, f"SELECT count(*) AS n FROM ticks MATCH_RECOGNIZE ({CLAUSE}) AS v WHERE last > 1")
assert found.collect()[0].n == 1
stream = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
assert match_recognize(stream, "ORDER BY timestamp MEASURES LAST(value) AS v PATTERN (A B) DEFINE B AS true").isStreaming

rules = loads("monitor m by k = repeat { push(x, v: v) { sequential { a, b } } }")
rows = [("a", 1, "p", 1.0), ("b", 2, "p", 2.0), ("a", 3, "q", 1.0), (None, 4, "q", 0.0)]
df = spark.createDataFrame(rows, "type string, time long, k string, v double")
report = Report()
found, rejected = split(df.transform(detect(rules, keys=True, rejects=True, report=report)))
assert [(row.type, row.k, row.v, len(row._key)) for row in found.collect()] == [("x", "p", 2.0, 16)]
assert (rejected.count(), report.rows, list(by_type(found))) == (1, 4, ["x"])
folder = tempfile.mkdtemp()
df.write.parquet(folder + "/events")
stream = spark.readStream.schema(df.schema).parquet(folder + "/events").transform(detect(rules, delay="0 seconds"))
sink = stream.writeStream.format("parquet").option("path", folder + "/found").option("checkpointLocation", folder + "/kept")
query = sink.trigger(availableNow=True).start()
query.awaitTermination()
try:
    progress(query)
except CoincideError as error:
    assert "lastProgress" in str(error)
else:
    raise AssertionError("a listener that PySpark cannot remove while it hears something")
assert spark.read.parquet(folder + "/found").count() == 1
with open(folder + "/m.ecl", "w") as file:
    file.write("monitor m by k = repeat { push(x, v: v) { sequential { a, b } } }")
def patiently(start):  # a Python process has ten seconds to answer Spark, however busy the machine is
    for _ in range(9):
        try:
            return start()
        except Exception as error:
            if "connect back" not in str(error):
                raise
    return start()
def start(book):
    made = spark.readStream.schema(df.schema).parquet(folder + "/events").transform(detect(book, delay="0 seconds"))
    writer = made.writeStream.foreachBatch(by_batch(folder + "/numbered")).option("checkpointLocation", folder + "/kept too")
    return patiently(writer.trigger(availableNow=True).start)
watched(folder + "/m.ecl", start).awaitTermination()
assert spark.read.parquet(folder + "/numbered").count() == 1
events = spark.createDataFrame([("a", 1, "e1", "p"), ("b", 2, "e2", "p")], "type string, time long, id string, k string")
(row,) = detect(rules, events, keys=True).collect()
assert [part.event.id for part in why(rules, events, detection=row).parts] == ["e1", "e2"]
try:
    stream = spark.readStream.schema(df.schema).parquet(folder + "/events").transform(detect(rules, until="inf"))
except CoincideError as error:
    assert "a stream has no end" in str(error)
else:
    raise AssertionError("a stream has no end")
spark.stop()
print("well")
"""


def test_detection_and_row_patterns_through_connect() -> None:
    pytest.importorskip("grpc")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.endswith("well\n"), done.stderr[-3000:]
