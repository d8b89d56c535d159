"""Workload K in Flink SQL, run by the Python of the peers' environment: python flink_job.py EVENTS FOLDER

EVENTS is CSV without a header, which Flink would take for an event.

One match a t0: X and Y take all that is not the next step, so that each step is the first of its kind; after a match Flink goes
on at the row after its t0. `WITHIN` is exclusive in Flink: times are whole milliseconds, so below 10.001 s is up to 10 s."""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

EVENTS = """
CREATE TABLE events (
    `type` STRING, `time` BIGINT, id BIGINT, k STRING,
    ts AS TO_TIMESTAMP_LTZ(`time`, 3),
    WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
MATCHES = """
CREATE TABLE found (a BIGINT, b BIGINT, c BIGINT)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
QUERY = """
INSERT INTO found
SELECT a, b, c FROM (SELECT * FROM events WHERE `type` IN ('t0', 't1', 't2')) MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY ts
    MEASURES A.id AS a, B.id AS b, C.id AS c
    ONE ROW PER MATCH
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A X* B Y* C) WITHIN INTERVAL '10.001' SECOND
    DEFINE A AS A.`type` = 't0', X AS X.`type` <> 't1', B AS B.`type` = 't1', Y AS Y.`type` <> 't2', C AS C.`type` = 't2'
)
"""


def main(events: Path, folder: Path) -> None:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table.get_config().set("parallelism.default", "1")
    table.execute_sql(EVENTS.format(path=events.resolve().as_uri()))
    table.execute_sql(MATCHES.format(path=folder.resolve().as_uri()))
    table.execute_sql(QUERY).wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
