"""Server-sent events and webhooks, against servers that tests start."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from servers import Reader, free_port, lines, until

from coincide.errors import CoincideError
from coincide.streams.base import Made, Reading
from coincide.streams.http import EventStream
from coincide.streams.registry import open_sink, open_source


class Site:
    """A server of our own: it sends the records that it has, with their numbers as ids, and keeps what is posted."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.records: list[bytes] = []
        self.asked: list[dict[str, str]] = []
        self.posted: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.start()

    def start(self) -> None:
        self._stopped = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(site) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append(dict(self.headers))
                if self.path != "/events":
                    self.send_response(204 if self.path == "/over" else 404)
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Connection", "close")
                self.end_headers()
                sent = int(self.headers.get("Last-Event-ID", 0))
                while not site._stopped.wait(0.01):
                    for number in range(sent, len(site.records)):
                        self.wfile.write(b": hello\nid: %d\ndata: %s\n\n" % (number + 1, site.records[number]))
                        self.wfile.flush()
                    sent = len(site.records)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = site.answers.pop(0) if site.answers else 204
                if answer == 204:
                    site.posted.append((dict(self.headers), body))
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.stop()


def test_events_are_read_and_gone_on_with_after_the_last_id(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSE_TOKEN", "secret")
    site.records = lines([1, 2])
    with Reader(open_source(f"{site.url}/events", Reading())) as reader:
        assert reader.take(2) == [1, 2]
        assert site.asked[-1]["Authorization"] == "Bearer secret"
        site.records += lines([3])
        assert reader.take(1) == [3]
    assert reader.position == "3"
    site.records += lines([4, 5])
    with Reader(open_source(f"{site.url}/events", Reading()), reader.position) as later:
        assert later.take(2) == [4, 5]
    assert site.asked[-1]["Last-Event-ID"] == "3"


def test_a_server_that_comes_back_is_found_again(site: Site) -> None:
    site.records = lines([1])
    with Reader(open_source(f"{site.url}/events", Reading())) as reader:
        assert reader.take(1) == [1]
        site.stop()
        site.records += lines([2])
        site.start()
        assert reader.take(1) == [2]


def test_a_server_can_say_that_it_is_over(site: Site) -> None:
    assert [*open_source(f"{site.url}/over", Reading()).deliveries(None)] == []


def test_the_form_of_events() -> None:
    text = b"\xef\xbb\xbfretry: 20\r\n\r\nid: 1\rdata: a\rdata:b\r\r: nothing\nevent: x\ndata\n\nid\ndata: c\n\ndata: never"
    text = text.removeprefix(b"\xef\xbb\xbf")
    for size in (1, 2, 5, len(text)):
        stream = EventStream()
        found = [data for start in range(0, len(text), size) for data in stream.feed(text[start : start + size])]
        assert found == [b"a\nb", b"", b"c"]
        assert (stream.last, stream.pause) == ("", 0.05)


def test_a_webhook_is_signed_and_repeated_until_it_comes_through(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", "whsec_" + base64.b64encode(b"key of ours").decode())
    monkeypatch.setenv("WEBHOOK_TOKEN", "token")
    site.answers = [503, 429]
    sink = open_sink(f"{site.url}/hook?x=1")
    sink.open(None)
    sink.write([Made("k1", "found", b'{"type":"found"}\n'), Made("k2", "found", b"{}\n")])
    sink.close()
    assert [body for _, body in site.posted] == [b'{"type":"found"}', b"{}"]
    headers, body = site.posted[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(b"key of ours", signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert (headers["webhook-id"], headers["Authorization"]) == ("k1", "Bearer token")
    assert json.loads(body) == {"type": "found"}


def test_a_sink_waits_for_a_server_that_is_away(site: Site) -> None:
    sink = open_sink(site.url)
    site.stop()
    writer = Thread(target=sink.write, args=([Made("k", "found", b"{}\n")],), daemon=True)
    writer.start()
    site.start()
    until(lambda: site.posted)
    writer.join(5)
    assert not writer.is_alive()


def test_a_refusal_is_told_without_secrets(site: Site) -> None:
    site.answers = [400]
    with pytest.raises(CoincideError, match="does not take detections: it answers 400") as caught:
        open_sink(f"{site.url}/services/SECRET").write([Made("k", "found", b"{}\n")])
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("{url}/missing", "cannot reach '{url}': it answers 404"),
        ("http://127.0.0.1:1/x", "cannot reach 'http://127.0.0.1:1': .*refused"),
        ("http://me:secret@127.0.0.1/x", "credentials belong into SSE_TOKEN"),
    ],
)
def test_what_is_wrong_is_told(site: Site, url: str, message: str) -> None:
    with pytest.raises(CoincideError, match=message.format(url=site.url)):
        next(open_source(url.format(url=site.url), Reading()).deliveries(None))
