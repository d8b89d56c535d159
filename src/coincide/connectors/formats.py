"""Makes formats known to Spark."""

from __future__ import annotations

from importlib.util import find_spec

from pyspark.sql import SparkSession

from coincide.errors import CoincideError
from coincide.streams.registry import missing_client


def register(spark: SparkSession, *formats: str) -> SparkSession:
    """Makes the formats `nats` and `mqtt` known to a session, or those that are named; their clients are extras."""
    if find_spec("pyspark.sql.streaming.datasource") is None:  # admission control came with it
        raise CoincideError("the formats nats and mqtt need PySpark 4.2 or later")
    for name in formats or tuple(FORMATS):
        spark.dataSource.register(FORMATS[name]())
    return spark


def _nats() -> type:
    with missing_client("nats"):
        from coincide.connectors.nats import NatsFormat
    return NatsFormat


def _mqtt() -> type:
    with missing_client("mqtt"):
        from coincide.connectors.mqtt import MqttFormat
    return MqttFormat


FORMATS = {"mqtt": _mqtt, "nats": _nats}
