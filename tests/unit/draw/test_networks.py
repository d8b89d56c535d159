"""Drawings of networks: who is where, and what crosses the links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coincide.cli.main import main
from coincide.distribution.brokers import Broker, Brokers, Link, Publisher, Request, Running
from coincide.distribution.drawing import network_drawings

BROKERS = Brokers(
    {name: Broker() for name in "abc"},
    (Link(("a", "b"), 2), Link(("b", "c"), 20)),
    (Publisher("badge", "a", 10), Publisher("login", "c", 4), Publisher("alarm", "b", 1)),
    {"guard": "c"},
    (Running("Arrived", "[badge] ; [login]", "a"),),
)


def test_streams_cross_links_on_their_way_to_detectors() -> None:
    (drawn,) = network_drawings(BROKERS, "office")
    assert [(arrow.source, arrow.target, arrow.labels) for arrow in drawn.arrows] == [
        ("b", "a", ("2 ms", "login 4/s")),
        ("c", "b", ("20 ms", "login 4/s")),
    ]
    assert drawn.caption == "8 events/s cross links"
    assert "Arrived = [badge] ; [login]" in drawn.nodes[0].label


def test_a_plan_is_seen_before_and_after() -> None:
    request = Request("guard", "([badge] ; [login]) | [alarm]", "minimum-bandwidth")
    before, after = network_drawings(BROKERS, "office", request)
    assert (len(before.nodes), len(after.nodes)) == (3, 3)
    assert "new: N1 = [Arrived] | [alarm]" in "".join(node.label for node in after.nodes)
    assert "reused: Arrived; subscribed to: N1" in after.caption
    over = {(arrow.source, arrow.target): arrow.labels for arrow in after.arrows}
    assert over["b", "c"] == ("20 ms", "N1 5/s")  # the alarm joins on the way, where the detector is


def test_a_stream_crosses_a_link_once() -> None:
    twice = Brokers(BROKERS.nodes, BROKERS.links, BROKERS.publishers, {}, tuple(
        Running(name, f"[badge] ; [{other}]", "c") for name, other in (("D1", "login"), ("D2", "alarm"))
    ))  # fmt: skip
    (drawn,) = network_drawings(twice, "office")
    assert drawn.arrows[0].labels == ("2 ms", "badge 10/s")


def test_the_command_draws_plans_and_placements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology, request = tmp_path / "net.json", tmp_path / "request.json"
    topology.write_text(
        json.dumps({"nodes": {"a": {}}, "publishers": [{"type": "x", "node": "a", "rate": 1}], "subscribers": {"u": "a"}})
    )
    request.write_text(json.dumps({"subscriber": "u", "expr": "[x] ; [x]", "policy": "minimum-load"}))
    assert main(["draw", str(topology), str(request), "--format", "mermaid"]) == 0
    assert "new: N1 = [x] " in capsys.readouterr().out
    case = Path(__file__).parents[2] / "conformance/distribution/cdl-placement/evaluation-average"
    assert main(["draw", str(case / "rules.rg.xml"), str(case / "topology.json"), "--format", "dot"]) == 0
    assert "CD5" in capsys.readouterr().out


def test_what_is_no_network_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.json").write_text("{")
    assert main(["draw", str(tmp_path / "net.json")]) == 2
    assert main(["draw", "a.json", "b.json", "c.json"]) == 2
    assert main(["draw", str(tmp_path / "missing.json")]) == 2
    assert "Traceback" not in capsys.readouterr().err
