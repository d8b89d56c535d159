"""Servers of our own: NATS and a cluster of Kafka for the tests of a session, a site for a test."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from confluent_kafka import Producer
from servers import Site


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address, as `127.0.0.1:PORT`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Path(sys.executable).parent / "nats-server"
    store = tmp_path_factory.mktemp("nats")
    command = [str(server), "--addr", "127.0.0.1", "--port", str(port), "--jetstream", "--store_dir", str(store)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            asyncio.run(_reached(f"nats://127.0.0.1:{port}"))
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


async def _reached(address: str) -> None:
    client = await nats.connect(address, max_reconnect_attempts=200, reconnect_time_wait=0.05)
    await client.close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Its address. It lives as long as the producer that made it."""
    settings = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 2, "linger.ms": 0}
    producer = Producer(settings)
    broker = producer.list_topics(timeout=10).brokers[1]
    yield f"{broker.host}:{broker.port}"
    producer.flush(5)
