"""A node as a process."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coincide.distribution.brokers import SPARK
from coincide.distribution.brokers import Broker as Offer
from coincide.network.broker import Subjects
from coincide.network.natsbroker import NatsBroker
from coincide.network.node import Node, Pace

if TYPE_CHECKING:
    from coincide.network.sparkcarrier import Cluster

log = logging.getLogger("coincide.network")

MEASURED = 5.0
"""Seconds between two measurements of the way to the broker."""


@dataclass(frozen=True)
class Settings:
    """Of a cluster: Spark's master, and where checkpoints are (a folder that all its machines see)."""

    master: str = "local[*]"
    checkpoint: str | None = None


def run_node(
    url: str,
    name: str,
    network: str,
    links: Mapping[str, float],
    offer: Offer,
    pace: Pace,
    retention: float | None = None,
    resources: Mapping[str, object] | None = None,
    domain: str | None = None,
    cluster: Settings | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Until it is stopped: then it leaves, and others go on with what it carries. `resources` are said, others are measured."""
    broker = NatsBroker(url, network, retention, domain)
    carry = _cluster(broker, cluster or Settings(), pace).carry if offer.engine == SPARK else None
    node = Node(name, broker, Subjects(network), pace, links, offer, carry=carry)
    node.resources = {**measured_resources(), **(resources or {})}
    try:
        broker.answer(name)
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


def _cluster(broker: NatsBroker, settings: Settings, pace: Pace) -> Cluster:
    """Before the node joins: to start Spark takes longer than others are patient."""
    from coincide.engines.spark.session import session
    from coincide.network.sparkcarrier import Cluster

    return Cluster(session("coincide node", settings.master), broker, settings.checkpoint, pace.keep)


def measured_resources() -> dict[str, object]:
    """Processors, and the megabytes of memory that are free."""
    found: dict[str, object] = {"cpu": os.cpu_count() or 1}
    with suppress(ValueError, OSError):
        found["ram"] = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    return found


def _measure(node: Node, broker: NatsBroker) -> None:
    try:
        node.latency = round(broker.round_trip(), 3)
        broker.measure(node.links)
        node.links = {name: broker.latency(name) or given for name, given in node.links.items()}
    except OSError as error:
        log.warning("the broker cannot be reached at the moment: %s", error)
