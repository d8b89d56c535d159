"""MQTT: `mqtt://HOST:PORT/TOPIC`, `mqtts://` with TLS. Every message is published and received with quality of service 1.

Credentials are in the environment: MQTT_USER and MQTT_PASSWORD (or MQTT_PASSWORD_FILE); for TLS MQTT_CA, MQTT_CERT and MQTT_KEY
name files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from queue import Empty, Full, Queue
from threading import Condition, Lock
from threading import Event as Flag
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from coincide.errors import CoincideError
from coincide.model.batch import EventBatch
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.connection import LONGEST, PATIENCE, SHORTEST, WAIT, Address, log, secret, tls, unreachable

TAKEN = 1_000
"""Messages of a delivery."""
WAITING = 10_000
"""Messages that may wait here; a broker holds back more only if they have to be acknowledged."""


def _address(url: str) -> Address:
    address = Address.of(url, ["client"], "MQTT_USER and MQTT_PASSWORD")
    if not address.path:
        raise CoincideError(f"'{url}' names no topic: mqtt://HOST:PORT/TOPIC")
    return address


class Connection:
    """A client whose connection mends itself; the first attempt must succeed, for a wrong address should be told."""

    def __init__(
        self,
        address: Address,
        *,
        begin: Callable[[Client, bool], object] = lambda client, known: None,
        subscribed: Flag | None = None,
    ) -> None:
        self.address = address
        name = address.options.get("client")
        self.client = Client(CallbackAPIVersion.VERSION2, name or "", clean_session=name is None, manual_ack=True)
        pauses: Any = (SHORTEST, LONGEST)  # fractions of seconds are as good as the whole ones that it declares
        self.client.reconnect_delay_set(*pauses)
        if (user := os.environ.get("MQTT_USER")) is not None:
            self.client.username_pw_set(user, secret("MQTT_PASSWORD"))
        if secure := address.scheme == "mqtts":
            self.client.tls_set_context(tls("MQTT"))
        self._port = address.port or (8883 if secure else 1883)
        self._begin = begin
        self._on_subscription = subscribed or Flag()
        self._answered = Flag()
        self._refused: str | None = None
        self.client.on_connect = self._connected
        self.client.on_subscribe = self._subscribed
        self.client.on_disconnect = self._lost

    def open(self) -> None:
        try:
            self.client.connect(self.address.host, self._port)
        except (OSError, ValueError) as error:
            raise unreachable(self.address.server, error) from error
        self.client.loop_start()
        if not self._answered.wait(PATIENCE):
            self._refused = "it does not answer"
        self.check()

    def check(self) -> None:
        if self._refused is not None:
            self.close()
            raise unreachable(self.address.server, self._refused)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def _connected(self, client: Client, _: object, flags: Any, reason: Any, properties: object) -> None:
        if not reason.is_failure:
            self._begin(client, bool(flags.session_present))
        elif not self._answered.is_set():  # later it may be that the server is about to stop
            self._refused = str(reason).lower()
        self._answered.set()

    def _lost(self, client: Client, _: object, flags: object, reason: Any, properties: object) -> None:
        if reason.is_failure and self._refused is None:
            log.warning("'%s' cannot be reached at the moment; it is tried again", self.address.server)

    def _subscribed(self, client: Client, _: object, number: int, reasons: Any, properties: object) -> None:
        if any(reason.is_failure for reason in reasons):
            self._refused = f"it refuses '{self.address.path}'"
        self._on_subscription.set()


def digest_of(topic: str, payload: bytes | bytearray) -> str:
    return blake2b(topic.encode() + b"\0" + payload, digest_size=8).hexdigest()


class MqttSource(Source):
    """A topic, which may have the wildcards `+` and `#`. With `?client=NAME` the broker keeps what comes while nobody listens,
    and everything until it is acknowledged, after a checkpoint. A position tells the messages that were dealt with and are not
    yet acknowledged, by their packet identifiers, which stay the same when they are sent again."""

    clock = "wall"

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.address = _address(url)
        self.repeatable = "client" in self.address.options
        self._came: Queue[MQTTMessage] = Queue(WAITING)
        self._digests: dict[int, str] = {}  # of all messages that were given out, as long as their identifiers are theirs
        self._unacknowledged: dict[int, str] = {}
        self._lock = Lock()  # checkpoints are another thread's
        self._goes_on = False
        self.subscribed = Flag()
        self._connection = Connection(self.address, begin=self._subscribe, subscribed=self.subscribed)
        self._connection.client.on_message = self._take

    def more(self) -> bool:
        return not self._came.empty()

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        for fresh in self.messages(position):
            position = self.position()
            yield self.delivery(self._events([bytes(message.payload) for message in fresh]), position)
            if not self.awaits_checkpoints:
                self.acknowledge(position)

    def messages(self, position: Position) -> Iterator[list[MQTTMessage]]:
        """As they come, those that were not dealt with before."""
        self._digests = dict(position or ())
        self._goes_on = position is not None
        self._connection.open()
        try:
            while not self.closed.is_set():
                self._connection.check()
                if fresh := [message for message in self._waiting() if self._is_new(message)]:
                    yield fresh
        finally:
            self._connection.close()

    def acknowledge(self, position: Position) -> None:
        with self._lock:
            for number, digest in position:
                if self._unacknowledged.get(number) == digest:
                    del self._unacknowledged[number]
                    self._connection.client.ack(number, 1)

    def position(self) -> Position:
        """What was given out and is not acknowledged."""
        with self._lock:
            return [[number, digest] for number, digest in self._unacknowledged.items()]

    def _subscribe(self, client: Client, known: bool) -> None:
        """A broker that knows the session knows the topic, too, and would only send again what it retains."""
        if not (known and self._goes_on):
            client.subscribe(self.address.path, qos=1)
        else:
            self.subscribed.set()
        self._goes_on = True

    def _take(self, client: Client, _: object, message: MQTTMessage) -> None:
        while not self.closed.is_set():
            try:
                return self._came.put(message, timeout=WAIT)
            except Full:  # nothing more is read before there is room
                continue

    def _waiting(self) -> list[MQTTMessage]:
        found: list[MQTTMessage] = []
        try:
            found.append(self._came.get(timeout=WAIT))
            while len(found) < TAKEN:
                found.append(self._came.get_nowait())
        except Empty:
            pass
        return found

    def _is_new(self, message: MQTTMessage) -> bool:
        """One that was dealt with comes again if the broker has not seen that it was acknowledged."""
        if not message.qos:
            return True
        digest = digest_of(message.topic, message.payload)
        with self._lock:
            if message.dup and self._digests.get(message.mid) == digest:
                if message.mid not in self._unacknowledged:
                    self._connection.client.ack(message.mid, message.qos)
                return False
            self._digests[message.mid] = self._unacknowledged[message.mid] = digest
            return True

    def _events(self, messages: list[bytes]) -> EventBatch:
        return self.events(messages, self.address.path)


class MqttSink(Sink):
    """A topic, in which `{type}` stands for the detection's type. A write returns when the broker has acknowledged all of it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.address = _address(url)
        self._connection = Connection(self.address)
        self._connection.client.on_publish = self._published
        self._connection.client.max_inflight_messages_set(TAKEN)
        self._done: set[int] = set()
        self._some = Condition()

    def open(self, position: Position) -> None:
        self._connection.open()

    def write(self, made: Sequence[Made]) -> None:
        for start in range(0, len(made), TAKEN):
            numbers = {self._publish(each) for each in made[start : start + TAKEN]}
            with self._some:
                self._some.wait_for(lambda expected=numbers: expected <= self._done)  # type: ignore[misc]
                self._done -= numbers

    def close(self) -> None:
        self._connection.close()

    def _publish(self, each: Made) -> int:
        topic = self.address.path.replace("{type}", each.type)
        return self._connection.client.publish(topic, each.line.rstrip(b"\n"), qos=1).mid

    def _published(self, client: Client, _: object, number: int, reason: object, properties: object) -> None:
        with self._some:
            self._done.add(number)
            self._some.notify_all()
