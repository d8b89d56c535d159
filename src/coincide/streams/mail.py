"""Mail: `mailto:ADDRESS[,ADDRESS…][?subject=TEXT]`, by the server that the environment names.

SMTP_URL is `smtp://HOST:PORT` (the default: localhost) or `smtps://…`; SMTP_USER, SMTP_PASSWORD (or SMTP_PASSWORD_FILE) are the
credentials, SMTP_FROM the sender, SMTP_CA, SMTP_CERT and SMTP_KEY files for TLS."""

from __future__ import annotations

import os
import smtplib
import socket
import ssl
from email.message import EmailMessage
from threading import Event as Flag
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from coincide.errors import CoincideError
from coincide.streams.connection import PATIENCE, Address, BackOff, secret, tls
from coincide.streams.http import ATTEMPTS

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Mail:
    """A mail for each detection. Where the server offers encryption, it is used; credentials are sent only so, or to this
    machine."""

    def __init__(self, url: str) -> None:
        addresses, _, options = url.removeprefix("mailto:").partition("?")
        self._to = [unquote(address).strip() for address in addresses.split(",") if address.strip()]
        self._subject = parse_qs(options).get("subject", [""])[-1]
        if not self._to or any("@" not in address or not address.isprintable() for address in self._to):
            raise CoincideError(f"'{url}': mailto:NAME@HOST")
        self._server = Address.of(os.environ.get("SMTP_URL", "smtp://localhost"), (), "SMTP_USER and SMTP_PASSWORD")
        if self._server.scheme not in ("smtp", "smtps"):
            raise CoincideError("SMTP_URL: smtp://HOST:PORT or smtps://HOST:PORT")
        self._from = os.environ.get("SMTP_FROM") or f"coincide@{socket.getfqdn()}"
        self.name = f"'{', '.join(self._to)}'"
        self._closed = Flag()
        self._away = False

    def notify(self, key: str, record: dict[str, Any], line: bytes) -> None:
        message, back_off = self._message(key, record), BackOff()
        for left in reversed(range(1 if self._away else ATTEMPTS)):
            try:
                self._send(message)
                self._away = False
                return
            except (OSError, smtplib.SMTPException) as error:
                if not left or not _is_passing(error):
                    self._away = True
                    raise CoincideError(f"'{self._server.server}' does not send it: {_reason(error)}") from error
                back_off.wait(self._closed)

    def close(self) -> None:
        self._closed.set()

    def _message(self, key: str, record: dict[str, Any]) -> EmailMessage:
        message = EmailMessage()
        times = f" ({record['_count']} times)" if "_count" in record else ""
        message["Subject"] = (self._subject or f"coincide: {record['type']}") + times
        message["From"], message["To"] = self._from, ", ".join(self._to)
        message["Auto-Submitted"] = "auto-generated"
        if key:
            message["Message-ID"] = f"<{key}@coincide>"
        message.set_content(msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n")
        return message

    def _send(self, message: EmailMessage) -> None:
        user, host, context = os.environ.get("SMTP_USER"), self._server.host, tls("SMTP")
        secure = self._server.scheme == "smtps"
        port = self._server.port or (465 if secure else 25)
        client = (
            smtplib.SMTP_SSL(host, port, timeout=PATIENCE, context=context)
            if secure
            else smtplib.SMTP(host, port, timeout=PATIENCE)
        )
        with client:
            client.ehlo()
            if not secure and client.has_extn("starttls"):
                client.starttls(context=context)
                client.ehlo()
                secure = True
            if user is not None:
                if not secure and host not in LOOPBACK:
                    raise CoincideError(f"'{self._server.server}' offers no encryption, so the password is not sent")
                client.login(user, secret("SMTP_PASSWORD") or "")
            client.send_message(message)


def _is_passing(error: Exception) -> bool:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(400 <= code < 500 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return 400 <= error.smtp_code < 500
    return not isinstance(error, (smtplib.SMTPNotSupportedError, ssl.SSLCertVerificationError))


def _reason(error: Exception) -> str:
    said: object = error
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
    elif isinstance(error, smtplib.SMTPRecipientsRefused):
        _, said = next(iter(error.recipients.values()))
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
