"""Server-sent events and webhooks, against servers that tests start."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from threading import Event, Thread

import pytest
from servers import Reader, Site, lines, until

from coincide.errors import CoincideError
from coincide.streams.base import Made, Reading
from coincide.streams.connection import BackOff
from coincide.streams.http import EventStream
from coincide.streams.registry import open_sink, open_source


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


def test_a_sink_that_is_not_there_is_told_at_once(site: Site) -> None:
    open_sink(f"{site.url}/hook").open(None)
    with pytest.raises(CoincideError, match=r"cannot reach 'http://127.0.0.1:1': .*refused"):
        open_sink("http://127.0.0.1:1/x").open(None)


def test_a_failure_that_is_not_over_at_once_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    back_off, closed = BackOff("here"), Event()
    closed.set()
    for _ in range(2):
        for _ in range(6):
            assert back_off.wait(closed)
        back_off.reset()
    assert caplog.messages == ["'here' cannot be reached at the moment; it is tried again"] * 2


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
        ("http://me:secret@127.0.0.1/x", "credentials belong in SSE_TOKEN"),
    ],
)
def test_what_is_wrong_is_told(site: Site, url: str, message: str) -> None:
    with pytest.raises(CoincideError, match=message.format(url=site.url)):
        next(open_source(url.format(url=site.url), Reading()).deliveries(None))
