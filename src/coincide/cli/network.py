"""`coincide node`, `publish`, `subscribe` and `network`: detectors in a network."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coincide.cli.command import Command, Given

if TYPE_CHECKING:
    from coincide.distribution.brokers import Broker
    from coincide.network.client import Network
    from coincide.network.directory import State

POLICIES = "minimum-latency, minimum-bandwidth, minimum-impact, minimum-load, maximum-reliability or hash"

NODE_DESCRIPTION = """\
Carry detectors in a network.

The node joins the network at the broker (NATS with JetStream) and runs the detectors that the plans of all nodes put on
it, until it is interrupted; then others go on with them, from their state.

example:
  coincide node --broker nats://localhost:4222 --name n1 --links topology.json
"""

PUBLISH_DESCRIPTION = """\
Publish events to a network.

Events are JSON Lines, from files or standard input. The source is known to detectors from its first event on, so that
guaranteed detection waits for it; at the end it says that nothing more comes.

example:
  coincide publish --broker nats://localhost:4222 --source door badges.jsonl
"""

SUBSCRIBE_DESCRIPTION = """\
Subscribe to a composite event in a network.

All nodes make the same plan of where it is detected, by the policy; detections are written as they come, a line each.

example:
  coincide subscribe '[badge] ; [login]' --broker nats://localhost:4222 --policy minimum-bandwidth --node n3
"""

NETWORK_DESCRIPTION = """\
Show a network, and administer it.

`status` tells nodes, detectors and subscriptions; `migrate DETECTOR NODE`, `set-policy DETECTOR POLICY`,
`destroy DETECTOR`, `unsubscribe SUBSCRIBER` and `set '*' near=10` (or control-interval=10s, patience=5s) change it.

example:
  coincide network status --broker nats://localhost:4222 --watch
"""


def _broker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker", metavar="URL", required=True, help="of NATS with JetStream: nats://HOST:PORT")
    parser.add_argument("--network", metavar="NAME", default="coincide", help="several may share a broker (default: coincide)")
    parser.add_argument("--domain", metavar="NAME", help="where the broker is a leaf node: JetStream's domain at the hub")


def _node_arguments(parser: argparse.ArgumentParser) -> None:
    _broker_arguments(parser)
    parser.add_argument("--name", metavar="NAME", required=True, help="of this node, unlike that of any other")
    parser.add_argument("--links", metavar="TOPOLOGY.json", type=Path, help="links of the nodes, as for `coincide plan`")
    text = "what the node has, for restriction graphs, as in ram=400 or security=tls,acl; ram and cpu are measured otherwise"
    parser.add_argument("--resource", metavar="NAME=VALUE", action="append", default=[], help=text)
    parser.add_argument("--no-host", action="store_true", help="carry no detectors")
    text = "`spark`: each detector is a streaming query; such nodes carry what is too large for others"
    parser.add_argument("--engine", choices=("embedded", "spark"), help=text)
    parser.add_argument("--master", metavar="URL", default="local[*]", help="of Spark (default: local[*])")
    text = "for Spark's checkpoints, seen by all its machines (default: a new one)"
    parser.add_argument("--checkpoint", metavar="FOLDER", help=text)
    text = "carry no detector that reads more events a second, as measured, while another node can"
    parser.add_argument("--most-rate", metavar="NUMBER", type=float, help=text)
    text = "carry no detector whose state has more bytes, as measured, while another node can"
    parser.add_argument("--most-state", metavar="BYTES", type=float, help=text)
    parser.add_argument("--beat", metavar="SECONDS", type=float, default=0.5, help="between two words of the node (0.5)")
    parser.add_argument("--keep-every", metavar="SECONDS", type=float, default=5.0, help="between two kept states (5)")
    text = "how long the broker keeps what has happened (default: for ever); said by the first node of a network"
    parser.add_argument("--retention", metavar="SECONDS", type=float, help=text)


def node(given: Given) -> int:
    import msgspec

    from coincide.distribution.brokers import Broker
    from coincide.network.node import Pace
    from coincide.network.run import Settings, run_node

    links, offer = _links(given.links, given.name) if given.links is not None else ({}, Broker())
    own = {"engine": given.engine, "rate": given.most_rate, "state": given.most_state, "host": False if given.no_host else None}
    offer = msgspec.structs.replace(offer, **{name: value for name, value in own.items() if value is not None})
    pace = Pace(clock=min(0.25, given.beat / 2), beat=given.beat, keep=given.keep_every)
    resources = dict(_resource(text) for text in given.resource)
    cluster = Settings(given.master, given.checkpoint)
    run_node(given.broker, given.name, given.network, links, offer, pace, given.retention, resources, given.domain, cluster)
    return 0


def _resource(text: str) -> tuple[str, object]:
    import msgspec

    from coincide.distribution.network import NodeValues
    from coincide.errors import InputError, nearest

    name, equals, value = text.partition("=")
    known = [field for field in NodeValues.__struct_fields__ if field not in ("id", "bids")]
    if not equals or name not in known:
        raise InputError(f"--resource: '{text}' is not NAME=VALUE: {nearest(name, known) or ', '.join(known)}")
    found = value.split(",") if name in ("network", "security") else value
    try:
        return name, getattr(msgspec.convert({"id": "", name: found}, NodeValues, strict=False), name)
    except msgspec.ValidationError as error:
        raise InputError(f"--resource: '{text}': {error}") from error


def _links(path: Path, name: str) -> tuple[dict[str, float], Broker]:
    """Of a node in a topology, and what it may carry."""
    from coincide.distribution.brokers import Brokers
    from coincide.distribution.network import read_json
    from coincide.errors import InputError, nearest

    brokers = read_json(path.read_bytes(), Brokers, str(path))
    if name not in brokers.nodes:
        hint = nearest(name, brokers.nodes)
        raise InputError(f"{path}: there is no node '{name}'{f': {hint}' if hint else ''}")
    found = {}
    for link in brokers.links:
        if name in link.ends:
            found[link.ends[1] if link.ends[0] == name else link.ends[0]] = link.latency
    return found, brokers.nodes[name]


def _publish_arguments(parser: argparse.ArgumentParser) -> None:
    _broker_arguments(parser)
    parser.add_argument("events", nargs="*", metavar="EVENTS", help="files of JSON Lines (default: standard input)")
    parser.add_argument("--source", metavar="NAME", default="publisher", help="who publishes (default: publisher)")
    parser.add_argument("--node", metavar="NAME", default="", help="the node next to which that is")
    parser.add_argument("--stay", action="store_true", help="at the end, detectors go on waiting for this source")


def publish(given: Given) -> int:
    import msgspec

    from coincide.errors import CoincideError, InputError
    from coincide.network.client import Network

    with Network(given.broker, given.network, given.domain) as network:
        publisher = network.publisher(given.source, given.node)
        for place, line in _lines(given.events):
            try:
                publisher.publish(msgspec.json.decode(line))
            except (msgspec.DecodeError, AttributeError, InputError) as error:
                raise InputError(f"{place}: {error}") from error
        if not given.stay:
            publisher.leave()
        if not network.broker.flush(60):
            raise CoincideError("the broker does not take the events")
    return 0


def _lines(paths: list[str]) -> Iterator[tuple[str, str]]:
    for path in paths or ["-"]:
        with open(0, encoding="utf-8", closefd=False) if path == "-" else open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path}:{number}", line


def _subscribe_arguments(parser: argparse.ArgumentParser) -> None:
    _broker_arguments(parser)
    parser.add_argument("expr", nargs="?", default="", metavar="EXPR", help="a composite event expression of Opera")
    parser.add_argument(
        "--rules", metavar="FILE", type=Path, help="rules of any language instead, or a restriction graph (.rg.xml)"
    )
    parser.add_argument("--policy", metavar="NAME", default="minimum-latency", help=f"{POLICIES} (default: minimum-latency)")
    text = "best-effort (default), guaranteed or 'probabilistic P'"
    parser.add_argument("--detection", metavar="NAME", default="best-effort", help=text)
    parser.add_argument("--restart", action="store_true", help="a start that fails begins anew")
    parser.add_argument("--keep", metavar="EXPR", action="append", default=[], help="a part that is not to be factored out")
    parser.add_argument("--node", metavar="NAME", default="", help="the node next to which the subscriber is")
    parser.add_argument("--name", metavar="NAME", default="", help="of the subscriber: the same goes on with its subscription")
    parser.add_argument("--type", metavar="NAME", default="", help="of the detections, under the policy hash")
    parser.add_argument("--count", metavar="N", type=int, help="end after so many detections")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, help="end after so long without one")
    parser.add_argument("--stay", action="store_true", help="the subscription stays after the end")


def subscribe(given: Given) -> int:
    from coincide.errors import InputError
    from coincide.network.client import Network

    if bool(given.expr) == (given.rules is not None):
        raise InputError("give an expression, or rules with --rules")
    rules = given.rules.read_text(encoding="utf-8") if given.rules is not None else ""
    with Network(given.broker, given.network, given.domain) as network:
        subscriber = network.subscribe(
            given.expr,
            given.policy,
            detection=given.detection,
            restart=given.restart,
            keep=given.keep,
            node=given.node,
            name=given.name,
            rules=rules,
            ending="".join(given.rules.suffixes) if given.rules is not None else "",
            type=given.type or ("" if given.rules is None else given.rules.name.partition(".")[0]),
        )
        print(f"subscribed as '{subscriber.name}': {', '.join(subscriber.subscription.detectors)}", file=sys.stderr, flush=True)
        try:
            _write(subscriber.detections(given.timeout), given.count)
        finally:
            if not given.stay:
                subscriber.close()
    return 0


def _write(detections: Iterator[dict[str, Any]], count: int | None) -> None:
    import msgspec

    for number, detection in enumerate(detections, 1):
        sys.stdout.write(msgspec.json.encode(detection).decode() + "\n")
        sys.stdout.flush()
        if number == count:
            return


def _network_arguments(parser: argparse.ArgumentParser) -> None:
    _broker_arguments(parser)
    choices = ["status", "migrate", "set-policy", "destroy", "unsubscribe", "set"]
    parser.add_argument("action", choices=choices, metavar="COMMAND", help=", ".join(choices))
    parser.add_argument("target", nargs="?", default="*", metavar="TARGET", help="a detector, a subscriber, or * for all")
    parser.add_argument("value", nargs="?", default="", metavar="VALUE", help="a node, a policy, or NAME=VALUE")
    parser.add_argument("--json", action="store_true", help="the status as JSON")
    parser.add_argument("--out", metavar="FILE", type=Path, help="draw the network, with what flows, as SVG")
    parser.add_argument("--watch", action="store_true", help="show the status again and again")


def network(given: Given) -> int:
    from coincide.network.client import Network

    with Network(given.broker, given.network, given.domain) as connection:
        if given.action != "status":
            connection.command(given.action, given.target, given.value)
        elif given.watch:
            _watch(connection)
        else:
            _show(connection.status(), given.json)
            if given.out is not None:
                given.out.write_text(connection.drawing(), encoding="utf-8")
    return 0


def _watch(connection: Network) -> None:
    import time

    while True:
        state = connection.status()
        sys.stdout.write("\x1b[H\x1b[2J" if sys.stdout.isatty() else "")
        _show(state, False)
        sys.stdout.flush()
        time.sleep(1.0)


def _show(state: State, as_json: bool) -> None:
    if as_json:
        import msgspec

        sys.stdout.write(msgspec.json.format(msgspec.json.encode(state)).decode() + "\n")
        return
    from coincide.network.status import tables

    sys.stdout.write(tables(state))


NODE = Command("node", NODE_DESCRIPTION, _node_arguments, node)
PUBLISH = Command("publish", PUBLISH_DESCRIPTION, _publish_arguments, publish)
SUBSCRIBE = Command("subscribe", SUBSCRIBE_DESCRIPTION, _subscribe_arguments, subscribe)
NETWORK = Command("network", NETWORK_DESCRIPTION, _network_arguments, network)
