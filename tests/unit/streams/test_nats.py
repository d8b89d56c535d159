"""NATS: what is published becomes events, detections are published, each once."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import nats
import pytest
from servers import PATIENCE, Reader, Server, free_port, until

from coincide.errors import CoincideError
from coincide.streams.base import Made, Reading
from coincide.streams.natswire import Wire
from coincide.streams.registry import open_sink, open_source

T = TypeVar("T")


def on_stream(broker: str, work: Callable[[Any], Awaitable[T]]) -> T:
    async def act() -> T:
        client = await nats.connect(f"nats://{broker}")
        try:
            return await work(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(act())


def made_stream(broker: str, name: str) -> str:
    on_stream(broker, lambda stream: stream.add_stream(name=name, subjects=[f"{name}.>"]))
    return name


def publish(broker: str, subject: str, *messages: bytes) -> None:
    async def send(stream: Any) -> None:
        for message in messages:
            await stream.publish(subject, message)

    on_stream(broker, send)


def message(time: int) -> bytes:
    return json.dumps({"type": "a", "time": time}).encode()


def held(broker: str, name: str) -> int:
    info: Any = on_stream(broker, lambda stream: stream.stream_info(name))
    return int(info.state.messages)


@pytest.mark.parametrize("durable", ["", "&durable=d"])
def test_a_stream_is_read_and_gone_on_with(broker: str, durable: str) -> None:
    name = made_stream(broker, "READ" + str(len(durable)))
    publish(broker, f"{name}.x", message(1), message(2) + b"\n" + message(3))
    url = f"nats://{broker}/{name}.x?stream={name}{durable}"
    source = open_source(url, Reading())
    deliveries = source.deliveries(None)
    times: list[int] = []
    while len(times) < 3:
        delivery = next(deliveries)
        times += [event.hi // 1000 for event in delivery.batch.events]
    assert times == [1, 2, 3]
    assert delivery.records == 3
    source.acknowledge(delivery.position)
    deliveries.close()  # type: ignore[attr-defined]
    publish(broker, f"{name}.x", message(4))
    later = open_source(url, Reading()).deliveries(delivery.position)
    assert [event.hi // 1000 for event in next(later).batch.events] == [4]


def test_while_the_run_is_behind_more_is_gathered(broker: str) -> None:
    """Many at a time cost less, and nothing would become of them earlier."""
    name = made_stream(broker, "BEHIND")
    publish(broker, f"{name}.x", message(1))
    source, looks = open_source(f"nats://{broker}/{name}.x?stream={name}", Reading()), iter(range(2, 6))

    def behind() -> bool:
        """While it is, messages come."""
        if (time := next(looks, None)) is not None:
            publish(broker, f"{name}.x", message(time))
        return time is not None

    source.behind = behind
    deliveries = source.deliveries(None)
    times = [event.hi // 1000 for event in next(deliveries).batch.events]
    assert times[:4] == [1, 2, 3, 4]
    deliveries.close()  # type: ignore[attr-defined]


def test_a_source_knows_whether_there_is_more(broker: str) -> None:
    name = made_stream(broker, "MORE")
    source = open_source(f"nats://{broker}/{name}.x?stream={name}", Reading())
    assert not source.more()
    publish(broker, f"{name}.x", message(1))
    deliveries = source.deliveries(None)
    assert len(next(deliveries).batch) == 1
    publish(broker, f"{name}.x", message(2))
    until(source.more)  # it is not read on meanwhile
    assert len(next(deliveries).batch) == 1
    deliveries.close()  # type: ignore[attr-defined]
    assert not source.more()


def test_what_is_little_does_not_wait_for_more(broker: str) -> None:
    """The algorithm of Nagle would hold it back for up to 40 ms."""
    host, _, port = broker.partition(":")
    wire = Wire(host, int(port), {}, None, 5.0)
    assert wire._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    wire.close()


def test_a_detection_is_there_once(broker: str) -> None:
    name = made_stream(broker, "WRITTEN")
    url = f"nats://{broker}/{name}.{{type}}?stream={name}"
    first, second, third = (Made(f"k{n}", "found", b"%d\n" % n) for n in range(3))
    sink = open_sink(url)
    assert sink.once
    sink.open(None)
    sink.write([first])
    position = sink.commit()
    sink.write([second])
    sink.close()
    later = open_sink(url)
    later.open(position)
    later.write([second, third])
    later.close()
    assert held(broker, name) == 3


def test_what_was_written_is_known_longer_than_the_server_remembers_ids(broker: str) -> None:
    async def make(stream: Any) -> None:
        await stream.add_stream(name="SHORT", subjects=["SHORT.>"], duplicate_window=0.1)

    on_stream(broker, make)
    url = f"nats://{broker}/SHORT.x?stream=SHORT"
    sink = open_sink(url)
    sink.open(None)
    position = sink.commit()
    again = Made("again", "found", b"1\n")
    sink.write([again])
    sink.close()
    for _ in range(200):  # until the server has forgotten the id
        ack: Any = on_stream(broker, lambda stream: stream.publish("SHORT.y", b"", headers={"Nats-Msg-Id": "again"}))
        if not ack.duplicate:
            break
    before = held(broker, "SHORT")
    later = open_sink(url)
    later.open(position)
    later.write([again])
    later.close()
    assert held(broker, "SHORT") == before


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nats://{broker}/x?stream=NONE", "there is no stream 'NONE'"),
        ("nats://{broker}/", "names no subject"),
        ("nats://{broker}/x?steam=S", "unknown option 'steam'"),
        ("nats://me:secret@{broker}/x", "credentials belong in NATS_USER"),
        ("nats://127.0.0.1:1/x", "cannot reach 'nats://127.0.0.1:1'"),
    ],
)
def test_what_is_wrong_is_told(broker: str, url: str, message: str) -> None:
    with pytest.raises(CoincideError, match=message):
        next(open_source(url.format(broker=broker), Reading()).deliveries(None))


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that asks who we are, and can be started again."""
    monkeypatch.setenv("NATS_USER", "me")
    monkeypatch.setenv("NATS_PASSWORD", "secret")
    port = free_port()
    command = [str(Path(sys.executable).parent / "nats-server"), "-a", "127.0.0.1", "-p", str(port)]
    server = Server([*command, "-js", "-sd", str(tmp_path / "store"), "--user", "me", "--pass", "secret"], port)
    yield server
    server.stop()


def test_a_server_that_was_away_is_gone_on_with(guarded: Server) -> None:
    address = f"me:secret@{guarded.address}"
    name = made_stream(address, "AWAY")
    url = f"nats://{guarded.address}/AWAY.x?stream={name}"
    reader = Reader(open_source(url, Reading()))
    core = Reader(open_source(f"nats://{guarded.address}/AWAY.x", Reading()))
    sink = open_sink(url)
    sink.open(None)
    sink.write([Made("k1", "a", message(1) + b"\n")])
    assert (reader.take(1), core.take(1)) == ([1], [1])
    guarded.stop()
    guarded.start()
    sink.write([Made("k1", "a", message(1) + b"\n"), *(Made(f"k{n}", "a", message(n) + b"\n") for n in range(2, 2002))])
    assert reader.take(2000) == list(range(2, 2002))
    assert sink.commit() == held(address, name) == 2001
    sink.close()
    reader.stop()
    core.stop()


def test_who_is_not_known_is_told(guarded: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_PASSWORD", "wrong")
    for address in (f"nats://{guarded.address}/x", f"nats://{guarded.address}/x?stream=S"):
        with pytest.raises(CoincideError, match=f"cannot reach 'nats://{guarded.address}': .*Authorization Violation"):
            next(open_source(address, Reading()).deliveries(None))


def test_a_server_that_takes_a_while_gets_all_that_is_sent() -> None:
    """Also right after a look that did not wait."""
    got, begin = bytearray(), Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as peer:
                peer.sendall(b"INFO {}\r\n")
                peer.recv(65_536)
                peer.sendall(b"PONG\r\n")
                begin.wait(PATIENCE)
                while block := peer.recv(1 << 20):
                    got.extend(block)

        server = Thread(target=serve, daemon=True)
        server.start()
        wire = Wire("127.0.0.1", listening.getsockname()[1], {}, None, PATIENCE)
        assert not wire.read(0.0)
        sending = Thread(target=wire.send, args=(b"x" * 20_000_000,))
        sending.start()
        assert not wire.read(0.05)  # while it sends
        begin.set()
        sending.join(PATIENCE)
        wire.close()
        server.join(PATIENCE)
    assert len(got) == 20_000_000
