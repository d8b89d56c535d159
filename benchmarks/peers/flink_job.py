"""A question in Flink SQL, run by the Python of the peers' environment: python flink_job.py EVENTS FOLDER QUERY

EVENTS is CSV without a header, which Flink would take for an event. The table `shifted` has the same events a millisecond
earlier: Flink's windows leave out their end instead of their beginning."""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

EVENTS = """
CREATE TABLE {name} (
    `type` STRING, `time` BIGINT, id BIGINT, k STRING, v DOUBLE,
    ts AS TO_TIMESTAMP_LTZ(`time` - {earlier}, 3),
    WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
FOUND = "CREATE TABLE found ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"


def main(events: Path, folder: Path, query: str) -> None:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table.get_config().set("parallelism.default", "1")
    for name, earlier in (("events", 0), ("shifted", 1)):
        table.execute_sql(EVENTS.format(name=name, earlier=earlier, path=events.resolve().as_uri()))
    schema = table.sql_query(query).get_schema()
    types = [f"c{number} {schema.get_field_data_type(number)}" for number in range(schema.get_field_count())]
    table.execute_sql(FOUND.format(columns=", ".join(types).replace("NOT NULL", ""), path=folder.resolve().as_uri()))
    table.execute_sql(f"INSERT INTO found {query}").wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]).read_text(encoding="utf-8"))
