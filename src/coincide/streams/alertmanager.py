"""Alerts of Prometheus' Alertmanager: `alertmanager+http(s)://HOST:PORT`, by version 2 of its API."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from coincide.streams.http import ATTEMPTS, Webhook

ENVELOPE = frozenset({"type", "time", "from", "id", "source", "space", "arrival"})


class Alertmanager:
    """The type of a detection is the name of the alert; its texts and truth values are labels, by which Alertmanager tells alerts
    apart; everything is in the annotations. It begins when it is told, for the time of events may be any."""

    def __init__(self, url: str) -> None:
        base = url.removeprefix("alertmanager+").rstrip("/")
        self._webhook = Webhook(f"{base}/api/v2/alerts", ATTEMPTS)
        self.name = f"'{self._webhook.address.server}'"

    def notify(self, key: str, record: dict[str, Any], line: bytes) -> None:
        self._webhook.post(msgspec.json.encode([alert(record, line)]), key)

    def close(self) -> None:
        self._webhook.close()


def alert(record: dict[str, Any], line: bytes) -> dict[str, Any]:
    """One, as the API has it."""
    facts = {name: value for name, value in record.items() if name not in ENVELOPE and not name.startswith("_")}
    labels = {_label(name): _text(value) for name, value in facts.items() if isinstance(value, (str, bool))}
    count = {"count": str(record["_count"])} if "_count" in record else {}
    annotations = {"time": _text(record.get("time")), "detection": line.decode(), **count}
    return {"labels": {**labels, "alertname": record["type"]}, "annotations": annotations}


def _label(name: str) -> str:
    plain = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return plain if not plain[:1].isdigit() else f"_{plain}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
