"""Row patterns through Spark Connect: a process of its own, since one process has sessions of one kind only."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import os, sys
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
from pyspark.sql import SparkSession
from coincide.spark import match_recognize, sql

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
spark.stop()
print("well")
"""


def test_row_patterns_through_connect() -> None:
    pytest.importorskip("grpc")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.endswith("well\n"), done.stderr[-3000:]
