"""A node as a process."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from coincide.network.broker import Subjects
from coincide.network.natsbroker import NatsBroker
from coincide.network.node import Node, Pace

log = logging.getLogger("coincide.network")

MEASURED = 5.0
"""Seconds between two measurements of the way to the broker."""


def run_node(
    url: str,
    name: str,
    network: str,
    links: Mapping[str, float],
    host: bool,
    pace: Pace,
    retention: float | None = None,
    resources: Mapping[str, object] | None = None,
    domain: str | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Until it is stopped: then it leaves, and others go on with what it carries. `resources` are said, others are measured."""
    broker = NatsBroker(url, network, retention, domain)
    node = Node(name, broker, Subjects(network), pace, links, host)
    node.resources = {**measured_resources(), **(resources or {})}
    try:
        node.start()
        measured = 0.0
        while not stopped():
            if time.monotonic() - measured > MEASURED:
                measured = time.monotonic()
                _measure(node, broker)
                node.resources = {**measured_resources(), **(resources or {})}
            if not node.turn():
                broker.wait(0.05)
    finally:
        node.stop()
        broker.close()


def measured_resources() -> dict[str, object]:
    """Processors, and the megabytes of memory that are free."""
    found: dict[str, object] = {"cpu": os.cpu_count() or 1}
    with suppress(ValueError, OSError):
        found["ram"] = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    return found


def _measure(node: Node, broker: NatsBroker) -> None:
    try:
        node.latency = round(broker.round_trip(), 3)
    except OSError as error:
        log.warning("the broker cannot be reached at the moment: %s", error)
