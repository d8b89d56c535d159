"""Events in Spark by the address of where they are: brokers by URL, files by path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from coincide.connectors.formats import register
from coincide.connectors.messages import decoded
from coincide.errors import CoincideError

BROKERS = {"nats": "nats", "mqtt": "mqtt", "mqtts": "mqtt", "kafka": "coincide-kafka", "kafkas": "coincide-kafka"}
"""Formats by the scheme of a URL."""
ENDINGS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet", ".orc": "orc"}


def events(
    spark: SparkSession,
    where: str,
    schema: StructType | str | None = None,
    *,
    streaming: bool = False,
    format: str | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """What is at a URL of a broker (nats, mqtt, kafka; messages are records of JSON, so a `schema` is needed) or at a path, as a
    DataFrame. `format` is that of files, if their ending does not tell it; `options` are those of Spark's reader."""
    reader = spark.readStream if streaming else spark.read
    scheme = where.partition("://")[0]
    if scheme in BROKERS:
        if schema is None:
            raise CoincideError(f"'{where}': messages have no columns; a schema says which fields are wanted, and of which types")
        register(spark, BROKERS[scheme])
        return decoded(reader.format(BROKERS[scheme]).options(**(options or {})).load(where), schema)
    reader = reader.format(_files(where, format)).options(**(options or {}))
    if schema is None and streaming:
        schema = _schema_of_files(spark, where, format, options)
    return (reader if schema is None else reader.schema(schema)).load(where)


def is_json(where: str, format: str | None = None) -> bool:
    """Are there records of JSON, in messages or in files?"""
    return where.partition("://")[0] in BROKERS or _files(where, format) == "json"


def _files(where: str, format: str | None) -> str:
    return format or ENDINGS.get(PurePosixPath(where).suffix, "parquet")


def _schema_of_files(spark: SparkSession, where: str, format: str | None, options: Mapping[str, str] | None) -> StructType:
    """The schema of the files that are there: a stream has to know it before."""
    return events(spark, where, format=format, options=options).schema
