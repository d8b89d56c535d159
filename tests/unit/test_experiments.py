"""The papers' experiments come out as the references say, and their short cuts change nothing."""

from __future__ import annotations

from random import Random

import pytest

from coincide.distribution.brokers import Routes
from coincide.distribution.placement import fits
from experiments import internet, office, placement
from experiments.pictures import Pictures


@pytest.fixture(scope="module")
def offices() -> list[office.Office]:
    return [office.office(seed) for seed in office.SEEDS]


def test_bytes_lie_in_the_ranges_of_the_reference(offices: list[office.Office]) -> None:
    """distribution-opera.md, section 7."""
    rows = office.rows(offices)
    assert 1 < rows[0].total <= 1.25
    assert [row.total for row in rows] == sorted((row.total for row in rows), reverse=True)
    assert 0.45 <= rows[-1].total <= 0.70
    assert rows[-1].wireless <= 0.15
    assert all(row.ce[0] == pytest.approx(rows[0].ce[0], rel=0.02) for row in rows)
    assert [row.pe[1] for row in rows] == pytest.approx([row.subscribers * rows[0].pe[1] for row in rows])


def test_detectors_in_two_places_find_what_one_engine_does(offices: list[office.Office]) -> None:
    found = max(offices, key=lambda one: len(one.notices))
    assert len(found.notices) > 1
    assert office.in_two_places(found.events) == found.notices


def test_no_notice_is_late(offices: list[office.Office]) -> None:
    points = [point for seed, one in enumerate(offices) for point in office.delays(one.notices, seed)]
    assert points
    assert max(delay for _, delay in points) < office.PAPER_LIMIT
    assert sum(office.histogram(delay for _, delay in points).values()) == len(points)


def test_the_paper_s_graph_is_solved_without_backsteps() -> None:
    """distribution-cordies.md, section 6: all solved; the bar is 75 % and 14."""
    made, random = placement.graph(), Random(0)
    found = [placement.heuristic(made, placement.setting(random)) for _ in range(100)]
    assert all(one.assignment for one in found)
    assert sum(one.backsteps == 0 for one in found) >= 75
    assert max(one.backsteps for one in found) <= 14


def test_placement_in_a_larger_network() -> None:
    made, given = placement.grown(100, 20)
    found = placement.heuristic(made, given)
    assert found.assignment is not None
    assert all(
        fits(made, given.network, name, node, {k: v for k, v in found.assignment.items() if k != name})
        for name, node in found.assignment.items()
    )


def test_ways_through_trees_are_those_of_the_whole_network() -> None:
    random = Random(1)
    brokers = internet.network(internet.Size(6, 30, 10, 10, 5, 3), random)
    fast, slow = internet.TreeRoutes(brokers), Routes(brokers)
    for _ in range(200):
        a, b = random.choice(list(brokers.nodes)), random.choice(list(brokers.nodes))
        assert (fast.hops(a, b), fast.route(a, b).nodes) == (slow.hops(a, b), slow.route(a, b).nodes)
        assert fast.dist(a, b) == pytest.approx(slow.dist(a, b)) == pytest.approx(fast.route(a, b).latency)


def test_policies_do_what_they_are_named_for() -> None:
    small = internet.Size(8, 20, 60, 1000, 40, 20)
    found = {one.name: one for one in internet.outcomes(small)}
    policies = [one for name, one in found.items() if name != internet.CENTRE]
    assert found["minimum-bandwidth"].crossings < found[internet.CENTRE].crossings
    assert found["minimum-bandwidth"].crossings == min(one.crossings for one in policies)
    assert sum(found["minimum-latency"].delays) == min(sum(one.delays) for one in policies)
    assert found["minimum-load"].busiest_node == min(one.busiest_node for one in policies)
    assert len(list(internet.report(Pictures(), small))) == 4 + len(found)
