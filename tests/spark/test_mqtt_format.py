"""Spark's format `mqtt` against real brokers: every message once, whatever is restarted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokers import Mqtt
from clusters import until
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from support import finished

from coincide.connectors.mqtt import MqttFormat, MqttStreamReader
from coincide.errors import CoincideError
from coincide.spark import register

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", params=["nats-server", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mqtt]:
    made = Mqtt(request.param, tmp_path_factory.mktemp("mqtt"))
    yield made
    made.stop()


def taken(reader: MqttStreamReader, start: dict[str, int], end: dict[str, int]) -> list[tuple[bytes, str]]:
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [(row["value"], row["topic"]) for batch in batches for row in batch.to_pylist()]


def all_of(reader: MqttStreamReader, start: dict[str, int], count: int) -> list[bytes]:
    until(lambda: len(taken(reader, start, reader.latestOffset(start, ReadAllAvailable()))) >= count, "messages are missing")
    return sorted(value for value, _ in taken(reader, start, reader.latestOffset(start, ReadAllAvailable())))


def test_the_spool_has_what_the_checkpoint_lacks(broker: Mqtt, tmp_path: Path) -> None:
    options = {"path": f"{broker.address}/doors/+?client=spooled", "spool": str(tmp_path / "spool"), "minPartitions": "2"}
    first = MqttStreamReader(options)
    begin = first.initialOffset()
    first.prepareForTriggerAvailableNow()  # it has subscribed by now
    first._target = None
    broker.publish("doors/a", [b"%d" % n for n in range(5)])
    assert all_of(first, begin, 5) == [b"0", b"1", b"2", b"3", b"4"]
    three = first.latestOffset(begin, ReadMaxRows(3))
    assert [value for value, _ in taken(first, begin, three)] == [b"0", b"1", b"2"]
    first.stop()
    broker.publish("doors/b", [b"5", b"\xff\x00"])
    second = MqttStreamReader(options)
    assert all_of(second, three, 4) == [b"3", b"4", b"5", b"\xff\x00"]
    assert ("doors/b", 2) in {
        (topic, len(v)) for v, topic in taken(second, three, second.latestOffset(three, ReadAllAvailable()))
    }
    second.commit(three)
    with pytest.raises(CoincideError, match="is not the spool that belongs to the checkpoint"):
        second.latestOffset({"place": 10**6}, ReadAllAvailable())
    second.stop()


KILLED = """
import sys, time
from coincide.connectors import mqtt
if sys.argv[2] == "unacknowledged":
    mqtt.MqttSource.acknowledge = lambda *_: None
reader = mqtt.MqttStreamReader({"path": sys.argv[1], "spool": sys.argv[3]})
reader.initialOffset()
print("ready", flush=True)
while reader.intake.end == 0 or sys.argv[2] != "unacknowledged":
    time.sleep(0.01)
time.sleep(0.3)
print("kept", flush=True)
time.sleep(600)
"""


def test_what_was_kept_and_not_acknowledged_is_not_doubled(broker: Mqtt, tmp_path: Path) -> None:
    """Killed after the spool was written, before the broker knows: it sends all of it again."""
    url, spool = f"{broker.address}/again/+?client=killed", str(tmp_path / "spool")
    process = subprocess.Popen([sys.executable, "-c", KILLED, url, "unacknowledged", spool], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    until(lambda: _subscribed(broker, process, spool), "nothing comes")
    assert process.stdout.readline() == b"kept\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    reader = MqttStreamReader({"path": url, "spool": spool})
    begin = reader.initialOffset()
    broker.publish("again/x", [b"last"])
    until(lambda: b"last" in all_of(reader, begin, 1), "the last one is missing")
    reader.intake.wait_for_quiet()
    found = all_of(reader, begin, 2)
    assert found == sorted(set(found))
    reader.stop()


def _subscribed(broker: Mqtt, process: subprocess.Popen[bytes], spool: str) -> bool:
    """Publishes until something is kept: before the subscription nothing is."""
    _subscribed.count += 1  # type: ignore[attr-defined]
    broker.publish("again/x", [b"first %d" % _subscribed.count])  # type: ignore[attr-defined]
    return any(path.stat().st_size for path in Path(spool).glob("*.jsonl"))


_subscribed.count = 0  # type: ignore[attr-defined]


def test_a_query(spark: Any, broker: Mqtt, tmp_path: Path) -> None:
    register(spark, "mqtt")

    def run() -> None:
        reader = spark.readStream.format("mqtt").option("spool", str(tmp_path / "spool")).option("maxOffsetsPerTrigger", 4)
        frame = reader.load(f"{broker.address}/query?client=query")
        sink = frame.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
        finished(sink.option("checkpointLocation", str(tmp_path / "kept")).trigger(availableNow=True))

    run()  # from now on the broker keeps what comes
    broker.publish("query", [b"%d" % n for n in range(10)])
    run()
    broker.publish("query", [b"10"])
    run()
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted(int(bytes(row.value)) for row in rows) == [*range(11)]


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("mqtt://localhost/t", {"spool": "x"}, "client=NAME is needed"),
        ("mqtt://localhost/t?client=a", {}, "names a folder"),
        ("mqtt://localhost?client=a", {"spool": "x"}, "names no topic"),
    ],
)
def test_what_is_missing_is_told(url: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(CoincideError, match=message):
        MqttFormat({"path": url, **options})
