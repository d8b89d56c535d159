"""Encrypted connections: who is not known by the authorities that the environment names is not talked to."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from aiosmtpd.smtp import SMTP, AuthResult
from servers import Reader, Server, Site, free_port, lines
from websockets.sync.server import ServerConnection, serve

from coincide.errors import CoincideError
from coincide.streams.actions import open_action
from coincide.streams.base import Reading
from coincide.streams.registry import open_sink, open_source

TLS = Path(__file__).parent / "tls"
CERTIFICATE, KEY = str(TLS / "certificate.pem"), str(TLS / "key.pem")  # of 127.0.0.1, and good for nothing else

MQTT = """
server_name: broker
listen: "127.0.0.1:{other}"
jetstream {{ store_dir: "{store}" }}
mqtt {{
  listen: "127.0.0.1:{port}"
  tls {{ cert_file: "{certificate}", key_file: "{key}" }}
  authorization {{ username: me, password: secret }}
}}
"""


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(CERTIFICATE, KEY)
    return made


@pytest.fixture
def events() -> Iterator[str]:
    site = Site(context())
    site.records = lines([1])
    yield f"{site.url}/events"
    site.stop()


@pytest.fixture
def socket() -> Iterator[str]:
    def talk(connection: ServerConnection) -> None:
        connection.send(lines([1])[0].decode())
        for _ in connection:
            pass

    port = free_port()
    server = serve(talk, "127.0.0.1", port, ssl=context())
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"wss://127.0.0.1:{port}"
    server.shutdown()


@pytest.mark.parametrize(("kind", "variable"), [("events", "HTTP_CA"), ("socket", "WS_CA")])
def test_sources(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str, variable: str) -> None:
    url = request.getfixturevalue(kind)
    with pytest.raises(CoincideError, match=r"cannot reach .*CERTIFICATE_VERIFY_FAILED"):
        next(open_source(url, Reading()).deliveries(None))
    monkeypatch.setenv(variable, CERTIFICATE)
    with Reader(open_source(url, Reading())) as reader:
        assert reader.take(1) == [1]


def test_mqtt_with_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    text = MQTT.format(port=port, other=free_port(), store=tmp_path / "store", certificate=CERTIFICATE, key=KEY)
    (tmp_path / "conf").write_text(text)
    server = Server([str(Path(sys.executable).parent / "nats-server"), "-c", str(tmp_path / "conf")], port)
    try:
        url = f"mqtts://127.0.0.1:{port}/x"
        with pytest.raises(CoincideError, match=r"cannot reach .*CERTIFICATE_VERIFY_FAILED"):
            open_sink(url).open(None)
        monkeypatch.setenv("MQTT_CA", CERTIFICATE)
        with pytest.raises(CoincideError, match=r"cannot reach .*(not authorized|bad user name)"):
            open_sink(url).open(None)
        monkeypatch.setenv("MQTT_USER", "me")
        monkeypatch.setenv("MQTT_PASSWORD", "secret")
        sink = open_sink(url)
        sink.open(None)
        sink.close()
    finally:
        server.stop()


def test_mail_is_encrypted_before_the_password_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    mails: list[Any] = []

    class Keep(Message):
        def handle_message(self, message: Any) -> None:
            mails.append(message)

    def known(server: SMTP, *_: object) -> AuthResult:
        assert server.transport is not None
        return AuthResult(success=server.transport.get_extra_info("sslcontext") is not None)

    options: dict[str, Any] = {"tls_context": context(), "require_starttls": True, "authenticator": known}
    controller = Controller(Keep(), hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        for name, value in {"URL": f"smtp://127.0.0.1:{controller.port}", "USER": "me", "PASSWORD": "secret"}.items():
            monkeypatch.setenv(f"SMTP_{name}", value)
        with pytest.raises(CoincideError, match="CERTIFICATE_VERIFY_FAILED"):
            open_action("mailto:ops@example.org").notify("k", {"type": "alarm"}, b"{}")
        monkeypatch.setenv("SMTP_CA", CERTIFICATE)
        open_action("mailto:ops@example.org").notify("k", {"type": "alarm"}, b"{}")
    finally:
        controller.stop(no_assert=True)
    assert len(mails) == 1


def test_files_that_are_not_there_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_CA", "nowhere.pem")
    with pytest.raises(CoincideError, match="HTTP_CA, HTTP_CERT or HTTP_KEY: No such file"):
        next(open_source("https://127.0.0.1:1/x", Reading()).deliveries(None))
    monkeypatch.setenv("SSE_TOKEN_FILE", "nowhere")
    with pytest.raises(CoincideError, match="SSE_TOKEN_FILE: cannot read 'nowhere'"):
        next(open_source("http://127.0.0.1:1/x", Reading()).deliveries(None))
