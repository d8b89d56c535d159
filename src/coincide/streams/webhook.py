"""A webhook that is called for a detection."""

from __future__ import annotations

from typing import Any

from coincide.streams.http import Webhook

ATTEMPTS = 6
"""How often it is tried before a detection is given up."""


class WebhookAction:
    """What the sink of the same address does, but not for ever."""

    def __init__(self, url: str) -> None:
        self._webhook = Webhook(url, ATTEMPTS)
        self.name = f"'{self._webhook.address.server}'"

    def notify(self, key: str, record: dict[str, Any], line: bytes) -> None:
        self._webhook.post(line, key)

    def close(self) -> None:
        self._webhook.close()
