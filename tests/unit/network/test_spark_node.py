"""A node that is Spark: a real session, a real broker."""

from __future__ import annotations

import pytest
from processes import Feed, Processes, alive, answers, ready, until

from coincide.network.client import Network

pytestmark = pytest.mark.spark

EXPR = "([A] ; [B]) | [C]"
LONG = 240.0
"""Seconds: Spark has to start."""


def begun(processes: Processes) -> Network:
    """A small node, and a cluster."""
    processes.start_node("cluster", "--engine", "spark", "--master", "local[2]")
    processes.start_node("small", "--most-rate", "10")
    network = processes.network()
    until(lambda: alive(network, "small", "cluster"), "the nodes do not join", LONG)
    network.command("set", "*", "patience=60s")
    return network


def moved(network: Network, node: str) -> None:
    for name in network.status().detectors:
        network.command("migrate", name, node)
    until(
        lambda: ready(network) and {d.node for d in network.status().detectors.values()} == {node},
        f"they do not move to {node}",
        LONG,
    )


def test_a_detector_goes_to_the_cluster_and_comes_back(processes: Processes) -> None:
    network = begun(processes)
    feed = Feed(network, EXPR)
    subscriber = network.subscribe(EXPR, "minimum-load", detection="guaranteed", node="small")
    assert {d.node for d in network.status().detectors.values()} == {"small"}
    feed.publish(100)
    moved(network, "cluster")
    feed.publish(300)
    moved(network, "small")
    feed.publish(100)
    moved(network, "cluster")
    feed.publish(100)
    network.command("set", "*", "patience=3s")
    processes.kill("cluster")
    feed.publish(100)
    feed.end()
    expected = feed.expected(subscriber.subscription.since, "guaranteed")
    assert answers(subscriber, len(expected), LONG) == expected
