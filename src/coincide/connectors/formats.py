"""Makes formats known to Spark."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from importlib.util import find_spec

from pyspark.sql import SparkSession

from coincide.errors import CoincideError
from coincide.streams.registry import missing_client


def register(spark: SparkSession, *formats: str) -> SparkSession:
    """Makes the formats `nats`, `mqtt` and `coincide-kafka` known to a session: those whose clients, which are extras, are
    installed; or those that are named."""
    if find_spec("pyspark.sql.streaming.datasource") is None:  # admission control came with it
        raise CoincideError("the formats nats, mqtt and coincide-kafka need PySpark 4.2 or later")
    for name in formats or tuple(FORMATS):
        with nullcontext() if formats else suppress(CoincideError):
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


def _kafka() -> type:
    with missing_client("kafka"):
        from coincide.connectors.kafka import KafkaFormat
    return KafkaFormat


FORMATS = {"coincide-kafka": _kafka, "mqtt": _mqtt, "nats": _nats}
