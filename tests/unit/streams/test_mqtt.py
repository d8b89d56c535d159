"""MQTT, against a broker that tests start: NATS, which speaks MQTT too, and mosquitto where it is installed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from servers import Reader, Server, free_port, lines, until

from coincide.errors import CoincideError
from coincide.streams.base import Made, Reading
from coincide.streams.checkpoints import last_checkpoint
from coincide.streams.registry import open_sink, open_source

RUN = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]
NATS = """
server_name: broker
listen: "127.0.0.1:{other}"
jetstream {{ store_dir: "{store}" }}
mqtt {{ listen: "127.0.0.1:{port}", ack_wait: "500ms", max_ack_pending: 1000 }}
"""
MOSQUITTO = """
listener {port} 127.0.0.1
allow_anonymous true
user {user}
persistence true
persistence_location {store}/
autosave_interval 1
autosave_on_changes true
"""


@pytest.fixture(scope="module", params=["nats-server", "mosquitto"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    program = shutil.which(request.param, path=f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    text = (NATS if request.param == "nats-server" else MOSQUITTO).format(
        port=port, other=free_port(), store=folder, user=getuser()
    )
    (folder / "conf").write_text(text)
    server = Server([program, "-c", str(folder / "conf")], port)
    yield server
    server.stop()


def publish(broker: Server, topic: str, *messages: bytes) -> None:
    client = Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    for message in messages:
        client.publish(topic, message, qos=1).wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


def test_what_is_not_acknowledged_comes_again_and_what_was_dealt_with_does_not(broker: Server) -> None:
    url = f"mqtt://{broker.address}/doors/+?client=again"
    first = open_source(url, Reading())
    first.awaits_checkpoints = True
    assert first.repeatable
    with Reader(first) as reader:
        until(first.subscribed.is_set)  # type: ignore[attr-defined]
        publish(broker, "doors/a", *lines([1, 2]))
        assert reader.take(2) == [1, 2]
        checkpoint = reader.position
        first.acknowledge(checkpoint[:1])
        publish(broker, "doors/b", *lines([3]))
        assert reader.take(1) == [3]
    publish(broker, "doors/c", *lines([4]))
    with Reader(open_source(url, Reading()), checkpoint) as later:
        assert sorted(later.take(2)) == [3, 4]


def test_without_a_session_messages_are_of_the_moment(broker: Server) -> None:
    source = open_source(f"mqtt://{broker.address}/loose/#", Reading())
    assert not source.repeatable
    with Reader(source) as reader:
        until(source.subscribed.is_set)  # type: ignore[attr-defined]
        publish(broker, "loose/x/y", b"\n".join(lines([1, 2])), *lines(range(3, 8)))
        assert reader.take(7) == [*range(1, 8)]


def test_a_broker_that_comes_back_is_found_again(broker: Server) -> None:
    source = open_source(f"mqtt://{broker.address}/found/+?client=comes-back", Reading())
    sink = open_sink(f"mqtt://{broker.address}/found/{{type}}")
    sink.open(None)
    with Reader(source) as reader:
        until(source.subscribed.is_set)  # type: ignore[attr-defined]
        sink.write([Made("", "a", line + b"\n") for line in lines([1])])
        assert reader.take(1) == [1]
        broker.stop(signal.SIGTERM)  # mosquitto writes down whose sessions it keeps when it ends, and not at once
        broker.start()
        sink.write([Made("", "b", line + b"\n") for line in lines([2, 3])])
        assert reader.take(2) == [2, 3]
    sink.close()


def test_nothing_is_lost_or_doubled_when_the_run_is_killed(broker: Server, tmp_path: Path) -> None:
    """What comes again comes late, so all of it waits for an event that is much later, and is sent when all others are read."""
    rules, out = tmp_path / "rules.ecl", tmp_path / "found.jsonl"
    rules.write_text("monitor all = repeat { push(seen) { a } }")
    options = ["--delay", "1h", "--clock", "event", "--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "50ms"]
    url = f"mqtt://{broker.address}/kill/+?client=kill"
    command = [*RUN, "run", str(rules), "--events", url, "--out", str(out), *options]
    with Reader(source := open_source(url, Reading())):
        until(source.subscribed.is_set)  # type: ignore[attr-defined] - from now on the broker keeps what comes

    def found() -> list[int]:
        return [json.loads(line)["time"] for line in out.read_text().splitlines()] if out.exists() else []

    for part in range(3):
        begun = time.time_ns()
        process = subprocess.Popen(command)
        publish(broker, "kill/x", *lines(range(part * 100, part * 100 + 100)))
        until(lambda begun=begun: any(file.stat().st_mtime_ns > begun for file in (tmp_path / "kept").glob("checkpoint-?")))
        if part == 2:
            until(lambda: (kept := last_checkpoint(tmp_path / "kept")) is not None and kept.sources[url][1] >= 300)
            publish(broker, "kill/x", *lines([10_000_000]))
            until(lambda: len(found()) >= 300)
        process.kill()
        process.wait()
    assert sorted(found()) == [*range(300)]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mqtt://127.0.0.1:1/x", "cannot reach 'mqtt://127.0.0.1:1': .*refused"),
        ("mqtt://127.0.0.1:1/", "names no topic"),
        ("mqtt://127.0.0.1:1/x?cleint=c", "unknown option 'cleint'"),
        ("mqtt://me:secret@host/x", "'host': credentials belong in MQTT_USER"),
    ],
)
def test_what_is_wrong_is_told(url: str, message: str) -> None:
    with pytest.raises(CoincideError, match=message) as caught:
        next(open_source(url, Reading()).deliveries(None))
    assert "secret" not in str(caught.value)
