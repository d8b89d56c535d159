"""Brokers of our own, on loopback."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from getpass import getuser
from pathlib import Path
from typing import Any

import nats
import pytest
from confluent_kafka import Producer
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Nats:
    """A server of NATS with JetStream, that can be stopped and started again."""

    def __init__(self, store: Path) -> None:
        self.port = free_port()
        self.address = f"nats://127.0.0.1:{self.port}"
        server = str(Path(sys.executable).parent / "nats-server")
        self._command = [server, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(store)]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.do(lambda stream: stream.account_info())

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def make(self, name: str, **settings: Any) -> str:
        """A stream that has the subjects NAME.>; the address of all of them."""
        self.do(lambda stream: stream.add_stream(name=name, subjects=[f"{name}.>"], **settings))
        return f"{self.address}/{name}.>?stream={name}"

    def publish(self, subject: str, messages: Iterable[bytes | dict[str, Any]]) -> None:
        async def send(stream: Any) -> None:
            for message in messages:
                await stream.publish(subject, message if isinstance(message, bytes) else json.dumps(message).encode())

        self.do(send)

    def do(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        async def act() -> Any:
            client = await nats.connect(self.address, max_reconnect_attempts=200, reconnect_time_wait=0.05)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(act())


MQTT = {
    "nats-server": """
server_name: broker
listen: "127.0.0.1:{other}"
jetstream {{ store_dir: "{store}" }}
mqtt {{ listen: "127.0.0.1:{port}", ack_wait: "500ms", max_ack_pending: 1000 }}
""",
    "mosquitto": """
listener {port} 127.0.0.1
allow_anonymous true
user {user}
persistence true
persistence_location {store}/
""",
}


class Mqtt:
    """A broker of MQTT: `nats-server`, which speaks it, too, or `mosquitto`."""

    def __init__(self, name: str, store: Path) -> None:
        found = shutil.which(name, path=f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/usr/local/bin")
        if found is None:
            pytest.skip(f"{name} is not installed")
        self.port = free_port()
        self.address = f"mqtt://127.0.0.1:{self.port}"
        text = MQTT[name].format(port=self.port, other=free_port(), store=store, user=getuser())
        (store / "conf").write_text(text, encoding="utf-8")
        self._command = [found, "-c", str(store / "conf")]
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 180
        while not self._listens():
            assert time.monotonic() < end
            time.sleep(0.05)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def publish(self, topic: str, messages: Iterable[bytes]) -> None:
        client = Client(CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for message in messages:
            client.publish(topic, message, qos=1).wait_for_publish(30)
        client.disconnect()
        client.loop_stop()

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


class Kafka:
    """A cluster that librdkafka plays for tests, in this process, as long as the producer lives. Topics have four partitions."""

    def __init__(self) -> None:
        settings = {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 2, "linger.ms": 0}
        self._producer = Producer(settings)
        broker = self._producer.list_topics(timeout=10).brokers[1]
        self.address = f"kafka://{broker.host}:{broker.port}"

    def publish(self, topic: str, messages: Iterable[bytes | dict[str, Any] | None], partition: int = 0, **how: Any) -> str:
        """The address of the topic."""
        for message in messages:
            value = json.dumps(message).encode() if isinstance(message, dict) else message
            self._producer.produce(topic, value, partition=partition, **how)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0
        return f"{self.address}/{topic}"
