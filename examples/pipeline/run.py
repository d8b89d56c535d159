"""A pipeline: a day's events of a building and its logins, to a broker, from there through Spark, to Parquet, to a report page.

    python examples/pipeline/run.py [FOLDER]

The events, the rules and their names are those of the demonstration (examples/demo)."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import pyarrow.dataset as ds
from pyspark.errors import StreamingQueryException

sys.path.insert(0, str(Path(__file__).parents[1] / "demo"))
from generate import generate

import coincide
from coincide.adapters.order import sort_batch
from coincide.engines.spark.rows import events_of
from coincide.model.batch import EventBatch
from coincide.model.event import Event, as_value, primitive
from coincide.report.findings import Findings
from coincide.report.write import write_report
from coincide.spark import by_batch, decoded, detect, progress, register, session

RULES = [Path(__file__).parents[1] / "demo" / name for name in ("rules.ecl", "rules.amit.xml")]
PARTS = 4
"""The day is published in so many parts, with pauses: Spark has some of it while the rest is still to come."""
ATTEMPTS = 3
TYPES = {bool: "boolean", int: "double", float: "double", str: "string"}
Record = dict[str, Any]


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    records = generate()
    with broker() as address:
        url = asyncio.run(made(address))
        print(f"A broker at {address}; {len(records):,} events of a day will go through it, Spark reads {url}")
        published = asyncio.run(run(url, address, records, folder))
    found = detections(folder / "found")
    report(found, records, folder / "report.html")
    counts = ", ".join(f"{name} {count}" for name, count in sorted(Counter(event.type for event in found).items()))
    print(f"\n{published:,} events published, {len(found):,} detections in {folder / 'found'}: {counts}")
    print(f"Report: {folder / 'report.html'}")


@contextmanager
def broker() -> Iterator[str]:
    """One of our own, for as long as this takes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as store:
        server = [str(Path(sys.executable).parent / "nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", store]
        process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


async def made(address: str) -> str:
    """A stream, and where it is."""
    client = await nats.connect(f"nats://{address}", max_reconnect_attempts=100, reconnect_time_wait=0.05, error_cb=not_yet)
    await client.jetstream().add_stream(name="BUILDING", subjects=["building.>"])
    await client.close()
    return f"nats://{address}/building.>?stream=BUILDING"


async def not_yet(error: Exception) -> None:
    """The broker is still starting: the client tries again."""


async def run(url: str, address: str, records: Sequence[Record], folder: Path) -> int:
    """Detection on Spark while events are published."""
    spark = register(session("pipeline"), "nats")
    messages = spark.readStream.format("nats").option("maxOffsetsPerTrigger", 5_000).load(url)
    found = decoded(messages, schema(records)).transform(detect(RULES, delay="1 minute", keys=True))
    writer = found.writeStream.foreachBatch(by_batch(str(folder / "found"))).trigger(processingTime="0 seconds")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.start()
    lines = progress(query, sys.stdout)
    await publish(address, records)
    query = all_of(writer, query)
    time.sleep(0.5)  # its last line
    lines.stop()
    query.stop()
    spark.stop()
    return len(records)


async def publish(address: str, records: Sequence[Record]) -> None:
    client = await nats.connect(f"nats://{address}")
    stream = client.jetstream()
    end = {"type": "heartbeat", "time": records[-1]["time"] + 3_600_000}  # the day is over: let time go on
    size = -(-len(records) // PARTS)
    for part in range(0, len(records), size):
        for record in [*records[part : part + size], *([end] if part + size >= len(records) else [])]:
            await stream.publish(f"building.{record['type']}", json.dumps(record).encode())
        await asyncio.sleep(1)
    await client.close()


def all_of(writer: Any, query: Any) -> Any:
    """The query when it has dealt with all that is there. One that fails goes on from its checkpoint."""
    for _ in range(ATTEMPTS):
        try:
            query.processAllAvailable()
            return query
        except StreamingQueryException as error:
            print(f"It failed, and is started again: {str(error).splitlines()[0]}")
            query = writer.start()
    query.processAllAvailable()
    return query


def schema(records: Sequence[Record]) -> str:
    """The columns of all records; times are milliseconds."""
    kinds = {name: TYPES[type(value)] for record in records for name, value in record.items()}
    return ", ".join(f"`{name}` {kind}" for name, kind in {**kinds, "time": "long"}.items())


def detections(folder: Path) -> list[Event]:
    table = ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_table()
    return sorted(events_of(table, table.column_names), key=lambda event: (event.hi, event.lo, event.type))


def report(found: Sequence[Event], records: Sequence[Record], path: Path) -> None:
    findings = Findings(coincide.load(*RULES), by_id=True)
    list(findings.making([EventBatch(list(found))]))
    events = [_event(record) for record in records]
    findings.look_again([sort_batch(EventBatch(events))], events[0].hi, events[-1].hi)
    write_report(findings, str(path), "A day at a small company")


def _event(record: Record) -> Event:
    at = record["time"] * 1000
    own = {name: as_value(value) for name, value in record.items() if name not in ("type", "time", "id")}
    return primitive(record["type"], at, at, record["id"], own)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output/pipeline"))
